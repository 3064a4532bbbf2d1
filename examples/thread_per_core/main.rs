//! Thread per core: a server whose threads each have an event loop of their own, and a shard in it.
//!
//! The threads share nothing but their handles. Each has a core, a poller, a listener with its connections,
//! and a shard whose next expiration is the timeout of its poll. Timers do two things:
//!
//! - A connection that is silent for too long is closed. Each packet puts its timer off, in place.
//! - A client may ask to be reminded after some time. The thread that hears it schedules that on the *next*
//!   thread's shard, which wakes that thread if it meant to sleep for longer; when the timer fires there, the
//!   reminder is sent back the same way, as a timer that is due at once.
//!
//! The program plays its own clients, from one more thread: a third keeps talking, a third falls silent, a
//! third asks for reminders. In the end it prints what was counted on either side, how late timers fired and
//! how often threads woke, and whether it all balances; the exit code is 1 if it does not.
//!
//! | file | what |
//! |---|---|
//! | `event_loop.rs` | **the pattern**: one thread, one poller, one shard; start here |
//! | `clock.rs` | ticks, and the timeout of a poll |
//! | `worker.rs` | a serving thread: connections, idle timeouts, reminders |
//! | `server.rs` | all serving threads: start, cores, stop |
//! | `wire.rs` | what clients and servers say |
//! | `client.rs`, `crowd.rs` | one client, and how it judges the server; all of them |
//! | `tally.rs`, `report.rs` | what is counted; the table, and what must hold for it |
//! | `args.rs` | the command line |

mod args;
mod client;
pub(crate) mod clock;
mod crowd;
pub(crate) mod event_loop;
mod report;
mod server;
mod tally;
mod wire;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use args::Args;
use clap::Parser;
use clock::Clock;
use crowd::Plan;
use report::Report;
use server::Server;
use shardwheel::Config;

/// All counts balance.
const EXIT_OK: u8 = 0;
/// At least one does not.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, or sockets that cannot be had.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os(), &mut io::stdout(), &mut io::stderr()))
}

/// The whole program but for the process around it; returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(refusal) => return refuse(&refusal, out, err),
    };
    // Where a stream cannot be written, nothing is left to be said about it.
    match serve(&args) {
        Ok(report) => {
            let _ = write!(out, "{report}");
            if report.all_hold() { EXIT_OK } else { EXIT_BROKEN }
        }
        Err(failure) => {
            let _ = writeln!(err, "error: {failure}");
            EXIT_USAGE
        }
    }
}

/// Prints what clap has to say: help is no error.
fn refuse(refusal: &clap::Error, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let text = refusal.render();
    if refusal.use_stderr() {
        let _ = write!(err, "{text}");
        return EXIT_USAGE;
    }
    let _ = write!(out, "{text}");
    EXIT_OK
}

/// Starts the server, plays the clients, and stops the server.
fn serve(args: &Args) -> io::Result<Report> {
    // Asked before a thread is pinned, which from then on sees only its own.
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let (threads, clients) = (args.threads(cores.len()), args.clients());
    let (idle_timeout, talk) = (args.idle_timeout(), args.talk());
    let clock = Clock::start_now(Config::default());
    let server = Server::start(threads, &cores, idle_timeout, &clock)?;
    let plan = Plan { clients, addresses: server.addresses().to_vec(), idle_timeout, talk };
    let story = crowd::play(plan, &clock)?;
    let tally = server.stop()?;
    Ok(Report { threads, clients, talk, idle_timeout, tally, story })
}
