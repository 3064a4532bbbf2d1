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

/// Runs the server until it receives a signal to stop. Its threads call `give_back` when they have freed much memory, so
/// that the allocator gives what is free in the calling thread back to the system.
pub fn run(give_back: fn()) -> io::Result<()> {
    server::serve(commands::config::Settings::parse(), give_back, &mut io::stdout())
}
