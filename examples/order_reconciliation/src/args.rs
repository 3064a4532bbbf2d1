//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lexopt::{Arg, Parser};

use crate::durations;
use crate::generate::{DataSet, Shares};

/// The name of standard input on the command line.
pub(crate) const STDIN: &str = "-";
/// More producers than this only wait for each other.
const MAX_PRODUCERS: u32 = 64;

/// The options that describe the generated data set.
const GENERATING: [&str; 6] = ["count", "unpaid", "mismatch", "in-parts", "items", "seed"];

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Places orders, checks each after thirty minutes, and reconciles it with its payments

Usage: order-reconciliation [OPTIONS]

Without --orders a data set is generated:
  --count N               How many orders to generate [default: 1000000]
  --unpaid SHARE          Share of the orders that are unpaid when their check fires; some of them
                          are paid after it [default: 0.1]
  --mismatch SHARE        Share of the orders that are paid with a different amount [default: 0.05]
  --in-parts SHARE        Share of the orders that are paid in several parts, which the check adds
                          up [default: 0.1]
  --items N               Number of different items in the orders [default: 1000]
  --seed N                The same seed makes the same orders and payments [default: 1]
  --write-sample DIR      Write the data set to orders.csv and payments.csv in this directory, and
                          exit. Its times are for a check after 30m

Or orders are read; FILE may be `-`, which is standard input:
  --orders FILE           CSV with the columns order_id, item, quantity, amount_cents and
                          placed_at_ms, named by its header in any order
  --payments FILE         CSV with the columns order_id, amount_cents and paid_at_ms;
                          the payments may be in any order

The job:
  --stock UNITS           Number of units in stock of each item [default: 1000000]
  --check-after DURATION  Time from placing an order to its check: a number and ms, s, m or h
                          [default: 30m]
  --producers N           Threads that place orders and take payments [default: one per core, from
                          2 to 8]
  --engine ENGINE         `shardwheel`, this crate; or `heap`, a binary heap behind a mutex, which
                          skips cancelled timers when they reach the top [default: both]
  --shards N              Number of shards that the producers share, with shardwheel [default: one
                          per producer]
  --help                  Print this
";

/// The arguments; [`HELP`] says what each is.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) orders: Option<PathBuf>,
    pub(crate) payments: Option<PathBuf>,
    pub(crate) count: u32,
    unpaid: f64,
    mismatch: f64,
    in_parts: f64,
    items: u32,
    seed: u64,
    pub(crate) stock: u64,
    pub(crate) write_sample: Option<PathBuf>,
    producers: Option<u32>,
    pub(crate) check_after: Duration,
    engine: Option<EngineKind>,
    shards: Option<u32>,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            orders: None,
            payments: None,
            count: 1_000_000,
            unpaid: 0.1,
            mismatch: 0.05,
            in_parts: 0.1,
            items: 1_000,
            seed: 1,
            stock: 1_000_000,
            write_sample: None,
            producers: None,
            check_after: Duration::from_secs(30 * 60),
            engine: None,
            shards: None,
        }
    }
}

/// The engine that keeps the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// This crate's shards.
    Shardwheel,
    /// A binary heap behind a mutex.
    Heap,
}

impl EngineKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Shardwheel => "shardwheel",
            Self::Heap => "heap",
        }
    }
}

impl Args {
    /// Reads the command line; `None` if it asks for help.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let (mut read, mut given) = (Self::default(), Vec::new());
        let mut parser = Parser::from_iter(args);
        while let Some(arg) = parser.next()? {
            let name = match arg {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => name.to_owned(),
                Arg::Short(_) | Arg::Value(_) => return Err(arg.unexpected()),
            };
            read.set(&name, &mut parser)?;
            if given.contains(&name) {
                return Err(format!("--{name} is given twice").into());
            }
            given.push(name);
        }
        match conflict(&given).or_else(|| read.contradiction()) {
            Some(text) => Err(text.into()),
            None => Ok(Some(read)),
        }
    }

    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), lexopt::Error> {
        match name {
            "orders" => self.orders = Some(parser.value()?.into()),
            "payments" => self.payments = Some(parser.value()?.into()),
            "count" => self.count = value(name, parser, positive)?,
            "unpaid" => self.unpaid = value(name, parser, share)?,
            "mismatch" => self.mismatch = value(name, parser, share)?,
            "in-parts" => self.in_parts = value(name, parser, share)?,
            "items" => self.items = value(name, parser, positive)?,
            "seed" => self.seed = value(name, parser, number)?,
            "stock" => self.stock = value(name, parser, number)?,
            "write-sample" => self.write_sample = Some(parser.value()?.into()),
            "producers" => self.producers = Some(value(name, parser, threads)?),
            "check-after" => self.check_after = value(name, parser, durations::check_after)?,
            "engine" => self.engine = Some(value(name, parser, engine)?),
            "shards" => self.shards = Some(value(name, parser, threads)?),
            _ => return Err(Arg::Long(name).unexpected()),
        }
        Ok(())
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
        } else {
            None
        }
    }

    pub(crate) fn data_set(&self) -> DataSet {
        let Self { count, items, seed, unpaid, mismatch, in_parts, check_after, .. } = *self;
        DataSet { count, items, seed, shares: Shares { unpaid, mismatch, in_parts }, check_after }
    }

    pub(crate) fn producer_count(&self) -> u32 {
        let one_per_core =
            || thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8) as u32);
        self.producers.unwrap_or_else(one_per_core)
    }

    /// The engines that run.
    pub(crate) fn engines(&self) -> Vec<EngineKind> {
        self.engine.map_or_else(|| vec![EngineKind::Shardwheel, EngineKind::Heap], |engine| vec![engine])
    }

    pub(crate) fn shard_count(&self) -> u32 {
        self.shards.unwrap_or_else(|| self.producer_count())
    }
}

/// The options that exclude each other, or need each other, among those that are given.
fn conflict(given: &[String]) -> Option<String> {
    let is_given = |name: &&str| given.iter().any(|given| given == name);
    let first = |names: &[&'static str]| names.iter().copied().find(|name| is_given(name));
    let both = |one: &'static str, others: &[&'static str]| {
        first(others).filter(|_| is_given(&one)).map(|other| format!("--{other} cannot be used with --{one}"))
    };
    let alone = is_given(&"payments") && !is_given(&"orders");
    both("orders", &GENERATING)
        .or_else(|| both("write-sample", &["orders", "check-after"]))
        .or_else(|| alone.then(|| "--payments needs --orders: the orders that are paid".to_owned()))
}

/// The value of an option. What is wrong with it is said with its name.
fn value<T>(
    name: &str,
    parser: &mut Parser,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, lexopt::Error> {
    let value = parser.value()?;
    let value = value.to_string_lossy();
    parse(&value).map_err(|wrong| format!("--{name} is '{value}': {wrong}").into())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it must be a whole number from 0 to {}", u64::MAX))
}

fn positive(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("it must be a whole number from 1 to {}", u32::MAX))
}

fn threads(text: &str) -> Result<u32, String> {
    let number = positive(text).ok().filter(|&number| number <= MAX_PRODUCERS);
    number.ok_or_else(|| format!("it must be a whole number from 1 to {MAX_PRODUCERS}"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

fn engine(text: &str) -> Result<EngineKind, String> {
    let known = [EngineKind::Shardwheel, EngineKind::Heap];
    known
        .into_iter()
        .find(|engine| engine.name() == text)
        .ok_or_else(|| "it must be shardwheel or heap".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Args, String> {
        let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
        let read = Args::read(args).map_err(|refusal| refusal.to_string());
        read.map(|args| args.expect("it does not ask for help"))
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
        assert!(read(&["--count", "0"]).is_err() && read(&["--producers", "0"]).is_err());
    }

    #[test]
    fn options_are_known_once_and_may_have_their_value_behind_an_equals_sign() {
        assert_eq!(read(&["--count=7", "--seed", "2"]).map(|args| (args.count, args.seed)), Ok((7, 2)));
        assert!(read(&["--cuont", "7"]).unwrap_err().contains("--cuont"));
        assert!(read(&["--count", "7", "--count", "8"]).unwrap_err().contains("twice"));
        assert!(read(&["--count"]).unwrap_err().contains("--count"));
        assert!(read(&["replay"]).unwrap_err().contains("replay"));
        assert!(
            read(&["--write-sample", "d", "--check-after", "2s"]).unwrap_err().contains("--write-sample")
        );
    }

    #[test]
    fn each_option_of_the_help_is_known() {
        let mut parser = Parser::from_args(["1"; 40]);
        for line in HELP.lines().filter_map(|line| line.strip_prefix("  --")) {
            let name = line.split_whitespace().next().expect("a name");
            let wrong = Args::default().set(name, &mut parser).err().map(|error| error.to_string());
            assert!(name == "help" || !wrong.is_some_and(|wrong| wrong.contains("invalid option")), "{name}");
        }
    }
}
