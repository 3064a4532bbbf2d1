//! The command line, and numbers of timers as people write them.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::names::MILLION;

const THOUSAND: usize = 1_000;

/// Measures what shardwheel costs beside its peers, and prints Markdown
#[derive(Parser)]
#[command(name = "shardwheel-benches")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// One shard beside other timer structures, on a virtual clock
    Peers(Plan),
    /// `Timer` beside timers that run in real time
    Live(Plan),
    /// Draws the charts and renews the tables again, from the figures that `tables` has left
    Chart,
    /// Measures all that the README pages show, draws the charts and renews the tables
    Tables {
        /// How often each figure is measured
        #[arg(long, default_value = "3")]
        rounds: NonZeroUsize,
    },
    /// One run, for the parent process
    #[command(hide = true)]
    Child { job: String },
}

/// What a suite runs. A section has some of these options.
#[derive(Args)]
pub(crate) struct Plan {
    /// How often each figure is measured
    #[arg(long, default_value = "5")]
    pub(crate) rounds: NonZeroUsize,
    /// Sections to run (default: all)
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Engines to run (default: all)
    #[arg(long, value_delimiter = ',')]
    pub(crate) engines: Vec<String>,
    /// Writes every figure of every round to this file, a row for each series
    #[arg(long)]
    pub(crate) figures: Option<PathBuf>,
    /// Numbers of timers
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "10k,100k,1M")]
    pub(crate) sizes: Vec<usize>,
    /// Numbers of timers in the sections that need many
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "1M")]
    pub(crate) timers: Vec<usize>,
    /// The seconds over which timers of `live` are due
    #[arg(long, value_parser = parse_span, default_value = "10")]
    pub(crate) span: Duration,
}

/// Writes a number of timers in the shortest form: `10k`, `1M`.
pub(crate) fn label(size: usize) -> String {
    match size {
        0 => "0".to_owned(),
        _ if size.is_multiple_of(MILLION) => format!("{}M", size / MILLION),
        _ if size.is_multiple_of(THOUSAND) => format!("{}k", size / THOUSAND),
        _ => size.to_string(),
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => THOUSAND,
        "m" | "M" => MILLION,
        _ => 0,
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    let size = size.filter(|&size| size > 0 && u32::try_from(size).is_ok());
    size.ok_or_else(|| "it has to be a number of timers such as 10k or 1M, below 2^32".to_owned())
}

fn parse_span(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= 3600.0);
    let span = seconds.map(Duration::from_secs_f64);
    span.ok_or_else(|| "it has to be a number of seconds above 0 and up to 3600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for size in [1, 999, 1_000, 1_500, 10_000, 1_000_000, 1_500_000, 10_000_000] {
            assert_eq!(parse_size(&label(size)), Ok(size));
        }
        for text in ["", "k", "0", "0M", "-1", "1.5M", "5000M", "99999999999999999999M", "1G", "1kM", "é"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
