//! The command line.

use std::time::Duration;

use clap::Parser;

/// A server with one event loop per core, each with a shard of timers, and clients that test it
#[derive(Clone, Debug, Parser)]
#[command(name = "thread_per_core")]
pub(crate) struct Args {
    /// Number of serving threads; each has its own core while there are cores left [default: one
    /// per core, and at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    threads: Option<u16>,

    /// Number of clients; a third keeps talking, a third falls silent, a third asks for reminders
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    clients: u32,

    /// Time in milliseconds after which a silent connection is closed
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(20..=60_000))]
    idle_timeout: u64,

    /// Time in seconds for which the clients keep talking
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

impl Args {
    pub(crate) fn threads(&self, cores: usize) -> usize {
        self.threads.map_or(cores.clamp(2, 64), usize::from)
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients as usize
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout)
    }

    pub(crate) fn talk(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
