//! A partition that a worker has, and the owner that works for it.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::failure::{Failure, SAY};
use super::pulse::Pulse;

/// The pause before an owner begins again. Each owner that made no progress doubles it, at most
/// `DOUBLED` times.
const PAUSE: Duration = Duration::from_millis(100);
const DOUBLED: u32 = 5;
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
    failures: u32,
    /// Since when the failures are permanent.
    permanent: Option<Instant>,
    /// When a failure was said.
    said: Option<Instant>,
    /// No owner works until a person has mended something.
    pub(crate) stopped: bool,
}

impl Held {
    pub(crate) fn new(since: u64) -> Self {
        let ((stop, _), pulse, begun) = (watch::channel(()), Pulse::new(), Instant::now());
        Self { since, stop, pulse, begun, failures: 0, permanent: None, said: None, stopped: false }
    }

    /// Begins an owner; returns what ends it, and the pulse by which it reports progress.
    pub(crate) fn begin(&mut self) -> (watch::Receiver<()>, Pulse) {
        self.begun = Instant::now();
        (self.stop.subscribe(), self.pulse.clone())
    }

    /// The owner has ended by an error; returns the pause before the next one.
    pub(crate) fn failed(&mut self, failure: &Failure) -> Duration {
        let progress = self.pulse.last() > self.begun;
        let since = *self.permanent.get_or_insert_with(Instant::now);
        if !failure.is_permanent() || progress {
            self.permanent = None;
        }
        self.stopped = self.permanent.is_some() && since.elapsed() >= SURE;
        let pause = PAUSE * 2_u32.pow(self.failures);
        self.failures = if progress { 0 } else { DOUBLED.min(self.failures + 1) };
        match (self.stopped, progress) {
            (true, _) => STOPPED,
            (_, true) => PAUSE,
            _ => pause,
        }
    }

    /// Whether it is time to say that an owner has failed.
    pub(crate) fn says(&mut self) -> bool {
        let says = self.said.is_none_or(|at| at.elapsed() >= SAY);
        if says {
            self.said = Some(Instant::now());
        }
        says
    }

    /// The partition is served.
    pub(crate) fn serves(&mut self) {
        (self.stopped, self.permanent) = (false, None);
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
            held.failed(&Failure::temporary("t")).as_millis()
        };
        assert_eq!(pauses(7), 100);
        assert_eq!([pauses(7), pauses(6), pauses(0)], [100, 200, 400], "the same messages are no progress");
        let longest = (0..9).map(|_| pauses(7)).max();
        assert_eq!(longest, Some(3_200));
        assert_eq!(pauses(8), 100);
    }

    #[test]
    fn a_partition_stops_if_a_failure_stays_permanent() {
        let mut held = Held::new(7);
        let permanent = Failure::permanent("p");
        assert!(held.failed(&permanent) < STOPPED && !held.stopped, "it may pass");
        held.permanent = Instant::now().checked_sub(SURE);
        held.failed(&Failure::temporary("t"));
        assert!(held.failed(&permanent) < STOPPED, "it has passed meanwhile");
        held.permanent = Instant::now().checked_sub(SURE);
        assert!(held.failed(&permanent) == STOPPED && held.stopped);
        held.serves();
        assert!(held.failed(&permanent) < STOPPED && !held.stopped);
    }

    #[tokio::test]
    async fn an_owner_ends_with_what_holds_its_partition() {
        let (mut stop, _) = Held::new(8).begin();
        assert!(stop.changed().await.is_err());
    }
}
