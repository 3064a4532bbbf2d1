//! The arguments of `audit`.

use std::time::Duration;

use order_reconciliation::durations;

use crate::exchange;

/// Compares all outcomes of a server with those of a replay of the same CSV files. Exits
/// with 1 if there is a difference
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) exchange: exchange::Args,

    /// The server: http://HOST:PORT, or nats://HOST:PORT[,...] of a cluster. It holds the orders of
    /// these files, and no others
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,

    /// Number of units in stock of each item, as the server was started with
    #[arg(long, value_name = "UNITS", default_value_t = 1_000_000)]
    pub(crate) stock: u64,

    /// Time from an order to its check by the dates of the files, as for `order-reconciliation` and
    /// `feed`. It is not the `--check-after` of the server
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::check_after)]
    pub(crate) check_after: Duration,

    /// Of a cluster: replays with the times at which the shop took orders and payments in, and not
    /// with the dates of the files
    #[arg(long)]
    pub(crate) as_answered: bool,

    /// Waits until no order is pending
    #[arg(long)]
    pub(crate) wait: bool,
}
