//! Orders over a network: the rules of the example `order-reconciliation` as a service.
//!
//! Each order reserves stock, and a check thirty minutes later compares it with its payments.
//!
//! | folder | what |
//! |---|---|
//! | `serve/` | the subcommand `serve`: orders over HTTP, kept on disk |
//! | `store/` | what survives the process, behind a trait |
//! | `cluster/` | `serve --nats`: orders over a message broker, decided by many workers |
//! | `feed/` | the subcommand `feed`: sends CSV files to a cluster |
//!
//! `order_reconciliation::rules` decides orders, for all of them, and
//! `order_reconciliation::outcomes` replays them; `log.rs` writes to standard error; `cli.rs` reads
//! the command line.

#[macro_use]
mod log;

mod cli;
mod cluster;
mod feed;
#[cfg(test)]
mod scarce;
mod serve;
pub mod store;

use std::error::Error;
use std::ffi::OsString;

use cli::{Cli, Command};

pub use order_reconciliation::Streams;

/// All went well.
const EXIT_OK: u8 = 0;
/// Wrong arguments, a file that cannot be read or written, or a server that does not answer.
const EXIT_USAGE: u8 = 2;

/// Why a subcommand has ended.
type Failure = Box<dyn Error + Send + Sync>;

/// Runs the whole program inside the process; returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    let ended = match Cli::read(args) {
        Ok(Command::Serve(args)) => serve::run(&args, streams),
        Ok(Command::Feed(args)) => feed::run(&args, streams),
        Err(refusal) => return refuse(&refusal, streams),
    };
    let Err(failure) = ended else { return EXIT_OK };
    // If standard error is closed too, nothing can be reported.
    let _ = writeln!(streams.err, "{} error: {failure}", log::now());
    EXIT_USAGE
}

/// Prints clap's message: help and version are no errors.
fn refuse(refusal: &clap::Error, streams: &mut Streams<'_>) -> u8 {
    let text = refusal.render();
    let (stream, code) =
        if refusal.use_stderr() { (&mut *streams.err, EXIT_USAGE) } else { (&mut *streams.out, EXIT_OK) };
    let _ = write!(stream, "{text}");
    code
}
