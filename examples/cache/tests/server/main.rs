//! What the server promises besides the semantics of commands: limits, time, messages, counts, an
//! orderly end.

mod clients;
mod drain;
mod limits;
mod memory;
mod messages;
mod observe;
mod operation;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod time;
mod transactions;
mod traps;
mod watch;

/// Two threads, so that half of all keys belong to another thread than the client.
const TWO: &[&str] = &["--threads", "2"];
