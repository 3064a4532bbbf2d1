//! The engines, what each can do, and what is not among them.

use shardwheel_benches::{
    BareHeap, Cancel, DelayQueue, Engine, FlatWheel, HashedWheel, LazyHeap, Locked, QuadWheel, RingWheel,
    Spread, Tree, Unlocked, WeakQuadWheel, Wheel,
};

use crate::{measure, memory, two, worst};

/// How many timers, and which round: the same for every engine, and so is the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) size: usize,
    pub(crate) round: usize,
}

/// What a run shows: the columns of the table, and the engine's figure in each.
pub(crate) type Figures = Vec<(String, f64)>;

/// What a run shows, and the digest of what it fired.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) checksum: u64,
    pub(crate) figures: Figures,
}

/// A run of one engine.
pub(crate) type Measure = fn(Task) -> Outcome;

/// An engine and its runs.
pub(crate) struct Peer {
    pub(crate) engine: &'static str,
    /// Whether threads could share it as it is measured, by means of a lock.
    pub(crate) locked: bool,
    pub(crate) random: Measure,
    pub(crate) second: Measure,
    pub(crate) constant: Measure,
    pub(crate) worst: Measure,
    pub(crate) memory: Measure,
    pub(crate) two_schedule: Measure,
    /// These need a way to cancel.
    pub(crate) churn: Option<Measure>,
    pub(crate) extend: Option<Measure>,
    pub(crate) two_churn: Option<Measure>,
    pub(crate) cancelled: Option<Measure>,
}

impl Peer {
    const fn without_cancel<E: Engine>() -> Self {
        Self {
            engine: E::NAME,
            locked: false,
            random: |task| measure::fire::<E>(task, Spread::ThirtyMinutes),
            second: |task| measure::fire::<E>(task, Spread::DueInOneSecond),
            constant: |task| measure::fire::<E>(task, Spread::PlacedInOneSecond),
            worst: worst::operations::<E>,
            memory: memory::standing::<E>,
            two_schedule: two::schedule_apart::<E>,
            churn: None,
            extend: None,
            two_churn: None,
            cancelled: None,
        }
    }

    const fn with_cancel<E: Engine<Producer: Cancel>>() -> Self {
        Self {
            churn: Some(measure::churn::<E>),
            extend: Some(measure::extend::<E>),
            two_churn: Some(two::churn_apart::<E>),
            cancelled: Some(memory::cancelled::<E>),
            ..Self::without_cancel::<E>()
        }
    }

    /// For an engine that threads can share.
    const fn shared<E: Engine<Producer: Cancel + Send> + Send>() -> Self {
        Self {
            two_schedule: two::schedule::<E>,
            two_churn: Some(two::churn::<E>),
            ..Self::with_cancel::<E>()
        }
    }

    const fn shared_without_cancel<E: Engine<Producer: Send>>() -> Self {
        Self { two_schedule: two::schedule::<E>, ..Self::without_cancel::<E>() }
    }

    const fn locked(self) -> Self {
        Self { locked: true, ..self }
    }
}

/// Every engine, `shardwheel` first.
pub(crate) static PEERS: [Peer; 13] = [
    Peer::shared::<Wheel>(),
    Peer::shared::<Locked<LazyHeap>>().locked(),
    Peer::with_cancel::<Unlocked<LazyHeap>>(),
    Peer::shared_without_cancel::<BareHeap>().locked(),
    Peer::shared::<Locked<Tree>>().locked(),
    Peer::with_cancel::<Unlocked<Tree>>(),
    Peer::shared::<Locked<DelayQueue>>().locked(),
    Peer::with_cancel::<Unlocked<DelayQueue>>(),
    Peer::with_cancel::<Unlocked<WeakQuadWheel>>(),
    Peer::without_cancel::<Unlocked<QuadWheel>>(),
    Peer::with_cancel::<Unlocked<HashedWheel>>(),
    Peer::without_cancel::<Unlocked<RingWheel>>(),
    Peer::with_cancel::<Unlocked<FlatWheel>>(),
];

/// Why an engine has no part in churn and extend.
pub(crate) const CANNOT_CANCEL: &str = "it has no way to cancel";

/// What is not among the engines, and why.
pub(crate) const ELSEWHERE: [(&str, &str); 8] = [
    (
        "the wheels without a lock, behind one",
        "`hierarchical_hash_wheel_timer` counts references without atomics where it can cancel, so that no lock \
         makes it shareable; for the others the difference between `heap` and `heap, no lock` is the lock's price",
    ),
    (
        "`pendulum` 0.3",
        "a second timer in a bucket gets the handle of the first, so that cancelling the one cancels the other; and \
         a timer put between two others of its bucket is lost",
    ),
    (
        "`timing-wheel` 0.1",
        "reads the clock of the system, and cannot cancel: it has no virtual clock to move",
    ),
    ("`mio-timer` 0.2", "reads the clock of the system when it is polled"),
    ("`timerwheel` 0.1 and `wheeltimer` 0.2", "run threads or tasks of their own by the clock of the system"),
    (
        "`nexus-timer` 1.5",
        "a handle has to be given back even of a timer that has fired, and cannot be copied, which the comparison asks of all",
    ),
    ("`delay_timer` 0.11", "a scheduler of tasks, with a runtime of its own, not a structure"),
    ("timers of runtimes (`tokio::time`, `async-io`)", "they go by the real time; see the report `live`"),
];
