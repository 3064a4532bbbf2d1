//! The command line, read by hand.

use std::path::PathBuf;

use shardwheel_benches::{ArgError, CHILD, parse_rounds, parse_sizes, read_options, set_path};

use crate::child;
use crate::plan::{GROUP, Plan};

const OPTIONS: [&str; 3] = ["--rounds", "--sizes", "--json"];
const DEFAULT_ROUNDS: usize = 3;
const DEFAULT_SIZES: [usize; 3] = [1_000_000, 10_000_000, 100_000_000];

/// What the command line asks for.
pub(crate) enum Request {
    /// The usage text.
    Help,
    /// One run, for the parent process.
    Child(Plan),
    /// All of them.
    Report(Args),
}

/// What to measure.
pub(crate) struct Args {
    pub(crate) rounds: usize,
    /// The file that gets everything as JSON.
    pub(crate) json: Option<PathBuf>,
    sizes: Vec<usize>,
}

impl Request {
    /// Reads the arguments that follow the program's name.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, ArgError> {
        let mut words = words.peekable();
        if words.next_if(|word| word == CHILD).is_some() {
            let words = words.collect::<Vec<_>>();
            return child::parse(&words).map(Self::Child).ok_or(ArgError::BadChild(words));
        }
        let mut args = Args { rounds: DEFAULT_ROUNDS, json: None, sizes: DEFAULT_SIZES.to_vec() };
        let read = read_options(words, &OPTIONS, |option, value| args.set(option, value))?;
        Ok(if read { Self::Report(args) } else { Self::Help })
    }
}

impl Args {
    /// The runs of a round, which is their seed.
    pub(crate) fn plans(&self, round: usize) -> impl Iterator<Item = Plan> {
        self.sizes.iter().filter_map(move |&size| Plan::new(size, round as u64))
    }

    fn set(&mut self, option: String, value: String) -> Result<(), ArgError> {
        let (taken, wanted) = match option.as_str() {
            "--rounds" => (self.set_rounds(&value), "a number of 1 or more".to_owned()),
            "--sizes" => {
                (self.set_sizes(&value), format!("numbers such as 1M,10M, each {GROUP} times another"))
            }
            _ => (set_path(&mut self.json, &value), "the name of a file".to_owned()),
        };
        taken.ok_or(ArgError::BadValue { option, value, wanted })
    }

    fn set_rounds(&mut self, value: &str) -> Option<()> {
        self.rounds = parse_rounds(value)?;
        Some(())
    }

    fn set_sizes(&mut self, value: &str) -> Option<()> {
        self.sizes = parse_sizes(value)?;
        self.sizes.iter().all(|&size| Plan::new(size, 0).is_some()).then_some(())
    }
}

/// What the program takes.
pub(crate) fn usage() -> String {
    format!(
        "scale [--rounds N] [--sizes LIST] [--json FILE]\n\n\
         --rounds N    how often each figure is measured (default {DEFAULT_ROUNDS})\n\
         --sizes LIST  numbers of timers (default 1M,10M,100M)\n\
         --json FILE   writes everything there as well"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, ArgError> {
        Request::parse(line.split_whitespace().map(str::to_owned))
    }

    fn sizes(line: &str) -> Vec<usize> {
        let Ok(Request::Report(args)) = parse(line) else { panic!("{line} is right") };
        args.plans(3).map(|plan| plan.timers()).collect()
    }

    #[test]
    fn defaults_and_options() {
        assert_eq!(sizes(""), DEFAULT_SIZES);
        assert_eq!(sizes("--sizes 1M,40 --rounds 1"), [1_000_000, 40]);
        let Ok(Request::Report(args)) = parse("--json out.json") else { panic!("right") };
        assert!(args.rounds == DEFAULT_ROUNDS && args.json == Some("out.json".into()));
    }

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        let plan = Plan::new(60, 9).unwrap();
        let words = [CHILD.to_owned()].into_iter().chain(child::words(&plan));
        assert!(matches!(Request::parse(words), Ok(Request::Child(read)) if read == plan));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |line: &str| parse(line).err().expect(line).to_string();
        assert!(message("--fast").contains("--fast"));
        assert!(message("--rounds 0").contains("1 or more"));
        assert!(message("--sizes 30").contains("20 times"));
        assert!(message("--json").contains("needs a value"));
        assert!(message("--child 30 1").contains("30"));
    }
}
