//! The command line, read by hand.

use std::path::PathBuf;

use shardwheel_benches::{ArgError, CHILD, Only, parse_rounds, parse_sizes, read_options, set_path};

use crate::peer::{Measure, PEERS, Task};
use crate::sections::{self, SECTIONS};

const OPTIONS: [&str; 6] = ["--rounds", "--sizes", "--timers", "--only", "--json", "--charts"];
const DEFAULT_ROUNDS: usize = 5;
const DEFAULT_SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const DEFAULT_TIMERS: [usize; 1] = [1_000_000];

/// What the command line asks for.
pub(crate) enum Request {
    /// The usage text.
    Help,
    /// One measurement, for the parent process.
    Child(Measure, Task),
    /// All of them.
    Report(Args),
}

/// What to measure.
pub(crate) struct Args {
    pub(crate) rounds: usize,
    /// How many timers are scheduled and fired.
    pub(crate) sizes: Vec<usize>,
    /// How many timers there are in the sections that each want many.
    pub(crate) timers: Vec<usize>,
    /// The file that gets everything as JSON.
    pub(crate) json: Option<PathBuf>,
    /// The directory that gets charts.
    pub(crate) charts: Option<PathBuf>,
    only: Only,
}

impl Request {
    /// Reads the arguments that follow the program's name.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, ArgError> {
        let mut words = words.peekable();
        if words.next_if(|word| word == CHILD).is_some() {
            let words = words.collect::<Vec<_>>();
            let (measure, task) = child(&words).ok_or(ArgError::BadChild(words))?;
            return Ok(Self::Child(measure, task));
        }
        Ok(Args::parse(words)?.map_or(Self::Help, Self::Report))
    }
}

/// Reads what `child::words` wrote.
fn child(words: &[String]) -> Option<(Measure, Task)> {
    let [section, engine, size, round] = words else { return None };
    let peer = PEERS.iter().find(|peer| peer.engine == engine)?;
    let measure = (sections::find(section)?.measure)(peer)?;
    Some((measure, Task { size: size.parse().ok()?, round: round.parse().ok()? }))
}

impl Args {
    /// Whether a section is to be run: all are, unless `--only` names some.
    pub(crate) fn wants(&self, section: &str) -> bool {
        self.only.wants(section)
    }

    /// `None` where help is asked for.
    fn parse(words: impl Iterator<Item = String>) -> Result<Option<Self>, ArgError> {
        let mut args = Self {
            rounds: DEFAULT_ROUNDS,
            sizes: DEFAULT_SIZES.to_vec(),
            timers: DEFAULT_TIMERS.to_vec(),
            json: None,
            charts: None,
            only: Only::default(),
        };
        let read = read_options(words, &OPTIONS, |option, value| args.set(option, value))?;
        Ok(read.then_some(args))
    }

    fn set(&mut self, option: String, value: String) -> Result<(), ArgError> {
        let (taken, wanted) = match option.as_str() {
            "--rounds" => (self.set_rounds(&value), "a number of 1 or more".to_owned()),
            "--sizes" => (self.set_sizes(&value), "numbers of timers such as 10k,1M,10M".to_owned()),
            "--timers" => (self.set_timers(&value), "numbers of timers such as 1M,10M".to_owned()),
            "--json" => (set_path(&mut self.json, &value), "the name of a file".to_owned()),
            "--charts" => (set_path(&mut self.charts, &value), "the name of a directory".to_owned()),
            _ => (self.set_only(&value), format!("names from: {}", names())),
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

    fn set_timers(&mut self, value: &str) -> Option<()> {
        self.timers = parse_sizes(value)?;
        Some(())
    }

    fn set_only(&mut self, value: &str) -> Option<()> {
        self.only.add(value, |name| sections::find(name).is_some())
    }
}

fn names() -> String {
    SECTIONS.iter().map(|section| section.name).collect::<Vec<_>>().join(", ")
}

/// What the program takes.
pub(crate) fn usage() -> String {
    format!(
        "peers [--rounds N] [--sizes LIST] [--timers LIST] [--only LIST] [--json FILE] [--charts DIR]\n\n\
         --rounds N     how often each figure is measured (default {DEFAULT_ROUNDS})\n\
         --sizes LIST   numbers of timers to schedule and fire (default 10k,100k,1M)\n\
         --timers LIST  how many timers extend, worst, memory and two-schedule have (default 1M)\n\
         --only LIST    sections to run (default all): {}\n\
         --json FILE    writes everything there as well\n\
         --charts DIR   draws charts of it there",
        names()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;

    fn parse(line: &str) -> Result<Request, ArgError> {
        Request::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_and_options() {
        let Ok(Request::Report(args)) = parse("") else { panic!("no arguments are needed") };
        assert!(args.rounds == DEFAULT_ROUNDS && args.sizes == DEFAULT_SIZES && args.wants("memory"));
        let line = "--rounds 2 --sizes 5k,20 --timers 10k --only churn,memory --json out.json --charts out";
        let Ok(Request::Report(args)) = parse(line) else { panic!("{line} is right") };
        assert!(args.rounds == 2 && args.sizes == [5000, 20] && args.timers == [10_000]);
        assert!(args.wants("churn") && args.wants("memory") && !args.wants("random"));
        assert_eq!((args.json, args.charts), (Some("out.json".into()), Some("out".into())));
    }

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        let written = Task { size: 123, round: 4 };
        for section in &SECTIONS {
            for peer in PEERS.iter().filter(|peer| (section.measure)(peer).is_some()) {
                let words = child::words(section, peer, written).into_iter();
                let Ok(Request::Child(_, task)) = Request::parse([CHILD.to_owned()].into_iter().chain(words))
                else {
                    panic!("{} has no child for {}", section.name, peer.engine)
                };
                assert_eq!(task, written);
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let message = |line: &str| parse(line).err().expect(line).to_string();
        assert!(message("--fast").contains("--fast"));
        assert!(message("--json").contains("needs a value"));
        assert!(message("--rounds 0").contains("1 or more"));
        assert!(message("--sizes 1M,,2M").contains("1M,,2M"));
        assert!(message("--timers 0").contains("10M"));
        assert!(message("--only nothing").contains("churn"));
        assert!(message("--child churn nothing 1 1").contains("nothing"));
        assert!(message("--child churn").contains("churn"));
    }
}
