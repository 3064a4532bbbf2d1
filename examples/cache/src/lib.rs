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

/// Runs the server until it receives a signal to stop.
pub fn run() -> io::Result<()> {
    server::serve(commands::config::Settings::parse(), &mut io::stdout())
}
