//! metrics: the fields of `Stats` as counters, gauges and a histogram; with the feature `introspect`,
//! pending timers by place.

#[cfg(feature = "introspect")]
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::time::Duration;

use metrics::{Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
#[cfg(feature = "introspect")]
use shardwheel::Pending;
use shardwheel::{Figures, Lateness, ScheduleError, Stats, Timer, TimerKey};

/// Reports a `Timer`'s [`Stats`] to the recorder that the program has installed.
///
/// | name | kind | field of [`Figures`] |
/// |---|---|---|
/// | `shardwheel_FIELD_total` | counter | each count, as `fired` and `panics` |
/// | `shardwheel_pending`, `shardwheel_node_capacity` | gauge | the same |
/// | `shardwheel_backlog_seconds` | gauge | `backlog` |
/// | `shardwheel_longest_callback_seconds` | gauge | `longest_callback` |
/// | `shardwheel_longest_recent_callback_seconds` | gauge | `longest_recent_callback` |
/// | `shardwheel_core` | gauge, if known | `core` |
/// | `shardwheel_lateness_seconds` | histogram | `lateness` |
///
/// With the feature `introspect` also the pending timers by the call that has set them, with a label
/// `place`: see `by_place` and `record_pending`.
///
/// Install the recorder first: descriptions go to the recorder that is there when the reporter is
/// made.
///
/// # Examples
///
/// The global `Timer` reports about itself every ten seconds:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
/// use shardwheel_compat::TimerMetrics;
///
/// TimerMetrics::new().every(Duration::from_secs(10), Timer::global())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Two `Timer`s, distinguished by a label:
///
/// ```
/// use shardwheel::Timer;
/// use shardwheel_compat::TimerMetrics;
///
/// let (requests, cache) = (Timer::new()?, Timer::new()?);
/// let mut of_requests = TimerMetrics::new().label("timer", "requests");
/// let mut of_cache = TimerMetrics::new().label("timer", "cache").each_shard();
/// of_requests.record(&requests.report());
/// of_cache.record(&cache.report());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// A report costs what [`Timer::stats`] costs, a look-up of each metric, and the recorder's
/// `record_many` for each bucket of the histogram that has grown. Some recorders, such as
/// `metrics-exporter-prometheus`, keep each value of a histogram by itself until they are read. Then
/// a report costs some nanoseconds and bytes for each timer that has fired since the last report.
#[derive(Debug, Default)]
pub struct TimerMetrics {
    labels: Vec<Label>,
    each_shard: bool,
    /// What has been recorded of each shard's lateness, or of the total.
    recorded: Vec<Recorded>,
    #[cfg(feature = "introspect")]
    by_place: bool,
    /// The places that have been recorded.
    #[cfg(feature = "introspect")]
    places: BTreeSet<String>,
}

/// How many timers have been recorded, by the start of their bucket.
type Recorded = HashMap<Duration, u64>;

impl TimerMetrics {
    /// Makes a reporter of a `Timer`'s totals. It reports one `Timer`: counts of another would be
    /// taken for changes.
    #[must_use]
    pub fn new() -> Self {
        describe();
        Self::default()
    }

    /// Adds a label to all metrics.
    #[must_use]
    pub fn label(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.labels.push(Label::new(key, value.into()));
        self
    }

    /// Reports each shard with a label `shard`, in place of the totals.
    #[must_use]
    pub fn each_shard(self) -> Self {
        Self { each_shard: true, ..self }
    }

    /// Makes [`every`](Self::every) report the pending timers by place, as
    /// [`record_pending`](Self::record_pending) does.
    #[cfg(feature = "introspect")]
    #[must_use]
    pub fn by_place(self) -> Self {
        Self { by_place: true, ..self }
    }

    /// Reports the pending timers by the call that has set them, as gauges with a label `place`
    /// (`src/main.rs:10:5`):
    ///
    /// | name | value |
    /// |---|---|
    /// | `shardwheel_place_pending` | how many there are |
    /// | `shardwheel_place_overdue` | how many of them are due, and have not fired |
    /// | `shardwheel_place_late_seconds` | for how long the first has been due |
    /// | `shardwheel_place_first_due_seconds` | until the first is due |
    /// | `shardwheel_place_oldest_seconds` | since the oldest was scheduled |
    ///
    /// A place that has no pending timer any more is reported with zeroes.
    ///
    /// # Examples
    ///
    /// ```
    /// use shardwheel::Timer;
    /// use shardwheel_compat::TimerMetrics;
    ///
    /// let timer = Timer::new()?;
    /// let mut metrics = TimerMetrics::new();
    /// metrics.record_pending(&timer.pending());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// What [`Timer::pending`] costs, and a look-up of five metrics for each place.
    #[cfg(feature = "introspect")]
    pub fn record_pending(&mut self, pending: &Pending) {
        let mut gone = self.places.clone();
        for place in &pending.places {
            let name = place.place.map_or("other".into(), |place| place.to_string());
            let first = place
                .earliest
                .map_or(f64::INFINITY, |at| at.saturating_duration_since(pending.at).as_secs_f64());
            let oldest = pending.at.saturating_duration_since(place.oldest).as_secs_f64();
            let (count, overdue) = (place.count as f64, place.overdue as f64);
            self.set_place(&name, [count, overdue, place.late.as_secs_f64(), first, oldest]);
            gone.remove(&name);
            self.places.insert(name);
        }
        gone.iter().for_each(|name| self.set_place(name, [0.0; PLACE_GAUGES.len()]));
    }

    #[cfg(feature = "introspect")]
    fn set_place(&self, place: &str, values: [f64; PLACE_GAUGES.len()]) {
        let mut labels = self.labels.clone();
        labels.push(Label::new("place", place.to_owned()));
        for ((name, ..), value) in PLACE_GAUGES.into_iter().zip(values) {
            gauge!(name, labels.clone()).set(value);
        }
    }

    /// Reports `stats`: those of [`Timer::report`], for the slowest callback since the report before.
    pub fn record(&mut self, stats: &Stats) {
        let parts = if self.each_shard { stats.shards.iter().collect() } else { vec![&stats.total] };
        self.recorded.resize_with(parts.len(), Recorded::new);
        for (number, figures) in parts.into_iter().enumerate() {
            let mut labels = self.labels.clone();
            if self.each_shard {
                labels.push(Label::new("shard", number.to_string()));
            }
            record(figures, &labels);
            record_lateness(&figures.lateness, &mut self.recorded[number], labels);
        }
    }

    /// Reports `timer` every `period`, by a callback of that `Timer`. The callback does not keep
    /// the `Timer` alive, and is no member of a group: the handle of a [group](shardwheel::Group)
    /// stands for its `Timer`.
    ///
    /// # Errors
    ///
    /// As [`Timer::schedule_every`].
    #[track_caller]
    pub fn every(
        self,
        period: Duration,
        timer: &Timer,
    ) -> Result<TimerKey, ScheduleError<impl FnMut() + Send + use<>>> {
        let timer = timer.without_group();
        let (weak, mut own) = (timer.downgrade(), Box::new(self));
        timer.schedule_every(period, move || {
            if let Some(timer) = weak.upgrade() {
                own.record(&timer.report());
                #[cfg(feature = "introspect")]
                if own.by_place {
                    own.record_pending(&timer.pending());
                }
            }
        })
    }
}

type Value<V> = fn(&Figures) -> V;

/// Name, description and value of each counter.
const COUNTERS: [(&str, &str, Value<u64>); 9] = [
    ("shardwheel_scheduled_total", "Timers accepted.", |figures| figures.scheduled),
    ("shardwheel_fired_total", "Timers fired.", |figures| figures.fired),
    ("shardwheel_recurred_total", "Recurring timers armed anew.", |figures| figures.recurred),
    ("shardwheel_cancelled_total", "Timers cancelled.", |figures| figures.cancelled),
    ("shardwheel_handed_back_total", "Timers handed back at shutdown.", |figures| figures.handed_back),
    ("shardwheel_extended_total", "Timers put off in their node.", |figures| figures.extended),
    ("shardwheel_cascaded_total", "Nodes moved to a finer bucket, or found dead.", |figures| {
        figures.cascaded
    }),
    ("shardwheel_swept_total", "Nodes of cancelled timers that a sweep freed.", |figures| figures.swept),
    ("shardwheel_panics_total", "Panics caught in user code.", |figures| figures.panics),
];

/// Name, unit, description and value of each gauge.
const GAUGES: [(&str, Unit, &str, Value<f64>); 5] = [
    ("shardwheel_pending", Unit::Count, "Timers pending.", |figures| figures.pending as f64),
    ("shardwheel_node_capacity", Unit::Count, "Nodes there is memory for.", |figures| {
        figures.node_capacity as f64
    }),
    ("shardwheel_backlog_seconds", Unit::Seconds, "How far the timer is behind.", |figures| {
        figures.backlog.as_secs_f64()
    }),
    ("shardwheel_longest_callback_seconds", Unit::Seconds, "The slowest callback so far.", |figures| {
        figures.longest_callback.as_secs_f64()
    }),
    (
        "shardwheel_longest_recent_callback_seconds",
        Unit::Seconds,
        "The slowest callback since the last report.",
        |figures| figures.longest_recent_callback.as_secs_f64(),
    ),
];

/// Name, unit and description of each gauge of a place.
#[cfg(feature = "introspect")]
const PLACE_GAUGES: [(&str, Unit, &str); 5] = [
    ("shardwheel_place_pending", Unit::Count, "Timers pending that the call has set."),
    ("shardwheel_place_overdue", Unit::Count, "Those that are due, and have not fired."),
    ("shardwheel_place_late_seconds", Unit::Seconds, "For how long the first has been due."),
    ("shardwheel_place_first_due_seconds", Unit::Seconds, "Until the first is due."),
    ("shardwheel_place_oldest_seconds", Unit::Seconds, "Since the oldest was scheduled."),
];

const CORE: &str = "shardwheel_core";
const LATENESS: &str = "shardwheel_lateness_seconds";

fn describe() {
    for (name, description, _) in COUNTERS {
        describe_counter!(name, Unit::Count, description);
    }
    for (name, unit, description, _) in GAUGES {
        describe_gauge!(name, unit, description);
    }
    #[cfg(feature = "introspect")]
    for (name, unit, description) in PLACE_GAUGES {
        describe_gauge!(name, unit, description);
    }
    describe_gauge!(CORE, "The core that the shard's thread is pinned to.");
    describe_histogram!(LATENESS, Unit::Seconds, "How late timers fired.");
}

fn record(figures: &Figures, labels: &[Label]) {
    for (name, _, value) in COUNTERS {
        counter!(name, labels.to_vec()).absolute(value(figures));
    }
    for (name, _, _, value) in GAUGES {
        gauge!(name, labels.to_vec()).set(value(figures));
    }
    if let Some(core) = figures.core {
        gauge!(CORE, labels.to_vec()).set(core as f64);
    }
}

/// Records what has been added to each bucket, with the end of the bucket as its value: no timer
/// was later than that.
fn record_lateness(lateness: &Lateness, recorded: &mut Recorded, labels: Vec<Label>) {
    let histogram = histogram!(LATENESS, labels);
    for bucket in lateness.buckets() {
        let end = (*bucket.range.end()).min(lateness.max());
        let before = recorded.entry(*bucket.range.start()).or_default();
        let added = bucket.count.saturating_sub(*before);
        *before = bucket.count;
        histogram.record_many(end.as_secs_f64(), usize::try_from(added).unwrap_or(usize::MAX));
    }
}
