//! What the server promises besides the semantics of commands: limits, time, messages, counts, an
//! orderly end.

mod drain;
mod limits;
mod messages;
mod observe;
mod operation;
#[path = "../support/mod.rs"]
mod support;
mod time;
mod transactions;
mod traps;

/// Two threads, so that half of all keys belong to another thread than the client.
const TWO: &[&str] = &["--threads", "2"];
