//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;

use crate::commands::config::{Settings, parse_bytes};

/// A cache that Redis clients talk to: a thread a core, each with a poller, a shard of timers, and
/// its share of the keys
#[derive(Clone, Debug, Parser)]
#[command(name = "cache")]
pub(crate) struct Args {
    /// Where clients connect; port 0 picks one. The first line of output names the address
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379")]
    pub(crate) listen: SocketAddr,

    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Password that clients have to give (AUTH, HELLO)
    #[arg(long, value_name = "PASSWORD")]
    requirepass: Option<String>,

    /// Memory for keys and buffers, for example 100mb: beyond it, commands that need more are
    /// refused; 0 is no limit
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    maxmemory: u64,

    /// Clients at the same time
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: u32,

    /// Time after which an idle connection is closed, for example 30s or 5min; 0s is never
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    idle_timeout: Duration,

    /// Where metrics are served over HTTP; port 0 picks one, and the second line of output names it
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text.as_bytes()).map_err(|_| "expected a number of bytes, for example 100mb".to_owned())
}

impl Args {
    /// The number of threads on a machine with this number of cores.
    pub(crate) fn threads(&self, cores: usize) -> usize {
        self.threads.map_or(cores.max(1), usize::from)
    }

    pub(crate) fn settings(&self, port: u16) -> Settings {
        Settings {
            max_memory: self.maxmemory,
            max_clients: self.max_clients as usize,
            idle_timeout: self.idle_timeout,
            password: self.requirepass.clone().unwrap_or_default().into_bytes(),
            port,
            ..Settings::default()
        }
    }
}
