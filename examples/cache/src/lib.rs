#![doc = include_str!("../README.md")]
#![allow(clippy::unit_arg)] // A command ends with its reply: `Ok(reply.integer(1))`.

mod args;
mod clock;
mod commands;
mod desk;
mod door;
mod events;
mod keyspace;
mod mail;
mod protocol;
#[cfg(any(test, fuzzing))]
#[path = "../tests/support/sandbox.rs"]
pub mod sandbox;
mod server;
mod session;
mod shared;
mod stats;
mod store;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::Args;

/// Wrong arguments, or a server that could not run.
const EXIT_FAILED: u8 = 2;

/// Parses the requests of a buffer, as the server does, and returns the number of their arguments: for
/// the benchmark of parsers.
#[doc(hidden)]
pub fn parse_all(mut buffer: &[u8]) -> usize {
    let (mut parser, mut arguments) = (protocol::parser::Parser::default(), 0);
    while let Ok(Some(complete)) = parser.parse(buffer, true) {
        arguments += std::hint::black_box(parser.request(buffer, complete)).len();
        buffer = &buffer[complete.len..];
    }
    arguments
}

/// Runs the server with these arguments until it receives a signal to stop.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(refusal) => {
            // A stream that cannot be written cannot report that either.
            let _ = refusal.print();
            return ExitCode::from(if refusal.use_stderr() { EXIT_FAILED } else { 0 });
        }
    };
    match server::serve(&args, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
