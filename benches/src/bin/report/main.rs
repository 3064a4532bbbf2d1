//! Measures what `shardwheel` promises about its cost, beside a binary heap, and prints it as Markdown.
//!
//! One process runs all engines in turns, round after round, so that a machine which slows down or speeds
//! up does so for all of them. Each figure is the median over the rounds, with the least and the greatest
//! beside it; each ratio is taken within a round first, and the median is that of the ratios. Memory is
//! measured in child processes of this one, each of which does one thing and says how much memory it had.

mod args;
mod memory;
mod producers;
mod requirements;
mod results;
mod sections;

use std::env;
use std::process::ExitCode;

use args::{Args, Request};
use results::Results;
use sections::{SECTIONS, Turn};
use shardwheel_benches::{Usage, cores, describe_machine, label, pin};

fn main() -> ExitCode {
    match Request::parse(env::args().skip(1)) {
        Ok(Request::Help) => println!("{}", args::usage()),
        Ok(Request::Child(probe)) => return memory::run_child(&probe),
        Ok(Request::Report(args)) => report(&args),
        Err(error) => {
            eprintln!("{error}\n\n{}", args::usage());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn report(args: &Args) {
    print!("# shardwheel beside a binary heap\n\n{}", describe_machine());
    println!("- pinned: {}", pin_this_thread());
    println!("- rounds: {}; figures are medians, with the least and the greatest in brackets\n", args.rounds);
    let before = Usage::now();
    let mut results = Results::default();
    for round in 0..args.rounds {
        run_round(round, args, &mut results);
    }
    if args.wants(memory::NAME) {
        memory::measure(args, &mut results);
    }
    print!("{}", before.map(Usage::describe_since).unwrap_or_default());
    print!("{}", results.tables());
    print!("{}", requirements::table(&results));
}

/// Pins this thread to the first core, and says what is pinned from now on.
fn pin_this_thread() -> &'static str {
    // The cores are counted first: a pinned thread sees only its own.
    let cores = cores();
    match (pin(0), cores) {
        (true, 2..) => "this thread to the first core, producers to the first and the second",
        (true, _) => "this thread to the only core: two producers take turns on it",
        (false, _) => "nothing: the system does not allow it",
    }
}

fn run_round(round: usize, args: &Args, results: &mut Results) {
    for section in SECTIONS.iter().filter(|section| args.wants(section.name)) {
        let sizes = if section.by_size { &args.sizes[..] } else { &args.sizes[..1] };
        for &size in sizes {
            eprintln!("round {} of {}: {}, {} timers", round + 1, args.rounds, section.name, label(size));
            (section.run)(&mut Turn { section: section.title, round, size, cold: args.cold, results });
        }
    }
}
