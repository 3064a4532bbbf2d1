//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};

use crate::durations;
use crate::generate::{DataSet, Shares};

/// The default time until the check. Files hold data for this time.
pub(crate) const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

/// The name of standard input on the command line.
pub(crate) const STDIN: &str = "-";
/// More producers than this only wait for each other.
const MAX_PRODUCERS: u32 = 64;

/// The arguments that describe the generated data set.
const GENERATING: [&str; 6] = ["count", "unpaid", "mismatch", "in_parts", "items", "seed"];

/// Places orders, checks each after thirty minutes, and reconciles it with its payments
#[derive(Clone, Debug, Parser)]
#[command(name = "order-reconciliation")]
pub(crate) struct Args {
    /// Orders to place: CSV with a header and the columns order id, item, quantity, amount in
    /// cents, placed at (ms); `-` is standard input. Without this option a data set is generated
    #[arg(long, value_name = "FILE", conflicts_with_all = GENERATING)]
    pub(crate) orders: Option<PathBuf>,

    /// Payments that come in, in any order: CSV with a header and the columns order id, amount in
    /// cents, paid at (ms); `-` is standard input
    #[arg(long, value_name = "FILE", requires = "orders")]
    pub(crate) payments: Option<PathBuf>,

    /// How many orders to generate
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = positive)]
    pub(crate) count: u32,

    /// Share of the generated orders that are unpaid when their check fires; some of them are paid
    /// after it
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) unpaid: f64,

    /// Share of the generated orders that are paid with a different amount
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub(crate) mismatch: f64,

    /// Share of the generated orders that are paid in several parts, which the check adds up
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) in_parts: f64,

    /// Number of different items in the generated orders
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = positive)]
    pub(crate) items: u32,

    /// Seed of the generated data set: the same seed makes the same orders and payments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Number of units in stock of each item
    #[arg(long, value_name = "UNITS", default_value_t = 1_000_000)]
    pub(crate) stock: u64,

    /// Write a generated data set to orders.csv and payments.csv in this directory, and exit. Its
    /// times are for a check after 30m
    #[arg(long, value_name = "DIR", conflicts_with_all = ["orders", "check_after", "clock", "speed"])]
    pub(crate) write_sample: Option<PathBuf>,

    /// Threads that place orders and take payments [default: one per core, from 2 to 8]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) producers: Option<u32>,

    /// `virtual` replays the data set as fast as possible; `real` takes the real time, and the
    /// checks are callbacks of a `Timer` (with `--engine heap`, a thread waits for them and makes
    /// them)
    #[arg(long, value_enum, default_value_t = ClockKind::Virtual)]
    pub(crate) clock: ClockKind,

    /// Time from placing an order to its check: a number and ms, s, m or h
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::check_after)]
    pub(crate) check_after: Duration,

    /// With the real clock: how many times faster than their dates orders and payments come in
    /// [default: 1; for files, 30m divided by --check-after]
    #[arg(long, value_name = "FACTOR", value_parser = durations::speed)]
    pub(crate) speed: Option<f64>,

    /// The engine that keeps the timers
    #[arg(long, value_enum, default_value_t = EngineKind::Shardwheel)]
    pub(crate) engine: EngineKind,

    /// Number of shards that the producers share, with `--engine shardwheel` [default: one per
    /// producer]. With the real clock the timer has as many threads
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) shards: Option<u32>,

    /// With `--clock real --engine shardwheel`: pin each shard's thread to a core of its own
    #[arg(long)]
    pub(crate) pin_to_cores: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What moves the timers' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockKind {
    Virtual,
    Real,
}

/// The engine that keeps the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineKind {
    /// This crate's shards
    Shardwheel,
    /// A binary heap behind a mutex, which skips cancelled timers when they reach the top
    Heap,
}

impl Args {
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args = Self::try_parse_from(args)?;
        match args.contradiction() {
            Some(text) => Err(Self::command().error(ErrorKind::ArgumentConflict, text)),
            None => Ok(args),
        }
    }

    /// The error in the arguments as a whole, if any.
    fn contradiction(&self) -> Option<String> {
        let shares = self.unpaid + self.mismatch + self.in_parts;
        let is_stdin = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new(STDIN));
        if shares > 1.0 {
            Some(format!(
                "--unpaid, --mismatch and --in-parts add up to {shares}; together they are at most 1"
            ))
        } else if is_stdin(&self.orders) && is_stdin(&self.payments) {
            Some("--orders and --payments are both standard input; one of them must be a file".to_owned())
        } else if self.speed.is_some() && self.clock == ClockKind::Virtual {
            Some("--speed is for --clock real; the virtual clock goes as fast as it can".to_owned())
        } else if self.pin_to_cores && !self.is_on_timer() {
            Some(
                "--pin-to-cores is for --clock real --engine shardwheel; nothing else has threads to pin"
                    .to_owned(),
            )
        } else {
            None
        }
    }

    pub(crate) fn data_set(&self) -> DataSet {
        let Self { count, items, seed, unpaid, mismatch, in_parts, check_after, .. } = *self;
        DataSet { count, items, seed, shares: Shares { unpaid, mismatch, in_parts }, check_after }
    }

    /// How many times faster than their dates orders and payments come in. A generated data set is
    /// made for the requested check, so its default is 1.
    pub(crate) fn effective_speed(&self) -> f64 {
        let fitting = || match (self.clock, &self.orders) {
            (ClockKind::Real, Some(_)) => HALF_AN_HOUR.as_secs_f64() / self.check_after.as_secs_f64(),
            _ => 1.0,
        };
        self.speed.unwrap_or_else(fitting)
    }

    pub(crate) fn producer_count(&self) -> u32 {
        let one_per_core =
            || thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8) as u32);
        self.producers.unwrap_or_else(one_per_core)
    }

    /// Whether a `Timer` runs the checks.
    fn is_on_timer(&self) -> bool {
        (self.clock, self.engine) == (ClockKind::Real, EngineKind::Shardwheel)
    }

    pub(crate) fn shard_count(&self) -> u32 {
        self.shards.unwrap_or_else(|| self.producer_count())
    }
}

fn positive(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("it is a whole number from 1 to {}", u32::MAX))
}

fn threads(text: &str) -> Result<u32, String> {
    let number = positive(text).ok().filter(|&number| number <= MAX_PRODUCERS);
    number.ok_or_else(|| format!("it is a whole number from 1 to {MAX_PRODUCERS}"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Args, String> {
        let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
        Args::read(args).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_wrong_time_until_the_check_is_refused() {
        let refusal = read(&["--check-after", "10x"]).unwrap_err();
        assert!(
            refusal.contains("'10x'") && refusal.contains("--check-after") && refusal.contains("30m"),
            "{refusal}"
        );
        assert!(read(&["--check-after", "0s"]).unwrap_err().contains("'0s'"));
    }

    #[test]
    fn shares_are_from_0_to_1_and_so_is_their_sum() {
        for wrong in ["-0.1", "1.1", "NaN", "half"] {
            let refusal = read(&[&format!("--unpaid={wrong}")]).unwrap_err();
            assert!(refusal.contains(wrong) && refusal.contains("--unpaid"), "{refusal}");
        }
        assert!(read(&["--unpaid", "0.5", "--mismatch", "0.5"]).unwrap_err().contains("1.1"));
        assert!(read(&["--unpaid", "0.5", "--mismatch", "0.5", "--in-parts", "0"]).is_ok());
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(read(&["--orders", "-", "--payments", "-"]).unwrap_err().contains("standard input"));
        assert!(read(&["--orders", "-", "--payments", "p.csv"]).is_ok());
        assert!(read(&["--payments", "p.csv"]).unwrap_err().contains("--orders"));
        assert!(read(&["--orders", "o.csv", "--count", "5"]).is_err());
        assert!(read(&["--speed", "2"]).unwrap_err().contains("--clock real"));
        assert!(read(&["--pin-to-cores"]).unwrap_err().contains("--clock real"));
        assert!(read(&["--pin-to-cores", "--clock", "real"]).is_ok());
        assert!(read(&["--pin-to-cores", "--clock", "real", "--engine", "heap"]).is_err());
        assert!(read(&["--count", "0"]).is_err() && read(&["--producers", "0"]).is_err());
    }

    #[test]
    fn files_come_in_faster_so_that_half_an_hour_lasts_as_long_as_the_check() {
        let speed = |args: &[&str]| read(args).map(|args| args.effective_speed());
        assert_eq!(speed(&["--orders", "o", "--clock", "real", "--check-after", "10s"]), Ok(180.0));
        assert_eq!(
            speed(&["--orders", "o", "--clock", "real", "--check-after", "10s", "--speed", "1"]),
            Ok(1.0)
        );
        assert_eq!(speed(&["--clock", "real", "--check-after", "10s"]), Ok(1.0));
        assert_eq!(speed(&["--orders", "o", "--check-after", "10s"]), Ok(1.0));
    }
}
