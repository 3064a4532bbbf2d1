#![doc = include_str!("../README.md")]
#![doc = include_str!("../DESIGN.md")]
#![allow(clippy::unit_arg)] // A command ends with its reply: `Ok(reply.integer(1))`.

mod acceptor;
mod clock;
mod commands;
mod desk;
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
mod worker;

use std::io;

use clap::Parser;

/// Parses the requests of a buffer, as the server does, and returns the number of their arguments: for
/// the benchmark of parsers.
#[doc(hidden)]
pub fn parse_all(mut buffer: &[u8]) -> usize {
    let (mut parser, mut arguments) = (protocol::parser::Parser::default(), 0);
    while let Ok(Some(len)) = parser.parse(buffer, true) {
        arguments += std::hint::black_box(parser.request(buffer)).len();
        buffer = &buffer[len..];
    }
    arguments
}

/// Runs the server until it receives a signal to stop.
pub fn run() -> io::Result<()> {
    server::serve(commands::config::Settings::parse(), &mut io::stdout())
}
