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
//! | `heap.rs` | the other engine: a binary heap behind a mutex, for the virtual clock |
//! | `rules.rs` | decides an order: no clock, no timer, no store |
//! | `input.rs`, `generate.rs` | orders and payments: read from CSV, or generated from a seed |
//! | `ledger.rs` | stock, the state of each order, payments: no threads, no timers |
//! | `load.rs` | turns orders and payments into a ledger and a timeline for each producer |
//! | `producer.rs`, `checker.rs` | the two halves: schedule and cancel; advance and check (a `Timer` needs no checker) |
//! | `clock.rs`, `slices.rs` | the two clocks; thirty minutes in seconds |
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
mod report;
pub mod rules;
mod slices;
mod timer;
mod wheel;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use shardwheel::BuildError;

use args::{Args, ClockKind, EngineKind};
use audit::Audit;
use checker::Measured;
use figures::Figures;
use heap::HeapDriver;
use ledger::{Ledger, Micros};
use load::Loaded;
use progress::Progress;
use report::{Lateness, Report, Run};
use wheel::WheelDriver;

pub use input::{HeaderError, is_visible};

/// All went well: all identities hold.
const EXIT_OK: u8 = 0;
/// At least one identity does not hold.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, a file that cannot be read or written, or a timer that cannot be built.
const EXIT_USAGE: u8 = 2;

/// Passes of each engine by the virtual clock. In the first one, the memory that the engine touches
/// is new to the process, and may be new to the machine; that costs more than the engine itself.
const PASSES: usize = 2;

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
    let ended = match Args::read(args) {
        Ok(Some(args)) => execute(&args, streams),
        Ok(None) => printed(write!(streams.out, "{}", args::HELP)).map(|()| EXIT_OK),
        Err(refusal) => Err(Failure::Usage(refusal.to_string())),
    };
    ended.unwrap_or_else(|failure| {
        // If standard error is closed too, nothing can be reported.
        let _ = writeln!(streams.err, "error: {failure}");
        EXIT_USAGE
    })
}

fn execute(args: &Args, streams: &mut Streams<'_>) -> Result<u8, Failure> {
    if let Some(directory) = &args.write_sample {
        let written = generate::write_sample(&args.data_set(), directory)?;
        printed(writeln!(streams.out, "{written}"))?;
        return Ok(EXIT_OK);
    }
    let loaded = load::load(args, streams)?;
    let report = reconcile(args, &loaded).map_err(Failure::Timer)?;
    printed(report.print(streams.out))?;
    Ok(exit_code(report.all_hold()))
}

/// A closed reader, as with `head`, is no failure.
fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
        .map_err(Failure::Output)
}

/// Runs the job on each engine, in turns if there are several passes. The last pass is reported.
fn reconcile<'a>(args: &'a Args, loaded: &Loaded) -> Result<Report<'a>, BuildError> {
    let passes = if args.clock == ClockKind::Virtual { PASSES } else { 1 };
    let mut runs = Vec::<Run>::new();
    for pass in 1..=passes {
        let play = |engine: EngineKind| {
            let stage = format!("{}, pass {pass} of {passes}", engine.name());
            play(args, engine, Progress::bar(&stage, loaded.order_count()), loaded.clone())
        };
        let again = args.engines().into_iter().map(play).collect::<Result<Vec<_>, _>>()?;
        let earlier = mem::replace(&mut runs, again);
        runs.iter_mut().zip(&earlier).for_each(|(run, earlier)| run.audit.hold_if(&earlier.audit));
    }
    Ok(Report::new(args, passes, runs))
}

/// Runs the job once, with an engine and the requested clock.
fn play(args: &Args, engine: EngineKind, progress: Progress, loaded: Loaded) -> Result<Run, BuildError> {
    let check_after = args.check_after.as_micros() as Micros;
    let Loaded { pages, timelines, lines } = loaded;
    let ledger = Arc::new(Ledger::new(pages));
    let begin = Instant::now();
    let measured = match (args.clock, engine) {
        (ClockKind::Virtual, EngineKind::Shardwheel) => {
            let driver = WheelDriver::new(args.shard_count());
            slices::replay(driver, &ledger, &progress, timelines, check_after)
        }
        (ClockKind::Virtual, EngineKind::Heap) => {
            slices::replay(HeapDriver::new(), &ledger, &progress, timelines, check_after)
        }
        (ClockKind::Real, _) => timer::play(timer::start(args.shard_count())?, &ledger, &progress, timelines),
    };
    let took = begin.elapsed();
    progress.finish();
    let ledger = Arc::into_inner(ledger).expect("all that the job has begun has ended");
    let audit = Audit::of(ledger, lines, &measured);
    let Measured { costs, lateness, stats } = measured;
    let (lateness, timer) = (Lateness::of(lateness), stats.as_ref().map(Figures::of));
    Ok(Run { engine, audit, costs, took, lateness, timer })
}

fn exit_code(all_hold: bool) -> u8 {
    if all_hold { EXIT_OK } else { EXIT_BROKEN }
}

/// The reason why the job failed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong; says which, and what would be right.
    Usage(String),
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
            Self::Usage(refusal) => write!(f, "{refusal}\n--help lists all options"),
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
