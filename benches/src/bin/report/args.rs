//! The command line, read by hand.

use shardwheel_benches::{ArgError, CHILD, Only, parse_rounds, parse_sizes, read_options};

use crate::memory::{self, Probe};
use crate::sections::SECTIONS;

const OPTIONS: [&str; 4] = ["--rounds", "--sizes", "--only", "--memory"];
const DEFAULT_ROUNDS: usize = 5;
const DEFAULT_SIZES: [usize; 3] = [10_000, 1_000_000, 10_000_000];

/// What the command line asks for.
pub(crate) enum Request {
    /// The usage text.
    Help,
    /// One measurement of memory, for the parent process.
    Child(Probe),
    /// The report.
    Report(Args),
}

/// What to report.
pub(crate) struct Args {
    pub(crate) rounds: usize,
    pub(crate) sizes: Vec<usize>,
    /// Whether fresh memory is as the machine has it, provided or not.
    pub(crate) cold: bool,
    only: Only,
}

impl Request {
    /// Reads the arguments that follow the program's name.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, ArgError> {
        let mut words = words.peekable();
        if words.next_if(|word| word == CHILD).is_some() {
            let words = words.collect::<Vec<_>>();
            return Probe::parse(&words).map(Self::Child).ok_or(ArgError::BadChild(words));
        }
        let mut args = Args {
            rounds: DEFAULT_ROUNDS,
            sizes: DEFAULT_SIZES.to_vec(),
            cold: false,
            only: Only::default(),
        };
        let read = read_options(words, &OPTIONS, |option, value| args.set(option, value))?;
        Ok(if read { Self::Report(args) } else { Self::Help })
    }
}

impl Args {
    /// Whether a section is to be run: all are, unless `--only` names some.
    pub(crate) fn wants(&self, section: &str) -> bool {
        self.only.wants(section)
    }

    fn set(&mut self, option: String, value: String) -> Result<(), ArgError> {
        let (taken, wanted) = match option.as_str() {
            "--rounds" => (self.set_rounds(&value), "a number of 1 or more".to_owned()),
            "--sizes" => (self.set_sizes(&value), "numbers of timers such as 10k,1M,10M".to_owned()),
            "--memory" => (self.set_memory(&value), "backed or cold".to_owned()),
            _ => (self.set_only(&value), format!("names from: {}", names().join(", "))),
        };
        taken.ok_or(ArgError::BadValue { option, value, wanted })
    }

    fn set_rounds(&mut self, value: &str) -> Option<()> {
        self.rounds = parse_rounds(value)?;
        Some(())
    }

    fn set_sizes(&mut self, value: &str) -> Option<()> {
        self.sizes = parse_sizes(value)?;
        Some(())
    }

    fn set_memory(&mut self, value: &str) -> Option<()> {
        self.cold = match value {
            "backed" => false,
            "cold" => true,
            _ => return None,
        };
        Some(())
    }

    fn set_only(&mut self, value: &str) -> Option<()> {
        self.only.add(value, |name| names().contains(&name))
    }
}

fn names() -> Vec<&'static str> {
    SECTIONS.iter().map(|section| section.name).chain([memory::NAME]).collect()
}

/// What the program takes.
pub(crate) fn usage() -> String {
    format!(
        "report [--rounds N] [--sizes LIST] [--only LIST] [--memory backed|cold]\n\n\
         --rounds N    how often each figure is measured (default {DEFAULT_ROUNDS})\n\
         --sizes LIST  numbers of timers (default 10k,1M,10M)\n\
         --only LIST   sections to run (default all): {}\n\
         --memory M    backed: a virtual machine's host has provided fresh memory before it is measured (default);\n\
        \x20             cold: as it comes",
        names().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, ArgError> {
        Request::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_and_options() {
        let Ok(Request::Report(args)) = parse("") else { panic!("no arguments are needed") };
        assert!(args.rounds == DEFAULT_ROUNDS && args.sizes == DEFAULT_SIZES && args.wants("memory"));
        let line = "--rounds 2 --sizes 5k,20 --only churn,memory --memory cold";
        let Ok(Request::Report(args)) = parse(line) else { panic!("{line} is right") };
        assert!(args.rounds == 2 && args.sizes == [5000, 20] && args.cold);
        assert!(args.wants("churn") && args.wants("memory") && !args.wants("random"));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |line: &str| parse(line).err().expect(line).to_string();
        assert!(message("--fast").contains("--fast"));
        assert!(message("--rounds").contains("needs a value"));
        assert!(message("--rounds 0").contains("1 or more"));
        assert!(message("--sizes 1M,,2M").contains("1M,,2M"));
        assert!(message("--only nothing").contains("memory"));
        assert!(message("--memory warm").contains("backed or cold"));
        assert!(message("--child nothing").contains("nothing"));
    }
}
