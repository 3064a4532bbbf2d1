//! Sets timers that run in real time beside one another, and prints what they cost as Markdown.
//!
//! Each run is a child process of this one with one engine in it. The engines take turns, round after round, a
//! different one first in each, so that a machine which slows down or speeds up does so for all of them. Each
//! figure is the median over the rounds, with the least and the greatest beside it; each ratio is taken within a
//! round first, and the median is that of the ratios.
//!
//! | engine | what it is |
//! |---|---|
//! | `shardwheel` | a `Timer` with two shards, calling closures |
//! | `shardwheel sleeps` | the same, waking sleeps |
//! | `shardwheel one shard` | one shard, large wheels |
//! | `tokio` | the timer of a runtime with two workers, without tasks |
//! | `tokio in tasks` | the same, sleeps made by a task on a worker |
//! | `tokio alternative`, in tasks too | both with the timer that `--cfg tokio_unstable` brings; in programs built so |
//! | `heap thread` | `Mutex<BinaryHeap>`, a condition variable and a thread, going by the deadlines themselves |
//! | `heap thread on ticks` | the same, deadlines rounded up to ticks |
//! | `pingora-timeout` | its fast timer: a map for each thread, shared entries, ticks of 10 ms |
//! | `async-io` | the timer that `smol` runs on: an ordered map behind a mutex |
//! | `futures-timer` | a heap in a thread, fed through a list without a lock |

mod args;
mod async_io;
mod child;
mod engine;
mod fire;
mod futures_timer;
mod heap_thread;
mod idle;
mod ledger;
mod pingora;
mod requirements;
mod results;
mod schedule;
mod sections;
mod sleeps;
mod switches;
mod tokio_tasks;
mod tokio_time;
mod wheel;

use std::env;
use std::process::ExitCode;

use args::{Args, Request};
use engine::Live;
use results::Results;
use sections::{SECTIONS, Section};
use serde_json::json;
use shardwheel_benches::{Requirement, Usage, describe_machine, keep, label};
use wheel::Wheel;

/// Says which engines this build does not have.
const LEFT_OUT: &str = if cfg!(tokio_unstable) {
    ""
} else {
    "- left out: `tokio alternative`, in tasks too, which takes a build with `RUSTFLAGS=\"--cfg tokio_unstable\"`\n"
};

fn main() -> ExitCode {
    match Request::parse(env::args().skip(1)) {
        Ok(Request::Help) => println!("{}", args::usage()),
        Ok(Request::Child(run, args)) => child::run(run, &args),
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
    print!("{conditions}{}{}", results.tables(), Requirement::table(&requirements));
    let requirements = requirements.iter().map(Requirement::json).collect::<Vec<_>>();
    let all = json!({
        "heading": heading,
        "conditions": conditions.trim(),
        "figures": results.json(),
        "requirements": requirements,
    });
    let kept = keep(args.json.as_deref(), args.charts.as_deref(), &all);
    if results.complete() && kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn heading(args: &Args) -> String {
    format!(
        "# Live timers\n\n{}\
         - fire: {} timers, due over {:?}\n\
         - rounds: {}; figures are medians, with the least and the greatest in brackets; after ×, how many times the \
         figure of `{}` it is\n{}\n",
        describe_machine(),
        label(args.plan.timers),
        args.plan.span,
        args.rounds,
        Wheel::NAME,
        LEFT_OUT
    )
}

/// Lets each engine have its go, a different one first in each round.
fn run_section(section: &Section, round: usize, args: &Args, results: &mut Results) {
    for nth in 0..section.runs.len() {
        let run = &section.runs[(nth + round) % section.runs.len()];
        if !args.wants_run(run, round) || results.has_failed(section, run.engine) {
            continue;
        }
        eprintln!("round {} of {}: {}, {}", round + 1, args.rounds, section.name, run.engine);
        match child::ask(section, run, args) {
            Some(figures) => results.add(section, run.engine, figures),
            None => results.fail(section, run.engine),
        }
    }
}
