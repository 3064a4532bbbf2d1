//! Reads the command line and runs what it asks for.

use std::io;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, Plan};
use crate::driver::{self, Job, Judge, names};
use crate::suite::Suite;
use crate::{live, peers, report, scale, tables};

/// Every suite with its verdicts.
static SUITES: [(&Suite, Judge); 4] = [
    (&report::SUITE, report::requirements),
    (&peers::SUITE, peers::requirements),
    (&live::SUITE, live::requirements),
    (&scale::SUITE, |_| Vec::new()),
];

/// Runs the program; returns a failure if a run failed or a file was not written.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    dispatch(cli.command).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

/// The command line, with the names and the options that each suite has.
fn command() -> clap::Command {
    let refuse = |_: &str| Err::<String, _>("this subcommand has no such option");
    SUITES.iter().fold(Cli::command(), |command, (suite, _)| {
        command.mut_subcommand(suite.name, |command| {
            let parser = |engines| ValueParser::from(PossibleValuesParser::new(names(suite, engines)));
            let command = command.mut_arg("only", |arg| arg.value_parser(parser(false)));
            let command = command.mut_arg("engines", |arg| arg.value_parser(parser(true)));
            ["sizes", "timers", "span", "memory"].into_iter().fold(command, |command, option| {
                let default = suite.options.iter().find(|(name, _)| *name == option);
                command.mut_arg(option, |arg| match default {
                    Some((_, default)) => arg.default_value(default),
                    None => arg.hide(true).value_parser(refuse),
                })
            })
        })
    })
}

fn dispatch(command: Command) -> io::Result<ExitCode> {
    match command {
        Command::Report(plan) => measure(0, &plan),
        Command::Peers(plan) => measure(1, &plan),
        Command::Live(plan) => measure(2, &plan),
        Command::Scale(plan) => measure(3, &plan),
        Command::Chart { figures, table } => tables::chart(&figures, &table),
        Command::Tables { rounds, quick } => tables::run(rounds.get(), quick, &measure_line),
        Command::Child { job } => {
            let job = serde_json::from_str::<Job>(&job)?;
            let suite = SUITES.iter().find(|(suite, _)| suite.name == job.suite);
            let (suite, _) = suite.ok_or_else(|| io::Error::other("there is no such suite"))?;
            driver::run_child(suite, &job)
        }
    }
}

/// Runs what a command line asks for.
fn measure_line(line: &[&str]) -> io::Result<ExitCode> {
    let line = ["shardwheel-benches"].iter().chain(line);
    let matches = command().try_get_matches_from(line).map_err(io::Error::other)?;
    dispatch(Cli::from_arg_matches(&matches).map_err(io::Error::other)?.command)
}

fn measure(nth: usize, plan: &Plan) -> io::Result<ExitCode> {
    let (suite, judge) = SUITES[nth];
    let results = driver::run(suite, plan, judge)?;
    Ok(if results.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::MILLION;
    use crate::programs::programs;
    use crate::suite::{Run, Task};

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let read = |line: &str| command().try_get_matches_from(format!("x {line}").split(' '));
        for (line, part) in [
            ("peers --fast", "--fast"),
            ("report --rounds 0", "zero"),
            ("peers --sizes 1M,,2M", "10k or 1M"),
            ("report --only nothing", "memory"),
            ("report --span 3", "no such option"),
            ("live --engines nothing", "wheel thread"),
            ("live --span 0", "above 0"),
        ] {
            let message = read(line).expect_err(line).to_string();
            assert!(message.contains(part), "{message}");
        }
        let line = "report --rounds 2 --only cancel,memory --memory cold --figures out.tsv";
        let cli = Cli::from_arg_matches(&read(line).unwrap()).unwrap();
        let Command::Report(plan) = cli.command else { panic!("it is a report") };
        assert!(plan.rounds.get() == 2 && plan.only == ["cancel", "memory"] && plan.memory.is_some());
        assert!(plan.sizes == [10_000, 1_000_000, 10_000_000] && plan.figures == Some("out.tsv".into()));
    }

    /// On a busy machine a live timer may be late; it is neither early nor lost.
    #[test]
    fn every_engine_fires_the_same_in_every_section() {
        for section in SUITES.iter().flat_map(|(suite, _)| suite.sections) {
            let measure = |run: &Run| (run.measure)(&Task::small(700));
            let here = section.runs.iter().filter(|run| run.is_here()).collect::<Vec<_>>();
            let outcomes = here.iter().copied().map(measure).collect::<Vec<_>>();
            let expected = &outcomes[0];
            for (run, outcome) in here.iter().zip(&outcomes) {
                assert_eq!(outcome.checksum, expected.checksum, "{}, {}", section.name, run.engine);
                for (what, figure) in &outcome.figures {
                    assert!(figure.is_finite() && expected.figures.iter().any(|it| it.0 == *what), "{what}");
                    assert!(!what.starts_with("timers ") || *figure == 0.0, "{}: {what}", run.engine);
                }
            }
        }
    }

    #[test]
    fn every_program_that_criterion_measures_runs() {
        let small = programs().filter(|program| program.timers < MILLION);
        small.for_each(|program| assert!(!program.time(1).is_zero(), "{}", program.id));
    }
}
