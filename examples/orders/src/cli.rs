//! The command line: its subcommands. Each has its arguments in its own folder.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand};
use order_reconciliation::durations;

use crate::{feed, serve};

/// Takes orders over a network, checks each after thirty minutes, and reconciles it with its payments
#[derive(Clone, Debug, Parser)]
#[command(name = "orders", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// A duration that is not zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let duration = durations::parse(text)?;
    if duration.is_zero() { Err("it must be at least 1ms".to_owned()) } else { Ok(duration) }
}

/// A number from 1 to `most`.
pub(crate) fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// What the program does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Feed(feed::Args),
}

impl Cli {
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
        Self::try_parse_from(args).map(|cli| cli.command)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A build with debug assertions checks this at each start, another one never.
    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
