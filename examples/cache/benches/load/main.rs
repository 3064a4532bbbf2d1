//! Loads for a cache or a Redis that is already running, and what they show.
//!
//! ```text
//! cargo bench -p cache --bench load -- burst --port 6379 --pid 1234
//! ```
//!
//! | load | what it shows |
//! |---|---|
//! | `burst` | keys that expire within one second, under GETs at a fixed rate: how late events are, how long GETs take, when memory is back |
//! | `expiry` | a thousand keys that are due at one instant, beside others that are not: how many events come within half a minute, and how late |
//! | `memory` | bytes a key, of keys with a time to live |
//! | `churn` | memory while keys come and expire for some minutes |
//! | `idle` | connections that fall silent: when they are closed |
//! | `stuck` | GETs beside clients that stop in the middle of a command |
//!
//! `benches/compare.sh` starts both servers and runs all of it, in turns.

mod loads;
mod wire;

use clap::{Parser, ValueEnum};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Load {
    Burst,
    Expiry,
    Memory,
    Churn,
    Idle,
    Stuck,
}

/// Loads for a server that is already running
#[derive(Clone, Debug, Parser)]
#[command(name = "load")]
struct Args {
    load: Load,
    #[arg(long)]
    port: u16,
    /// The server's process, whose memory is looked at
    #[arg(long)]
    pid: u32,
    /// Keys, for `expiry` those that are not due, or for `idle` and `stuck` connections
    #[arg(long, default_value_t = 1_000_000)]
    number: u64,
    /// GETs a second
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    /// How long `churn` and `stuck` take
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// What cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    match args.load {
        Load::Burst => loads::burst(&args),
        Load::Expiry => loads::expiry(&args),
        Load::Memory => loads::memory(&args),
        Load::Churn => loads::churn(&args),
        Load::Idle => loads::idle(&args),
        Load::Stuck => loads::stuck(&args),
    }
}
