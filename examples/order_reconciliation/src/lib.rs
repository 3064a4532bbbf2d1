//! Order reconciliation: a shop with one timer for each of a million orders.
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
//! The whole job runs inside one process, in memory. The example `orders` serves orders over HTTP
//! and over a message broker. It uses what is public here: the rules, the files and the outcomes.
//!
//! The files, from the bottom up:
//!
//! | file | what |
//! |---|---|
//! | `engine.rs` | what the job needs from a timer; the cost of each operation |
//! | `wheel.rs`, `timer.rs` | shardwheel: shards for the virtual clock, a `Timer` for the real clock |
//! | `heap.rs` | the other engine: a binary heap behind a mutex, for both clocks |
//! | `rules.rs` | decides an order: no clock, no timer, no store |
//! | `input.rs`, `generate.rs` | orders and payments: read from CSV, or generated from a seed |
//! | `ledger.rs` | stock, the state of each order, payments: no threads, no timers |
//! | `load.rs` | turns orders and payments into a ledger and a timeline for each producer |
//! | `producer.rs`, `checker.rs` | the two halves: schedule and cancel; advance and check (a `Timer` needs no checker) |
//! | `clock.rs`, `slices.rs`, `real.rs` | the two clocks: thirty minutes in seconds, or in real time |
//! | `audit.rs`, `report.rs`, `figures.rs` | the identities that must hold; the table and the JSON; the `Timer`'s statistics |
//! | `args.rs`, `durations.rs`, `progress.rs` | the command line; the progress bar |
//! | `files.rs`, `outcomes.rs` | for `orders`: the records of two files as they are; how each order ends |

mod args;
mod audit;
mod checker;
mod clock;
pub mod durations;
mod engine;
mod figures;
pub mod files;
mod generate;
mod heap;
mod input;
mod ledger;
mod load;
pub mod outcomes;
mod producer;
pub mod progress;
mod real;
mod report;
pub mod rules;
mod slices;
mod timer;
mod wheel;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use shardwheel::BuildError;

use args::{Args, ClockKind, EngineKind};
use audit::Audit;
use checker::Measured;
use heap::HeapDriver;
use ledger::{Ledger, Micros};
use load::{Loaded, Timeline};
use report::Report;
use wheel::WheelDriver;

pub use input::HeaderError;

/// All went well: all identities hold.
const EXIT_OK: u8 = 0;
/// At least one identity does not hold.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, a file that cannot be read or written, or a timer that cannot be built.
const EXIT_USAGE: u8 = 2;

/// The three standard streams; a test passes its own.
pub struct Streams<'a> {
    /// Standard input.
    pub input: &'a mut dyn Read,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

/// Runs the whole program inside the process; returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    match Args::read(args) {
        Ok(args) => execute(&args, streams).unwrap_or_else(|failure| {
            // If standard error is closed too, nothing can be reported.
            let _ = writeln!(streams.err, "error: {failure}");
            EXIT_USAGE
        }),
        Err(refusal) => refuse(&refusal, streams),
    }
}

/// Prints clap's message: help and version are no errors.
fn refuse(refusal: &clap::Error, streams: &mut Streams<'_>) -> u8 {
    let text = refusal.render();
    let (stream, code) =
        if refusal.use_stderr() { (&mut *streams.err, EXIT_USAGE) } else { (&mut *streams.out, EXIT_OK) };
    let _ = write!(stream, "{text}");
    code
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
pub enum Failure {
    /// A file could not be opened, read, created or written.
    File {
        /// The file.
        name: String,
        /// What went wrong.
        error: io::Error,
    },
    /// A file does not have the expected header.
    Header {
        /// The file.
        name: String,
        /// What it has instead.
        error: HeaderError,
    },
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
