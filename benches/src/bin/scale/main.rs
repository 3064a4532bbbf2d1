//! How far one shard goes: a hundred million timers pending at once, beside one million and ten.
//!
//! Each run is a child process of this one, so that the memory is that run's alone. It schedules all, extends a tenth,
//! cancels half and fires the rest, on a virtual clock that moves a tick at a time; it counts what has become of each
//! timer, and a count or a checksum that is wrong makes the program fail. Each figure is the median over the rounds,
//! with the least and the greatest beside it.

mod args;
mod child;
mod plan;
mod results;
mod run;

use std::env;
use std::process::ExitCode;

use args::{Args, Request};
use results::Results;
use serde_json::json;
use shardwheel_benches::{Usage, describe_machine, keep, label};

fn main() -> ExitCode {
    match Request::parse(env::args().skip(1)) {
        Ok(Request::Help) => println!("{}", args::usage()),
        Ok(Request::Child(plan)) => child::run(&plan),
        Ok(Request::Report(args)) => return report(&args),
        Err(error) => {
            eprintln!("{error}\n\n{}", args::usage());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Measures and prints; fails where a run did, a count was wrong, or a file could not be written.
fn report(args: &Args) -> ExitCode {
    let heading = heading(args);
    print!("{heading}");
    let before = Usage::now();
    let mut results = Results::default();
    for round in 0..args.rounds {
        for plan in args.plans(round) {
            eprintln!("round {} of {}: {} timers", round + 1, args.rounds, label(plan.timers()));
            match child::ask(&plan) {
                Ok(outcome) => results.add(plan.timers(), outcome),
                Err(error) => results.fail(plan.timers(), &error),
            }
        }
    }
    let conditions = before.map(Usage::describe_since).unwrap_or_default();
    print!("{conditions}{}", results.tables());
    let all = json!({
        "heading": heading,
        "conditions": conditions.trim(),
        "figures": results.json(),
        "counts": results.counts(),
        "failed": results.failures(),
    });
    let kept = keep(args.json.as_deref(), None, &all);
    if results.all_right() && kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn heading(args: &Args) -> String {
    format!(
        "# One shard at its largest\n\n{}\
         - one thread, pinned to the first core where the system allows it; a virtual clock with ticks of 1 ms\n\
         - rounds: {}; figures are medians, with the least and the greatest in brackets\n\n",
        describe_machine(),
        args.rounds
    )
}
