//! The `Timer`'s own statistics, as the report prints them.

use std::fmt;
use std::time::Duration;

use shardwheel::Stats;

use crate::report::{Lateness, list, object, row};

/// A timer's statistics.
#[derive(Debug)]
pub(crate) struct Figures {
    fired: u64,
    cancelled: u64,
    pending: u64,
    handed_back: u64,
    panics: u64,
    longest_callback_ms: f64,
    /// From the timer's histogram, counted from the tick at which a check was due.
    lateness: Lateness,
    /// Checks that each shard has fired.
    shards: Vec<u64>,
}

impl Figures {
    pub(crate) fn of(stats: &Stats) -> Self {
        let lateness = &stats.lateness;
        Self {
            fired: stats.fired,
            cancelled: stats.cancelled,
            pending: stats.pending as u64,
            handed_back: stats.handed_back,
            panics: stats.panics,
            longest_callback_ms: millis(stats.longest_callback),
            lateness: Lateness {
                p50_ms: millis(lateness.p50()),
                p99_ms: millis(lateness.p99()),
                p999_ms: millis(lateness.p999()),
                max_ms: millis(lateness.max()),
            },
            shards: stats.shards.iter().map(|shard| shard.fired).collect(),
        }
    }

    pub(crate) fn json(&self) -> String {
        let shard = |fired: &u64| object(&[("fired", fired.to_string())]);
        object(&[
            ("fired", self.fired.to_string()),
            ("cancelled", self.cancelled.to_string()),
            ("pending", self.pending.to_string()),
            ("handed_back", self.handed_back.to_string()),
            ("panics", self.panics.to_string()),
            ("longest_callback_ms", self.longest_callback_ms.to_string()),
            ("lateness", self.lateness.json()),
            ("shards", list(self.shards.iter().map(shard))),
        ])
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(f, "timer: fired", self.fired, "")?;
        row(f, "  cancelled", self.cancelled, "")?;
        row(f, "  pending", self.pending, "")?;
        row(f, "  handed back at shutdown", self.handed_back, "")?;
        row(f, "  panics", self.panics, "")?;
        writeln!(f, "{:<28}{:>14.3} ms", "  longest callback", self.longest_callback_ms)?;
        self.lateness.write(f, "  lateness, of ticks")?;
        for (number, fired) in self.shards.iter().enumerate() {
            row(f, &format!("  shard {number}: fired"), *fired, "")?;
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
