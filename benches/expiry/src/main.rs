//! How late a map reports that its entries have expired, with a million entries and no traffic.
//!
//! Each map is filled with entries whose deadlines are spread evenly over some seconds. Then no
//! thread uses the map. The listener of each map notes when it is called. After the last deadline
//! the program waits for some more seconds, and prints how many entries were reported, and how late.

mod ledger;
mod maps;

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use ledger::Ledger;
use maps::{ENGINES, Engine};

#[derive(Clone, Copy, Parser)]
#[command(about = "How late ExpiringMap and moka report an expiry without traffic.")]
struct Args {
    /// The number of entries.
    #[arg(long, default_value_t = 1_000_000)]
    entries: usize,
    /// Seconds from the first insert to the first deadline: enough to fill the slowest map.
    #[arg(long, default_value_t = 8.0)]
    lead: f64,
    /// Seconds from the first deadline to the last.
    #[arg(long, default_value_t = 10.0)]
    span: f64,
    /// Seconds after the last deadline in which reports count.
    #[arg(long, default_value_t = 10.0)]
    window: f64,
    /// How often each map is measured.
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

fn main() {
    let args = Args::parse();
    println!(
        "{} entries, due evenly over {} s; reports within {} s after the last deadline.\n",
        args.entries, args.span, args.window
    );
    println!("| map | run | insert, ns | reported | early | late, 50 %, ms | 99 %, ms | max, ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for run in 1..=args.runs {
        for engine in &ENGINES {
            let (insert, ledger) = measure(engine, args);
            println!("| {} | {run} | {insert:.0} | {} |", engine.name, ledger.row());
        }
    }
}

/// Fills a map and waits; returns the nanoseconds of an insert.
fn measure(engine: &Engine, args: Args) -> (f64, &'static Ledger) {
    let seconds = Duration::from_secs_f64;
    // Leaked: a listener may be called after the measurement.
    let ledger: &'static Ledger =
        Box::leak(Box::new(Ledger::new(args.entries, seconds(args.lead), seconds(args.span))));
    let begin = Instant::now();
    let map = (engine.fill)(ledger);
    let filled = begin.elapsed();
    if filled > seconds(args.lead) {
        eprintln!("{}: it took {filled:?} to fill the map, longer than the lead", engine.name);
    }
    thread::sleep((ledger.last_deadline() + seconds(args.window)).saturating_duration_since(Instant::now()));
    ledger.close();
    drop(map);
    (filled.as_nanos() as f64 / args.entries as f64, ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy machine may be late, so no lateness is asserted.
    #[test]
    fn shardwheel_reports_all_and_none_early() {
        let args = Args { entries: 1_000, lead: 0.1, span: 0.2, window: 2.0, runs: 1 };
        for engine in &ENGINES {
            let (_, ledger) = measure(engine, args);
            assert_eq!(ledger.early(), 0, "{}", engine.name);
            assert!(ledger.reported() == 1_000 || !engine.name.starts_with("shardwheel"));
        }
    }
}
