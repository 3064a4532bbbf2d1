//! Order reconciliation: a shop with one timer for each of a million orders.
//!
//! Several producer threads place the orders. Placing an order adds it to the reserved stock of its
//! item, and schedules a check thirty minutes later. The check compares the order with its
//! payments, and either confirms the order or takes the reservation back: `rules.rs` says when. An order
//! for more than the remaining stock of its item is refused (*sold out*) and gets no check.
//!
//! The whole job runs inside one process, in memory. The example `orders` serves orders over HTTP
//! and over a message broker. It uses what is public here: the rules, the files and the outcomes.
//!
//! The files, from the bottom up:
//!
//! | file | what |
//! |---|---|
//! | `engine.rs` | what the job needs from a timer; the cost of each operation |
//! | `wheel.rs` | shardwheel: shards |
//! | `heap.rs` | the other engine: a binary heap behind a mutex |
//! | `rules.rs` | decides an order: no clock, no timer, no store |
//! | `input.rs`, `generate.rs`, `files.rs` | orders and payments: read from CSV, or generated from a seed |
//! | `ledger.rs` | stock, the state of each order, payments: no threads, no timers |
//! | `plan.rs` | turns orders and payments into a ledger and a timeline for each producer |
//! | `producer.rs`, `replay.rs` | the two halves: schedule and cancel; advance and check |
//! | `audit.rs`, `report.rs` | the identities that must hold; the report |
//! | `args.rs`, `durations.rs` | the command line |
//! | `outcomes.rs` | for `orders`: how each order ends |

mod args;
mod audit;
pub mod durations;
mod engine;
pub mod files;
mod generate;
mod heap;
mod input;
mod ledger;
pub mod outcomes;
mod plan;
mod producer;
mod replay;
mod report;
pub mod rules;
mod wheel;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

use args::Args;
use audit::Audit;
use engine::Driver;
use files::{Files, Lines};
use heap::Heap;
use ledger::Ledger;
use plan::Plan;
use report::{Report, Run};
use wheel::WheelDriver;

pub use input::is_visible;

/// All went well: all identities hold.
const EXIT_OK: u8 = 0;
/// At least one identity does not hold.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, or a file that cannot be read or written.
const EXIT_USAGE: u8 = 2;

/// Passes of each engine. In the first one, the memory that the engine touches
/// is new to the process, and may be new to the machine; that costs more than the engine itself.
const PASSES: usize = 2;

/// The streams that the program writes to; a test passes its own.
pub struct Streams<'a> {
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
        Err(refusal) => Err(Failure(format!("{refusal}\n--help lists all options"))),
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
    let files = match &args.orders {
        Some(orders) => Files::read(orders, args.payments.as_deref(), streams)?,
        None => Files::generated(&args.data_set()),
    };
    let report = reconcile(args, &files);
    printed(write!(streams.out, "{report}").and_then(|()| streams.out.flush()))?;
    Ok(if report.all_hold() { EXIT_OK } else { EXIT_BROKEN })
}

/// A closed reader, as with `head`, is no failure.
fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
        .map_err(|error| Failure(format!("standard output: {error}")))
}

/// Runs the job on each engine, in turns. The last pass is reported.
fn reconcile<'a>(args: &'a Args, files: &Files) -> Report<'a> {
    let Files { orders, payments, lines, .. } = files;
    let check_after = args.check_after.as_millis() as u64;
    let plan = Plan::of(orders, payments, args.producer_count(), args.stock, check_after);
    let mut runs = Vec::new();
    for _pass in 0..PASSES {
        runs.push(play(WheelDriver::new(args.producer_count()), &plan, *lines, check_after));
        runs.push(play(Heap::default(), &plan, *lines, check_after));
    }
    Report { args, runs }
}

/// Runs the job once.
fn play(driver: impl Driver, plan: &Plan, lines: Lines, check_after: u64) -> Run {
    let ledger = Ledger::new(plan.pages.clone());
    let costs = replay::replay(driver, &ledger, &plan.timelines, check_after);
    Run { audit: Audit::of(ledger, lines, &costs), costs }
}

/// The reason why the job failed, for the user.
#[derive(Debug)]
pub struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
