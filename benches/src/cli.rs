//! Reads the command line and runs what it asks for.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, Common, Memory};
use crate::charts::draw_charts;
use crate::driver::{self, Job, Judge, Plan, names};
use crate::results::Results;
use crate::suite::Suite;
use crate::{live, peers, report, scale};

/// Every suite with its verdicts.
static SUITES: [(&Suite, Judge); 4] = [
    (&report::SUITE, report::requirements),
    (&peers::SUITE, peers::requirements),
    (&live::SUITE, live::requirements),
    (&scale::SUITE, |_| Vec::new()),
];

/// Runs the program; returns a failure if a run failed, a count was wrong or a file not written.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    dispatch(cli.command).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

/// The command line, with the names of sections and engines that each suite has.
fn command() -> clap::Command {
    let with_names = |command: clap::Command, (suite, _): &(&'static Suite, Judge)| {
        let parser = |engines| ValueParser::from(PossibleValuesParser::new(names(suite, engines)));
        command.mut_subcommand(suite.name, |command| {
            let command = command.mut_arg("only", |arg| arg.value_parser(parser(false)));
            command.mut_arg("engines", |arg| arg.value_parser(parser(true)))
        })
    };
    SUITES.iter().fold(Cli::command(), with_names).mut_subcommand(scale::SUITE.name, |command| {
        let command = command.mut_arg("rounds", |arg| arg.default_value("3"));
        command.mut_arg("sizes", |arg| arg.value_parser(scale::parse_size))
    })
}

fn dispatch(command: Command) -> io::Result<ExitCode> {
    match command {
        Command::Report { common, sizes, memory } => {
            let plan = Plan { cold: memory == Memory::Cold, ..plan(&common, sizes) };
            measure(0, &common, &plan)
        }
        Command::Peers { common, sizes, timers } => {
            measure(1, &common, &Plan { timers, ..plan(&common, sizes) })
        }
        Command::Live { common, timers, span } => {
            measure(2, &common, &Plan { span, ..plan(&common, vec![timers]) })
        }
        Command::Scale { common, sizes } => measure(3, &common, &plan(&common, sizes)),
        Command::Charts { dir, files } => {
            for file in files {
                draw(&dir, &serde_json::from_slice(&std::fs::read(file)?)?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Child { job } => {
            let job = serde_json::from_str::<Job>(&job)?;
            let suite = SUITES.iter().find(|(suite, _)| suite.name == job.suite);
            let (suite, _) = suite.ok_or_else(|| io::Error::other("there is no such suite"))?;
            driver::run_child(suite, &job)
        }
    }
}

fn plan(common: &Common, sizes: Vec<usize>) -> Plan {
    Plan {
        rounds: common.rounds,
        timers: sizes.clone(),
        sizes,
        span: Duration::ZERO,
        cold: false,
        only: common.only.clone(),
        engines: common.engines.clone(),
        json: common.json.clone(),
    }
}

fn measure(nth: usize, common: &Common, plan: &Plan) -> io::Result<ExitCode> {
    let (suite, judge) = SUITES[nth];
    let results = driver::run(suite, plan, judge)?;
    if let Some(dir) = &common.charts {
        draw(dir, &results)?;
    }
    Ok(if results.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn draw(dir: &Path, results: &Results) -> io::Result<()> {
    let drawn = draw_charts(dir, results).map_err(|error| io::Error::other(error.to_string()))?;
    drawn.iter().for_each(|file| eprintln!("drawn: {file}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let words = ["shardwheel-benches"].into_iter().chain(line.split_whitespace());
        command().try_get_matches_from(words).expect_err(line).to_string()
    }

    #[test]
    fn mistakes_are_named() {
        command().debug_assert();
        assert!(refused("peers --fast").contains("--fast"));
        assert!(refused("report --rounds 0").contains("1 or more"));
        assert!(refused("peers --sizes 1M,,2M").contains("10k or 1M"));
        assert!(refused("report --only nothing").contains("memory"));
        assert!(refused("live --engines nothing").contains("heap thread on ticks"));
        assert!(refused("live --span 0").contains("above 0"));
        assert!(refused("scale --sizes 31").contains("even"));
    }

    #[test]
    fn options_are_read() {
        let words = "x report --rounds 2 --sizes 5k,20 --only cancel,memory --memory cold --json out.json";
        let cli = Cli::from_arg_matches(&command().get_matches_from(words.split(' '))).unwrap();
        let Command::Report { common, sizes, memory } = cli.command else { panic!("it is a report") };
        assert!(common.rounds == 2 && common.only == ["cancel", "memory"] && memory == Memory::Cold);
        assert!(sizes == [5000, 20] && common.json == Some("out.json".into()));
        let cli = Cli::from_arg_matches(&command().get_matches_from(["x", "scale"])).unwrap();
        let Command::Scale { common, sizes } = cli.command else { panic!("it is about scale") };
        assert_eq!((common.rounds, sizes), (3, vec![1_000_000, 10_000_000, 100_000_000]));
    }
}
