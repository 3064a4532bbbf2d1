//! What is measured, and which engines take part in it.

use std::time::Duration;

use shardwheel_benches::names::{LIVE_FINE, LIVE_FIRE};

use crate::args::Args;
use crate::async_io::AsyncIo;
use crate::engine::Live;
use crate::futures_timer::FuturesTimer;
use crate::heap_thread::{Exact, Ticked};
use crate::pingora::Pingora;
#[cfg(tokio_unstable)]
use crate::tokio_tasks::TokioAlternativeTasks;
use crate::tokio_tasks::TokioTasks;
#[cfg(tokio_unstable)]
use crate::tokio_time::TokioAlternative;
use crate::tokio_time::TokioTime;
use crate::wheel::{OneShard, Wheel, WheelSleeps};
use crate::{fire, idle, schedule, sleeps};

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
const TENTH: Duration = Duration::from_micros(100);

/// How many rounds an engine takes part in that no requirement is judged by.
pub(crate) const ROUNDS_BESIDE: usize = 3;

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
    /// It takes part in no more than so many.
    pub(crate) rounds: usize,
}

impl Run {
    const fn of<E: Live>(measure: fn(&Args) -> Figures) -> Self {
        Self { engine: E::NAME, measure, rounds: usize::MAX }
    }

    /// One that no requirement is judged by.
    const fn beside<E: Live>(measure: fn(&Args) -> Figures) -> Self {
        Self { engine: E::NAME, measure, rounds: ROUNDS_BESIDE }
    }
}

pub(crate) const FIRE: Section = Section {
    name: LIVE_FIRE,
    title: "Fire: due evenly, placed from two threads, ticks of 1 ms",
    runs: &[
        Run::of::<Wheel>(|args| fire::figures::<Wheel>(MILLISECOND, &args.plan)),
        Run::of::<WheelSleeps>(|args| fire::figures::<WheelSleeps>(MILLISECOND, &args.plan)),
        Run::of::<OneShard>(|args| fire::figures::<OneShard>(MILLISECOND, &args.plan)),
        Run::of::<TokioTime>(|args| fire::figures::<TokioTime>(MILLISECOND, &args.plan)),
        Run::of::<Exact>(|args| fire::figures::<Exact>(MILLISECOND, &args.plan)),
        Run::of::<Ticked>(|args| fire::figures::<Ticked>(MILLISECOND, &args.plan)),
        #[cfg(tokio_unstable)]
        Run::beside::<TokioAlternative>(|args| fire::figures::<TokioAlternative>(MILLISECOND, &args.plan)),
        Run::beside::<Pingora>(|args| fire::figures::<Pingora>(MILLISECOND, &args.plan)),
        Run::beside::<AsyncIo>(|args| fire::figures::<AsyncIo>(MILLISECOND, &args.plan)),
        Run::beside::<FuturesTimer>(|args| fire::figures::<FuturesTimer>(MILLISECOND, &args.plan)),
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
        Run::beside::<TokioTasks>(|_| sleeps::figures::<TokioTasks>()),
        #[cfg(tokio_unstable)]
        Run::beside::<TokioAlternative>(|_| sleeps::figures::<TokioAlternative>()),
        #[cfg(tokio_unstable)]
        Run::beside::<TokioAlternativeTasks>(|_| sleeps::figures::<TokioAlternativeTasks>()),
        Run::beside::<Pingora>(|_| sleeps::figures::<Pingora>()),
        Run::beside::<AsyncIo>(|_| sleeps::figures::<AsyncIo>()),
        Run::beside::<FuturesTimer>(|_| sleeps::figures::<FuturesTimer>()),
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
        #[cfg(tokio_unstable)]
        Run::beside::<TokioAlternative>(|_| idle::figures::<TokioAlternative>()),
        Run::beside::<Pingora>(|_| idle::figures::<Pingora>()),
        Run::beside::<AsyncIo>(|_| idle::figures::<AsyncIo>()),
        Run::beside::<FuturesTimer>(|_| idle::figures::<FuturesTimer>()),
    ],
};

/// Every section.
pub(crate) const SECTIONS: [Section; 5] = [FIRE, FINE, SLEEP, SCHEDULE, IDLE];

/// Every engine that takes part in any of them, once.
pub(crate) fn engines() -> Vec<&'static str> {
    let mut engines = Vec::new();
    for run in SECTIONS.iter().flat_map(|section| section.runs) {
        if !engines.contains(&run.engine) {
            engines.push(run.engine);
        }
    }
    engines
}

/// An engine's part in a section, by their names.
pub(crate) fn find(section: &str, engine: &str) -> Option<&'static Run> {
    const ALL: &[Section] = &SECTIONS;
    ALL.iter().find(|known| known.name == section)?.runs.iter().find(|run| run.engine == engine)
}
