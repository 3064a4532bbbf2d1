//! The arguments of `feed`.

use std::time::Duration;

use order_reconciliation::durations;

use crate::exchange;

/// Sends orders and payments from CSV files to a server
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) exchange: exchange::Args,

    /// The server: http://HOST:PORT, or nats://HOST:PORT[,...] of a cluster
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,

    /// Lines in a request, at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = exchange::up_to(2_000))]
    pub(crate) batch: usize,

    /// Connections. All orders of an item, and their payments, go over the same one
    #[arg(long, value_name = "N", default_value = "8", value_parser = exchange::up_to(256))]
    pub(crate) connections: usize,

    /// The time until the check that the files are made for. A payment dated later than this after
    /// its order is left out, but with `--speed`
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::check_after)]
    pub(crate) check_after: Duration,

    /// Sends each line at its date, this many times faster. Without this option all lines are sent as
    /// fast as the server takes them
    #[arg(long, value_name = "FACTOR", value_parser = durations::speed)]
    pub(crate) speed: Option<f64>,
}
