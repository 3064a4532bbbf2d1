//! Order reconciliation: what a shop does with a timer for each of a million orders.
//!
//! Several producer threads place the orders. Placing one adds it to the stock reserved for its item and
//! schedules a check thirty minutes later. The check compares the order with the payments that came in, and
//! either confirms it or takes the reservation back. The rules:
//!
//! - One payment that covers the whole order ends it at once: its check is cancelled (*paid early*).
//! - Payments in parts are only added up. The check *confirms* the order if the sum is its amount to the
//!   cent, and *releases* it otherwise: unpaid, paid too little, or too much.
//! - A payment that comes after the check was due, for an order that was paid before, or for one that was
//!   never accepted, is returned.
//! - An order for more than what is left of its item is refused (*sold out*) and gets no check.
//!
//! Where to read on, from the bottom up:
//!
//! | file | what |
//! |---|---|
//! | `engine.rs` | what the job asks of a timer; what each operation costs |
//! | `wheel.rs`, `timer.rs` | shardwheel: its ground floor for the virtual clock, its `Timer` for the real one |
//! | `heap.rs` | the other engine: a binary heap behind a mutex, for both clocks |
//! | `input.rs`, `generate.rs` | orders and payments: read from CSV, or made from a seed |
//! | `ledger.rs` | stock, the state of each order, payments: no threads, no timers |
//! | `load.rs` | from orders and payments to a ledger and each producer's timeline |
//! | `producer.rs`, `checker.rs` | the two halves at work: schedule and cancel; advance and check. A `Timer` needs no checker |
//! | `clock.rs`, `replay.rs`, `real.rs` | the two clocks: thirty minutes in seconds, or as they pass |
//! | `audit.rs`, `report.rs`, `figures.rs` | the identities that must hold; the table and the JSON; the `Timer`'s part in them |

mod args;
mod audit;
mod checker;
mod clock;
mod engine;
mod figures;
mod generate;
mod heap;
mod input;
mod ledger;
mod load;
mod producer;
mod progress;
mod real;
mod replay;
mod report;
mod timer;
mod wheel;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::process::ExitCode;
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

/// All identities hold.
const EXIT_OK: u8 = 0;
/// At least one identity does not hold.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, a file that cannot be read or written, or a timer that cannot be built.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut streams = Streams { input: &mut io::stdin(), out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(std::env::args_os(), &mut streams))
}

/// The three standard streams, so that a test can give its own.
pub(crate) struct Streams<'a> {
    pub(crate) input: &'a mut dyn Read,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) err: &'a mut dyn Write,
}

/// The whole program but for the process around it; returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    let args = match Args::read(args) {
        Ok(args) => args,
        Err(refusal) => return refuse(&refusal, streams),
    };
    match execute(&args, streams) {
        Ok(code) => code,
        Err(failure) => {
            // Nothing is left to be done where even standard error is closed.
            let _ = writeln!(streams.err, "error: {failure}");
            EXIT_USAGE
        }
    }
}

/// Prints what clap has to say: help and version are no error.
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

/// A reader that has seen enough, as `head` has, is no failure.
fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
        .map_err(Failure::Output)
}

/// Runs the job on the engine and by the clock that are asked for.
fn reconcile(args: &Args, loaded: Loaded) -> Result<Report, BuildError> {
    let check_after = args.check_after.as_micros() as Micros;
    Ok(match (args.clock, args.engine) {
        (ClockKind::Virtual, EngineKind::Shardwheel) => {
            let driver = WheelDriver::new(args.shard_count());
            play(args, loaded, |ledger, timelines| replay::replay(driver, ledger, timelines, check_after))
        }
        (ClockKind::Virtual, EngineKind::Heap) => {
            let driver = HeapDriver::new();
            play(args, loaded, |ledger, timelines| replay::replay(driver, ledger, timelines, check_after))
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

pub(crate) fn exit_code(all_hold: bool) -> u8 {
    if all_hold { EXIT_OK } else { EXIT_BROKEN }
}

/// Why the job could not be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file could not be opened, read, created or written.
    File { name: String, error: io::Error },
    /// A file is not what it was given as.
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
