//! Thread per core: a server whose threads each have their own event loop, with a shard in it.
//!
//! The threads share only their handles. Each thread has a core, a poller, a listener with its
//! connections, and a shard. The shard's next expiration is the timeout of the thread's poll.
//! Timers do two things:
//!
//! - They close silent connections. Each packet puts its connection's timer off, in place.
//! - They send reminders. A client may ask for a reminder after some time. The thread that receives
//!   the request schedules it on the *next* thread's shard, which wakes that thread if it would
//!   sleep for longer. When the timer fires there, the reminder goes back in the same way, as a
//!   timer that is due at once.
//!
//! The program runs its own clients, in one more thread: a third keeps talking, a third falls
//! silent, a third asks for reminders. At the end it prints the counts of both sides, how late
//! timers fired, how often threads woke, and whether the counts balance. The exit code is 1 if they
//! do not.
//!
//! | file | what |
//! |---|---|
//! | `event_loop.rs` | **the pattern**: one thread, one poller, one shard; start here |
//! | `clock.rs` | ticks, and the timeout of a poll |
//! | `worker.rs` | a serving thread: connections, idle timeouts, reminders |
//! | `server.rs` | all serving threads: start, cores, stop |
//! | `wire.rs` | the protocol of clients and servers |
//! | `client.rs`, `crowd.rs` | one client, and how it judges the server; all clients |
//! | `tally.rs`, `report.rs` | the counts; the table, and what must hold for it |
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
/// At least one count does not balance.
const EXIT_BROKEN: u8 = 1;
/// Wrong arguments, or sockets that the system refuses.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os(), &mut io::stdout(), &mut io::stderr()))
}

/// Runs the whole program inside the process; returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(refusal) => return refuse(&refusal, out, err),
    };
    // A stream that cannot be written cannot report that either.
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

/// Prints clap's message: help is no error.
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
    // Read the cores before any thread is pinned: a pinned thread sees only its own core.
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
