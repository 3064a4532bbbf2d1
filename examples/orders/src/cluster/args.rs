//! The arguments of `serve --nats`.

use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use order_reconciliation::durations;

/// Decides partitions of a shop that a NATS cluster keeps.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "cluster")]
pub(crate) struct Args {
    /// Work with others over NATS JetStream, on the servers at these addresses, separated by commas
    #[arg(long, value_name = "URL[,URL...]", conflicts_with = "data")]
    pub(crate) nats: Option<String>,

    /// The name of this worker; no other worker may have it [default: a random one]
    #[arg(long, value_name = "NAME", required = false, value_parser = worker_name)]
    #[arg(default_value_t = format!("worker-{:08x}", fastrand::u32(..)), hide_default_value = true)]
    pub(crate) worker: String,

    /// Number of partitions. It is the same for all workers, for ever
    #[arg(long, value_name = "P", default_value_t = 16, value_parser = partitions())]
    pub(crate) partitions: u32,

    /// Number of servers that keep each message: 1, 3 or 5
    #[arg(long, value_name = "R", default_value = "1", value_parser = replicas)]
    pub(crate) replicas: usize,

    /// After which silence other workers take over. It is the same for all workers, for ever
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = lease)]
    pub(crate) lease: Duration,

    /// How long an order that has ended is known. If it is sent again later, it is a new order
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = durations::parse)]
    pub(crate) remember: Duration,

    /// Lines of a partition between two snapshots, at least
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) snapshot_every: usize,
}

fn worker_name(text: &str) -> Result<String, String> {
    let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if (1..=64).contains(&text.len()) && letters {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 64 letters, digits, hyphens and underscores".to_owned())
}

/// An owner renews its lease three times in its length, and each takes a while.
fn lease(text: &str) -> Result<Duration, String> {
    let lease = durations::parse(text)?;
    let enough = lease >= Duration::from_millis(100);
    if enough { Ok(lease) } else { Err("a lease has at least 100ms".to_owned()) }
}

fn replicas(text: &str) -> Result<usize, String> {
    let replicas = text.parse().ok().filter(|replicas| [1, 3, 5].contains(replicas));
    replicas.ok_or_else(|| "it must be 1, 3 or 5".to_owned())
}

fn partitions() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=4096)
}
