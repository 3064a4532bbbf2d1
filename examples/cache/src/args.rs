//! The command line.

use std::net::SocketAddr;

use clap::Parser;

use crate::commands::config::Settings;

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
    pub(crate) threads: Option<u16>,

    /// Where metrics are served over HTTP; port 0 picks one, and the second line of output names it
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}
