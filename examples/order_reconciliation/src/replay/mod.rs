//! `replay`: the whole job inside one process, without files that it must keep.
//!
//! Several producer threads place the orders. Placing an order adds it to the reserved stock of its
//! item, and schedules a check thirty minutes later. The check compares the order with its
//! payments, and either confirms the order or takes the reservation back. The rules:
//!
//! - One payment that covers the whole order ends it at once: its check is cancelled (*paid
//!   early*).
//! - Partial payments are only added up. The check *confirms* the order if the sum is its amount to
//!   the cent, and *releases* it otherwise: unpaid, paid too little, or paid too much.
//! - A payment is returned if it comes after the check was due, or if its order was paid before or
//!   was never accepted.
//! - An order for more than the remaining stock of its item is refused (*sold out*) and gets no
//!   check.
//!
//! The files, from the bottom up:
//!
//! | file | what |
//! |---|---|
//! | `engine.rs` | what the job needs from a timer; the cost of each operation |
//! | `wheel.rs`, `timer.rs` | shardwheel: shards for the virtual clock, a `Timer` for the real clock |
//! | `heap.rs` | the other engine: a binary heap behind a mutex, for both clocks |
//! | `input.rs`, `generate.rs` | orders and payments: read from CSV, or generated from a seed |
//! | `ledger.rs` | stock, the state of each order, payments: no threads, no timers |
//! | `load.rs` | turns orders and payments into a ledger and a timeline for each producer |
//! | `producer.rs`, `checker.rs` | the two halves: schedule and cancel; advance and check (a `Timer` needs no checker) |
//! | `clock.rs`, `slices.rs`, `real.rs` | the two clocks: thirty minutes in seconds, or in real time |
//! | `files.rs`, `outcomes.rs` | the records of two files as they are; how each order ends: for `feed` and `audit` |
//! | `audit.rs`, `report.rs`, `figures.rs` | the identities that must hold; the table and the JSON; the `Timer`'s statistics |

mod args;
mod audit;
mod checker;
mod clock;
mod engine;
mod figures;
pub(crate) mod files;
mod generate;
mod heap;
mod input;
mod ledger;
mod load;
pub(crate) mod outcomes;
mod producer;
pub(crate) mod progress;
mod real;
mod report;
mod slices;
mod timer;
mod wheel;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use shardwheel::BuildError;

use args::{ClockKind, EngineKind};
use audit::Audit;
use checker::Measured;
use heap::HeapDriver;
use ledger::{Ledger, Micros};
use load::{Loaded, Timeline};
use report::Report;
use wheel::WheelDriver;

use crate::{EXIT_BROKEN, EXIT_OK, EXIT_USAGE, Streams};

pub(crate) use args::Args;

/// Reads or generates the orders, runs the job, and prints the report; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    match execute(args, streams) {
        Ok(code) => code,
        Err(failure) => {
            // If standard error is closed too, nothing can be reported.
            let _ = writeln!(streams.err, "error: {failure}");
            EXIT_USAGE
        }
    }
}

fn execute(args: &Args, streams: &mut Streams<'_>) -> Result<u8, Failure> {
    if let Some(directory) = &args.write_sample {
        let written = generate::write_sample(&args.data_set(), directory)?;
        printed(writeln!(streams.out, "{written}"))?;
        return Ok(EXIT_OK);
    }
    let loaded = load::load(args, streams)?;
    let report = reconcile(args, loaded).map_err(Failure::Timer)?;
    printed(report.print(args.json, streams.out))?;
    Ok(exit_code(report.all_hold()))
}

/// A closed reader, as with `head`, is no failure.
fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
        .map_err(Failure::Output)
}

/// Runs the job with the requested engine and clock.
fn reconcile(args: &Args, loaded: Loaded) -> Result<Report, BuildError> {
    let check_after = args.check_after.as_micros() as Micros;
    Ok(match (args.clock, args.engine) {
        (ClockKind::Virtual, EngineKind::Shardwheel) => {
            let driver = WheelDriver::new(args.shard_count());
            play(args, loaded, |ledger, timelines| slices::replay(driver, ledger, timelines, check_after))
        }
        (ClockKind::Virtual, EngineKind::Heap) => {
            let driver = HeapDriver::new();
            play(args, loaded, |ledger, timelines| slices::replay(driver, ledger, timelines, check_after))
        }
        (ClockKind::Real, EngineKind::Shardwheel) => {
            let timer = timer::start(args.shard_count(), args.pin_to_cores)?;
            play(args, loaded, |ledger, timelines| timer::play(timer, ledger, timelines))
        }
        (ClockKind::Real, EngineKind::Heap) => {
            play(args, loaded, |ledger, timelines| real::play(HeapDriver::new(), ledger, timelines))
        }
    })
}

/// Runs the job, and reports it.
fn play(args: &Args, loaded: Loaded, job: impl FnOnce(&Arc<Ledger>, Vec<Timeline>) -> Measured) -> Report {
    let Loaded { ledger, timelines, lines } = loaded;
    let ledger = Arc::new(ledger);
    let begin = Instant::now();
    let measured = job(&ledger, timelines);
    let took = begin.elapsed();
    let ledger = Arc::into_inner(ledger).expect("all that the job has begun has ended");
    Report::new(args, Audit::of(ledger, lines, &measured), measured, took)
}

fn exit_code(all_hold: bool) -> u8 {
    if all_hold { EXIT_OK } else { EXIT_BROKEN }
}

/// The reason why the job failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file could not be opened, read, created or written.
    File { name: String, error: io::Error },
    /// A file does not have the expected header.
    Header { name: String, error: input::HeaderError },
    /// The timer could not be built.
    Timer(BuildError),
    /// Standard output could not be written.
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, error } => write!(f, "{name}: {error}"),
            Self::Header { name, error } => write!(f, "{name}: {error}"),
            Self::Timer(error) => error.fmt(f),
            Self::Output(error) => write!(f, "standard output: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broken identity gives exit code 1. The audit's own tests break the identities.
    #[test]
    fn a_broken_identity_is_exit_code_1() {
        assert_eq!([true, false].map(exit_code), [0, 1]);
    }
}
