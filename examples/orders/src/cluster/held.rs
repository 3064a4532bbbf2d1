//! A partition that a worker has, and the owner that works for it.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::failure::{Failure, SAY, waits};
use super::pulse::Pulse;

/// A failure is believed to be permanent if it is so for this long. A stream's new leader may not have all
/// messages for a moment.
const SURE: Duration = Duration::from_secs(3);
/// How often a partition that has stopped is tried again: a person may have mended it.
const STOPPED: Duration = Duration::from_secs(30);

pub(crate) struct Held {
    /// Distinguishes this time from an earlier one.
    pub(crate) since: u64,
    /// Ends the owner when it is dropped.
    stop: watch::Sender<()>,
    pub(crate) pulse: Pulse,
    /// When the present owner was started, and how many owners before it made no progress.
    begun: Instant,
    failures: usize,
    /// Since when the failures are permanent.
    permanent: Option<Instant>,
    /// When a failure was said.
    said: Option<Instant>,
}

impl Held {
    pub(crate) fn new(since: u64) -> Self {
        let ((stop, _), pulse, begun) = (watch::channel(()), Pulse::new(), Instant::now());
        Self { since, stop, pulse, begun, failures: 0, permanent: None, said: None }
    }

    /// Begins an owner; returns what ends it, and the pulse by which it reports progress.
    pub(crate) fn begin(&mut self) -> (watch::Receiver<()>, Pulse) {
        self.begun = Instant::now();
        (self.stop.subscribe(), self.pulse.clone())
    }

    /// The owner of a partition has ended by an error; returns the pause before the next one.
    pub(crate) fn failed(&mut self, number: u32, failure: &Failure) -> Duration {
        let progress = self.pulse.vitals().progress > self.begun;
        let since = *self.permanent.get_or_insert_with(Instant::now);
        if !failure.is_permanent() || progress {
            self.permanent = None;
        }
        let stopped = self.permanent.is_some() && since.elapsed() >= SURE;
        self.failures = if progress { 0 } else { self.failures + 1 };
        self.pulse.failed(failure.to_string(), stopped);
        if self.said.is_none_or(|at| at.elapsed() >= SAY) {
            self.said = Some(Instant::now());
            let what = if stopped { "has stopped" } else { "begins again" };
            say!("partition {number} {what}: {failure}");
        }
        if stopped { STOPPED } else { waits().nth(self.failures).unwrap_or_default() }
    }

    /// The partition is served.
    pub(crate) fn serves(&mut self) {
        self.permanent = None;
        self.pulse.serves();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_without_progress_begin_again_after_longer_pauses() {
        let mut held = Held::new(7);
        let mut pauses = |reached| {
            let (_, pulse) = held.begin();
            pulse.reached(reached);
            held.failed(0, &Failure::temporary("t")).as_millis()
        };
        assert_eq!(pauses(7), 20);
        assert_eq!([pauses(7), pauses(6), pauses(0)], [40, 80, 160], "the same messages are no progress");
        assert_eq!((0..9).map(|_| pauses(7)).max(), Some(2_000));
        assert_eq!(pauses(8), 20);
    }

    #[test]
    fn a_partition_stops_if_a_failure_stays_permanent() {
        let mut held = Held::new(7);
        let permanent = Failure::permanent("p");
        let stopped = |held: &Held| held.pulse.vitals().stopped;
        assert!(held.failed(0, &permanent) < STOPPED && !stopped(&held), "it may pass");
        held.permanent = Instant::now().checked_sub(SURE);
        held.failed(0, &Failure::temporary("t"));
        assert!(held.failed(0, &permanent) < STOPPED, "it has passed meanwhile");
        held.permanent = Instant::now().checked_sub(SURE);
        assert!(held.failed(0, &permanent) == STOPPED && stopped(&held));
        held.serves();
        assert!(held.failed(0, &permanent) < STOPPED && !stopped(&held));
    }

    #[tokio::test]
    async fn an_owner_ends_with_what_holds_its_partition() {
        let (mut stop, _) = Held::new(8).begin();
        assert!(stop.changed().await.is_err());
    }
}
