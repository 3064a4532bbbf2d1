//! What is measured, and which engines take part in it.

use std::time::Duration;

use shardwheel_benches::names::{LIVE_FINE, LIVE_FIRE};

use crate::args::Args;
use crate::engine::Live;
use crate::heap_thread::{Exact, Ticked};
use crate::tokio_time::TokioTime;
use crate::wheel::{Wheel, WheelSleeps};
use crate::{fire, idle, schedule, sleeps};

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
const TENTH: Duration = Duration::from_micros(100);

/// What one run shows: the rows of the table, and the engine's figure in each.
pub(crate) type Figures = Vec<(String, f64)>;

/// A group of measurements.
pub(crate) struct Section {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// The heading of its table.
    pub(crate) title: &'static str,
    /// `shardwheel` first.
    pub(crate) runs: &'static [Run],
}

/// One engine's part in a section.
pub(crate) struct Run {
    pub(crate) engine: &'static str,
    pub(crate) measure: fn(&Args) -> Figures,
}

impl Run {
    const fn of<E: Live>(measure: fn(&Args) -> Figures) -> Self {
        Self { engine: E::NAME, measure }
    }
}

pub(crate) const FIRE: Section = Section {
    name: LIVE_FIRE,
    title: "Fire: due evenly, placed from two threads, ticks of 1 ms",
    runs: &[
        Run::of::<Wheel>(|args| fire::figures::<Wheel>(MILLISECOND, &args.plan)),
        Run::of::<WheelSleeps>(|args| fire::figures::<WheelSleeps>(MILLISECOND, &args.plan)),
        Run::of::<TokioTime>(|args| fire::figures::<TokioTime>(MILLISECOND, &args.plan)),
        Run::of::<Exact>(|args| fire::figures::<Exact>(MILLISECOND, &args.plan)),
        Run::of::<Ticked>(|args| fire::figures::<Ticked>(MILLISECOND, &args.plan)),
    ],
};

pub(crate) const FINE: Section = Section {
    name: LIVE_FINE,
    title: "The same, ticks of 100 µs",
    runs: &[Run::of::<Wheel>(|args| fire::figures::<Wheel>(TENTH, &args.plan))],
};

pub(crate) const SLEEP: Section = Section {
    name: "sleep",
    title: "Sleeps of 30 minutes, a sleep of all threads together",
    runs: &[
        Run::of::<Wheel>(|_| sleeps::figures::<Wheel>()),
        Run::of::<TokioTime>(|_| sleeps::figures::<TokioTime>()),
    ],
};

pub(crate) const SCHEDULE: Section = Section {
    name: "schedule",
    title: "Closures, one thread, a million within 30 minutes",
    runs: &[
        Run::of::<Wheel>(|_| schedule::schedule_and_cancel::<Wheel>()),
        Run::of::<Exact>(|_| schedule::schedule_alone::<Exact>()),
    ],
};

pub(crate) const IDLE: Section = Section {
    name: "idle",
    title: "Idle: one timer an hour away, watched for five seconds",
    runs: &[
        Run::of::<Wheel>(|_| idle::figures::<Wheel>()),
        Run::of::<TokioTime>(|_| idle::figures::<TokioTime>()),
        Run::of::<Exact>(|_| idle::figures::<Exact>()),
    ],
};

/// Every section.
pub(crate) const SECTIONS: [Section; 5] = [FIRE, FINE, SLEEP, SCHEDULE, IDLE];

/// An engine's part in a section, by their names.
pub(crate) fn find(section: &str, engine: &str) -> Option<&'static Run> {
    const ALL: &[Section] = &SECTIONS;
    ALL.iter().find(|known| known.name == section)?.runs.iter().find(|run| run.engine == engine)
}
