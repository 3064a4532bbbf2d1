//! Orders over a network: the rules of the example `order-reconciliation` as a service.
//!
//! Each order reserves stock, and a check thirty minutes later compares it with its payments.
//!
//! | folder | what |
//! |---|---|
//! | `serve/` | the subcommand `serve`: orders over HTTP, kept on disk |
//! | `store/` | what survives the process, behind a trait |
//! | `cluster/` | `serve --nats`: orders over a message broker, decided by many workers |
//! | `feed/` | the subcommand `feed`: sends CSV files to a server, across its crashes |
//! | `audit/` | the subcommand `audit`: compares a server's outcomes with those of a replay |
//!
//! `order_reconciliation::rules` decides orders, for all of them, and
//! `order_reconciliation::outcomes` replays them; `client.rs` is the HTTP client of `feed` and
//! `audit`; `exchange.rs` has their common arguments; `log.rs` writes to standard error; `token.rs`
//! finds a server's token; `cli.rs` reads the command line.

#[macro_use]
mod log;

mod audit;
mod cli;
mod client;
mod cluster;
mod exchange;
mod feed;
#[cfg(test)]
mod scarce;
mod serve;
pub mod store;
mod token;

use std::ffi::OsString;

use cli::{Cli, Command};

pub use order_reconciliation::Streams;

/// All went well; for `audit`, there is no difference.
pub(crate) const EXIT_OK: u8 = 0;
/// An audit has found a difference, or a server has found a line invalid.
pub(crate) const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, a file that cannot be read or written, or a server that does not answer.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Runs the whole program inside the process; returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    match Cli::read(args) {
        Ok(Command::Serve(args)) => serve::run(&args, streams),
        Ok(Command::Feed(args)) => feed::run(&args, streams),
        Ok(Command::Audit(args)) => audit::run(&args, streams),
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
