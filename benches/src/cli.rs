//! Reads the command line and runs what it asks for.

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, Plan};
use crate::driver::{self, Job};
use crate::suite::Suite;
use crate::{live, peers, tables};

pub(crate) static SUITES: [&Suite; 2] = [&peers::SUITE, &live::SUITE];

/// Runs the program; returns a failure if a run failed or a file was not written.
pub(crate) fn run() -> ExitCode {
    dispatch(Cli::parse().command).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn dispatch(command: Command) -> io::Result<ExitCode> {
    match command {
        Command::Peers(plan) => measure(&peers::SUITE, &plan),
        Command::Live(plan) => measure(&live::SUITE, &plan),
        Command::Chart => tables::renew(),
        Command::Tables { rounds } => tables::run(rounds.get(), &measure_line),
        Command::Child { job } => {
            let job = serde_json::from_str::<Job>(&job)?;
            let suite = SUITES.iter().find(|suite| suite.name == job.suite);
            driver::run_child(suite.ok_or_else(|| io::Error::other("there is no such suite"))?, &job)
        }
    }
}

/// Runs what a command line asks for.
fn measure_line(line: &[&str]) -> io::Result<ExitCode> {
    let line = ["shardwheel-benches"].iter().chain(line);
    dispatch(Cli::try_parse_from(line).map_err(io::Error::other)?.command)
}

fn measure(suite: &Suite, plan: &Plan) -> io::Result<ExitCode> {
    let results = driver::run(suite, plan)?;
    Ok(if results.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Run, Task};

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let read = |line: &str| Cli::try_parse_from(format!("x {line}").split(' ')).map(|cli| cli.command);
        for (line, part) in [
            ("peers --fast", "--fast"),
            ("peers --rounds 0", "zero"),
            ("peers --sizes 1M,,2M", "10k or 1M"),
            ("live --span 0", "above 0"),
        ] {
            let message = read(line).err().expect(line).to_string();
            assert!(message.contains(part), "{message}");
        }
        let line = "peers --rounds 2 --only tick,memory --figures out.tsv";
        let Command::Peers(plan) = read(line).unwrap() else { panic!("it is `peers`") };
        assert!(plan.rounds.get() == 2 && plan.only == ["tick", "memory"]);
        assert!(plan.sizes == [10_000, 100_000, 1_000_000] && plan.figures == Some("out.tsv".into()));
        for line in ["peers --only nothing", "live --engines nothing"] {
            let (Command::Peers(plan) | Command::Live(plan)) = read(line).unwrap() else { panic!("{line}") };
            let message = driver::run(&peers::SUITE, &plan).err().expect(line).to_string();
            assert!(message.contains("nothing") && message.contains("shardwheel"), "{message}");
        }
    }

    /// On a busy machine a live timer may be late; it is neither early nor lost.
    #[test]
    fn every_engine_fires_the_same_in_every_section() {
        for section in SUITES.iter().flat_map(|suite| suite.sections) {
            let measure = |run: &Run| (run.measure)(&Task::small(700));
            let here = section.runs.iter().filter(|run| run.is_here()).collect::<Vec<_>>();
            let outcomes = here.iter().copied().map(measure).collect::<Vec<_>>();
            let expected = &outcomes[0];
            for (run, outcome) in here.iter().zip(&outcomes) {
                assert_eq!(outcome.checksum, expected.checksum, "{}, {}", section.name, run.engine);
                for (what, figure) in &outcome.figures {
                    assert!(figure.is_finite() && expected.figures.iter().any(|it| it.0 == *what), "{what}");
                }
            }
        }
    }
}
