//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use order_reconciliation::durations;

use crate::cluster;

use super::places::Limits;

/// Serves orders over HTTP, and keeps them in a directory; or decides orders together with other workers
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to keep the orders. It is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: Option<cluster::Args>,

    /// The address to listen on; port 0 picks a free one. The first line of output names it
    /// [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "nats")]
    pub(crate) listen: Option<SocketAddr>,

    /// Time from placing an order to its check: a number and ms, s, m or h
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::check_after)]
    pub(crate) check_after: Duration,

    /// Number of units in stock of each item
    #[arg(long, value_name = "UNITS", default_value_t = 1_000_000)]
    pub(crate) stock: u64,

    /// How many pending orders are in memory, about: those with the nearest checks. The others are on disk
    /// alone
    #[arg(long, value_name = "N", default_value_t = 1_000_000, conflicts_with = "nats")]
    pub(crate) in_memory: usize,

    #[command(flatten)]
    pub(crate) limits: Limits,
}
