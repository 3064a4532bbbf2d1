//! Sets timer structures beside one another on a virtual clock, on one thread and on two, and prints what they cost.
//!
//! Each run is a child process of this one with one engine in it, so that no engine finds the memory that another
//! has left. The engines take turns, round after round, a different one first in each, so that a machine which
//! slows down or speeds up does so for all of them. Each figure is the median over the rounds, with the least and
//! the greatest beside it; each ratio is taken within a round first, and the median is that of the ratios.
//!
//! All engines do the same seeded work, and what they fire is summed: an engine whose sum differs from that of
//! `shardwheel` has failed, and so has the program.

mod args;
mod child;
mod measure;
mod memory;
mod peer;
mod requirements;
mod results;
mod sections;
mod two;
mod worst;

use std::env;
use std::process::ExitCode;

use args::{Args, Request};
use peer::{ELSEWHERE, PEERS, Task};
use results::Results;
use sections::{SECTIONS, Section};
use serde_json::json;
use shardwheel_benches::{Requirement, Usage, describe_machine, keep, label};

fn main() -> ExitCode {
    match Request::parse(env::args().skip(1)) {
        Ok(Request::Help) => println!("{}", args::usage()),
        Ok(Request::Child(measure, task)) => child::run(measure, task),
        Ok(Request::Report(args)) => return report(&args),
        Err(error) => {
            eprintln!("{error}\n\n{}", args::usage());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Measures and prints; fails where a run did, or a file could not be written.
fn report(args: &Args) -> ExitCode {
    let heading = heading(args);
    print!("{heading}");
    let before = Usage::now();
    let mut results = Results::default();
    for round in 0..args.rounds {
        SECTIONS.iter().filter(|section| args.wants(section.name)).for_each(|section| {
            run_section(section, round, args, &mut results);
        });
    }
    let conditions = before.map(Usage::describe_since).unwrap_or_default();
    let requirements = requirements::all(&results);
    print!("{conditions}{}{}\n{}", results.tables(), Requirement::table(&requirements), elsewhere());
    let all = json!({
        "heading": heading,
        "conditions": conditions.trim(),
        "figures": results.json(),
        "failed": results.failures(),
        "requirements": requirements.iter().map(Requirement::json).collect::<Vec<_>>(),
    });
    let kept = keep(args.json.as_deref(), args.charts.as_deref(), &all);
    if results.complete() && kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn heading(args: &Args) -> String {
    format!(
        "# Timer structures on a virtual clock\n\n{}\
         - one thread, pinned to the first core where the system allows it, and the second of two to the second; \
         ticks of 1 ms; a process for each run\n\
         - rounds: {}; figures are medians, with the least and the greatest in brackets, and after the cross how \
         many times the figure of shardwheel that is\n\n",
        describe_machine(),
        args.rounds
    )
}

/// Lets each engine have its go at each size, a different one first in each round.
fn run_section(section: &'static Section, round: usize, args: &Args, results: &mut Results) {
    for size in section.sizes(args) {
        let task = Task { size, round };
        for nth in 0..PEERS.len() {
            let peer = &PEERS[(nth + round) % PEERS.len()];
            if (section.measure)(peer).is_none() || results.has_failed(section, peer.engine) {
                continue;
            }
            eprintln!("round {}: {}, {} timers, {}", round + 1, section.name, label(size), peer.engine);
            match child::ask(section, peer, task) {
                Ok(outcome) => results.add(section, peer.engine, task, outcome),
                Err(error) => results.fail(section, peer.engine, error.to_string()),
            }
        }
        results.compare(section, task);
    }
}

/// What is not among the engines, and why.
fn elsewhere() -> String {
    let line = |(name, why): &(&str, &str)| format!("- {name}: {why}\n");
    format!("## Not measured\n\n{}", ELSEWHERE.iter().map(line).collect::<String>())
}
