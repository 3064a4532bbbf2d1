//! The command line, read by hand.

use std::path::PathBuf;
use std::time::Duration;

use shardwheel_benches::{ArgError, CHILD, Only, parse_rounds, parse_size, read_options, set_path};

use crate::fire::{LEAD, Plan};
use crate::sections::{self, ROUNDS_BESIDE, Run, SECTIONS, engines};

const OPTIONS: [&str; 7] = ["--rounds", "--timers", "--span", "--only", "--engines", "--json", "--charts"];
const DEFAULT_ROUNDS: usize = 5;
const DEFAULT_PLAN: Plan = Plan { timers: 1_000_000, lead: LEAD, span: Duration::from_secs(10) };

/// The longest time over which timers may be due, in seconds.
const LONGEST: f64 = 3600.0;

/// What the command line asks for.
pub(crate) enum Request {
    /// The usage text.
    Help,
    /// One measurement, for the parent process.
    Child(&'static Run, Args),
    /// All of them.
    Report(Args),
}

/// What to measure.
pub(crate) struct Args {
    pub(crate) rounds: usize,
    /// What the sections about firing do.
    pub(crate) plan: Plan,
    /// The file that gets everything as JSON.
    pub(crate) json: Option<PathBuf>,
    /// The directory that gets charts.
    pub(crate) charts: Option<PathBuf>,
    only: Only,
    engines: Only,
}

impl Request {
    /// Reads the arguments that follow the program's name.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, ArgError> {
        let mut words = words.peekable();
        if words.next_if(|word| word == CHILD).is_some() {
            let names = words.by_ref().take(2).collect::<Vec<_>>();
            let run = match &names[..] {
                [section, engine] => sections::find(section, engine),
                _ => None,
            };
            let run = run.ok_or(ArgError::BadChild(names))?;
            return Ok(Args::parse(words)?.map_or(Self::Help, |args| Self::Child(run, args)));
        }
        Ok(Args::parse(words)?.map_or(Self::Help, Self::Report))
    }
}

impl Args {
    /// Whether a section is to be run: all are, unless `--only` names some.
    pub(crate) fn wants(&self, section: &str) -> bool {
        self.only.wants(section)
    }

    /// Whether an engine takes part in a round, counted from 0: all do that are not limited to a few, unless
    /// `--engines` names some.
    pub(crate) fn wants_run(&self, run: &Run, round: usize) -> bool {
        round < run.rounds && self.engines.wants(run.engine)
    }

    /// What a child process has to know.
    pub(crate) fn for_child(&self) -> [String; 4] {
        let Plan { timers, span, .. } = self.plan;
        ["--timers".to_owned(), timers.to_string(), "--span".to_owned(), span.as_secs_f64().to_string()]
    }

    /// `None` where help is asked for.
    fn parse(words: impl Iterator<Item = String>) -> Result<Option<Self>, ArgError> {
        let mut args = Self {
            rounds: DEFAULT_ROUNDS,
            plan: DEFAULT_PLAN,
            json: None,
            charts: None,
            only: Only::default(),
            engines: Only::default(),
        };
        let read = read_options(words, &OPTIONS, |option, value| args.set(option, value))?;
        Ok(read.then_some(args))
    }

    fn set(&mut self, option: String, value: String) -> Result<(), ArgError> {
        let (taken, wanted) = match option.as_str() {
            "--rounds" => (self.set_rounds(&value), "a number of 1 or more".to_owned()),
            "--timers" => (self.set_timers(&value), "a number of timers such as 10k or 1M".to_owned()),
            "--span" => (self.set_span(&value), format!("seconds, above 0 and up to {LONGEST}")),
            "--json" => (set_path(&mut self.json, &value), "the name of a file".to_owned()),
            "--charts" => (set_path(&mut self.charts, &value), "the name of a directory".to_owned()),
            "--engines" => (self.set_engines(&value), format!("names from: {}", engines().join(", "))),
            _ => (self.set_only(&value), format!("names from: {}", names())),
        };
        taken.ok_or(ArgError::BadValue { option, value, wanted })
    }

    fn set_rounds(&mut self, value: &str) -> Option<()> {
        self.rounds = parse_rounds(value)?;
        Some(())
    }

    fn set_timers(&mut self, value: &str) -> Option<()> {
        self.plan.timers = parse_size(value)?;
        Some(())
    }

    fn set_span(&mut self, value: &str) -> Option<()> {
        let seconds = value.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= LONGEST)?;
        self.plan.span = Duration::from_secs_f64(seconds);
        Some(())
    }

    fn set_only(&mut self, value: &str) -> Option<()> {
        self.only.add(value, |name| SECTIONS.iter().any(|section| section.name == name))
    }

    fn set_engines(&mut self, value: &str) -> Option<()> {
        self.engines.add(value, |name| engines().contains(&name))
    }
}

fn names() -> String {
    SECTIONS.map(|section| section.name).join(", ")
}

/// What the program takes.
pub(crate) fn usage() -> String {
    format!(
        "live [--rounds N] [--timers N] [--span SECONDS] [--only LIST] [--engines LIST] [--json FILE]\n\
        \x20    [--charts DIR]\n\n\
         --rounds N      how often each figure is measured (default {DEFAULT_ROUNDS}); engines that no requirement\n\
        \x20               is judged by take part in the first {ROUNDS_BESIDE}\n\
         --timers N      how many timers fire (default 1M)\n\
         --span SECONDS  over how long they are due (default {})\n\
         --only LIST     sections to run (default all): {}\n\
         --engines LIST  engines to run (default all): {}\n\
         --json FILE     writes everything there as well\n\
         --charts DIR    draws charts of it there",
        DEFAULT_PLAN.span.as_secs_f64(),
        names(),
        engines().join(", ")
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
        assert!(args.rounds == DEFAULT_ROUNDS && args.wants("idle") && args.json.is_none());
        let line = "--rounds 2 --timers 5k --span 0.5 --only fire,sleep --json out.json --charts out";
        let Ok(Request::Report(args)) = parse(line) else { panic!("{line} is right") };
        assert!(args.rounds == 2 && args.plan.timers == 5000 && args.plan.span.as_millis() == 500);
        assert!(args.wants("fire") && args.wants("sleep") && !args.wants("idle"));
        assert_eq!((args.json, args.charts), (Some("out.json".into()), Some("out".into())));
    }

    #[test]
    fn engines_are_chosen_by_name_and_those_beside_take_part_in_few_rounds() {
        let run = |engine: &str| sections::find("fire", engine).expect(engine);
        let parse = |words: &[&str]| Request::parse(words.iter().map(|&word| word.to_owned()));
        let Ok(Request::Report(args)) = parse(&["--engines", "heap thread,async-io"]) else {
            panic!("right")
        };
        assert!(args.wants_run(run("heap thread"), 9) && !args.wants_run(run("shardwheel"), 0));
        assert!(args.wants_run(run("async-io"), ROUNDS_BESIDE - 1));
        assert!(!args.wants_run(run("async-io"), ROUNDS_BESIDE));
        let Ok(Request::Report(args)) = parse(&[]) else { panic!("right") };
        assert!(SECTIONS.iter().flat_map(|section| section.runs).all(|run| args.wants_run(run, 0)));
    }

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        let Ok(Request::Report(parent)) = parse("--timers 12345 --span 0.007") else { panic!("right") };
        for run in SECTIONS.iter().flat_map(|section| section.runs.iter().map(move |run| (section, run))) {
            let words = [CHILD, run.0.name, run.1.engine].map(str::to_owned).into_iter();
            let Ok(Request::Child(found, child)) = Request::parse(words.chain(parent.for_child())) else {
                panic!("{} has no child for {}", run.0.name, run.1.engine)
            };
            assert_eq!(found.engine, run.1.engine);
            assert_eq!((child.plan.timers, child.plan.span), (parent.plan.timers, parent.plan.span));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let message = |line: &str| parse(line).err().expect(line).to_string();
        assert!(message("--fast").contains("--fast"));
        assert!(message("--json").contains("needs a value"));
        assert!(message("--rounds 0").contains("1 or more"));
        assert!(message("--timers 0").contains("10k"));
        assert!(message("--span 0").contains("above 0"));
        assert!(message("--span NaN").contains("above 0"));
        assert!(message("--only nothing").contains("sleep"));
        assert!(message("--engines nothing").contains("heap thread on ticks"));
        assert!(message("--child fire nothing").contains("nothing"));
        assert!(message("--child fire").contains("fire"));
    }
}
