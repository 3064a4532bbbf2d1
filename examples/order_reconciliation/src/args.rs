//! The command line.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::durations;
use crate::generate::DataSet;

/// More producers than this only wait for each other.
const MAX_PRODUCERS: u32 = 64;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Places orders, checks each after thirty minutes, and reconciles it with its payments

Usage: order-reconciliation [OPTIONS]

Without --orders a data set is generated:
  --count N               How many orders to generate [default: 1000000]
  --items N               Number of different items in the orders [default: 1000]
  --seed N                The same seed makes the same orders and payments [default: 1]
  --write-sample DIR      Write the data set to orders.csv and payments.csv in this directory, and
                          exit

Or orders are read:
  --orders FILE           CSV: order_id,item,quantity,amount_cents,placed_at_ms
  --payments FILE         CSV: order_id,amount_cents,paid_at_ms; the payments may be in any order

The job:
  --stock UNITS           Number of units in stock of each item [default: 1000000]
  --check-after DURATION  Time from placing an order to its check: a number and ms, s, m or h
                          [default: 30m]
  --producers N           Threads that place orders and take payments, each with a shard of its own
                          [default: one per core, from 2 to 8]
  --help                  Print this
";

/// The arguments; [`HELP`] says what each is.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) orders: Option<PathBuf>,
    pub(crate) payments: Option<PathBuf>,
    count: u32,
    items: u32,
    seed: u64,
    pub(crate) write_sample: Option<PathBuf>,
    pub(crate) stock: u64,
    pub(crate) check_after: Duration,
    producers: Option<u32>,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            orders: None,
            payments: None,
            count: 1_000_000,
            items: 1_000,
            seed: 1,
            write_sample: None,
            stock: 1_000_000,
            check_after: Duration::from_secs(30 * 60),
            producers: None,
        }
    }
}

impl Args {
    /// Reads the command line; `None` if it asks for help.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let (mut read, mut parser) = (Self::default(), Parser::from_iter(args));
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long("orders") => read.orders = Some(parser.value()?.into()),
                Arg::Long("payments") => read.payments = Some(parser.value()?.into()),
                Arg::Long("count") => read.count = parser.value()?.parse::<NonZeroU32>()?.get(),
                Arg::Long("items") => read.items = parser.value()?.parse::<NonZeroU32>()?.get(),
                Arg::Long("seed") => read.seed = parser.value()?.parse()?,
                Arg::Long("write-sample") => read.write_sample = Some(parser.value()?.into()),
                Arg::Long("stock") => read.stock = parser.value()?.parse()?,
                Arg::Long("check-after") => {
                    read.check_after = parser.value()?.parse_with(durations::check_after)?;
                }
                Arg::Long("producers") => read.producers = Some(parser.value()?.parse_with(threads)?),
                _ => return Err(arg.unexpected()),
            }
        }
        if read.payments.is_some() && read.orders.is_none() {
            return Err("--payments needs --orders: the orders that are paid".into());
        }
        Ok(Some(read))
    }

    pub(crate) fn data_set(&self) -> DataSet {
        let Self { count, items, seed, check_after, .. } = *self;
        DataSet { count, items, seed, check_after }
    }

    pub(crate) fn producer_count(&self) -> u32 {
        let one_per_core =
            || thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8) as u32);
        self.producers.unwrap_or_else(one_per_core)
    }
}

fn threads(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_PRODUCERS).contains(number));
    number.ok_or_else(|| format!("it must be a whole number from 1 to {MAX_PRODUCERS}"))
}
