//! A lease that a worker holds, and the owner that works for it.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::pulse::Pulse;

/// The pause before an owner begins again. Each owner that made no progress doubles it, at most
/// `DOUBLED` times.
const PAUSE: Duration = Duration::from_millis(100);
const DOUBLED: u32 = 4;

pub(crate) struct Held {
    pub(crate) revision: u64,
    /// The revision when it was taken: it distinguishes this lease from an earlier one.
    pub(crate) since: u64,
    /// An orphan does not count as surplus until then.
    pub(crate) exempt_until: Instant,
    /// The owner was asked to stop; then the lease is released.
    pub(crate) leaving: bool,
    /// Ends the owner when it is sent or dropped.
    stop: watch::Sender<bool>,
    pub(crate) pulse: Pulse,
    /// When the present owner was started, and how many owners before it made no progress.
    begun: Instant,
    failures: u32,
}

impl Held {
    pub(crate) fn new(revision: u64, exempt_until: Instant) -> Self {
        let ((stop, _), pulse, begun) = (watch::channel(false), Pulse::new(), Instant::now());
        let (since, leaving, failures) = (revision, false, 0);
        Self { revision, since, exempt_until, leaving, stop, pulse, begun, failures }
    }

    /// Begins an owner; returns what ends it, and the pulse by which it reports progress.
    pub(crate) fn begin(&mut self) -> (watch::Receiver<bool>, Pulse) {
        self.begun = Instant::now();
        (self.stop.subscribe(), self.pulse.clone())
    }

    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        self.stop.send_replace(true);
    }

    /// The owner has ended by an error; returns the pause before the next one.
    pub(crate) fn failed(&mut self) -> Duration {
        let progress = self.pulse.last() > self.begun;
        let pause = PAUSE * 2_u32.pow(self.failures);
        self.failures = if progress { 0 } else { DOUBLED.min(self.failures + 1) };
        if progress { PAUSE } else { pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_without_progress_begin_again_after_longer_pauses() {
        let mut held = Held::new(7, Instant::now());
        let mut pauses = || {
            drop(held.begin());
            held.failed().as_millis()
        };
        assert_eq!([pauses(), pauses(), pauses()], [100, 200, 400]);
        let longest = (0..9).map(|_| pauses()).max();
        assert_eq!(longest, Some(1_600));
        let (_stop, pulse) = held.begin();
        pulse.beat();
        assert_eq!(held.failed(), PAUSE);
    }

    #[tokio::test]
    async fn an_owner_is_told_to_stop() {
        let mut held = Held::new(7, Instant::now());
        let (mut stop, _) = held.begin();
        held.leave();
        assert!(stop.changed().await.is_ok() && *stop.borrow());
        let (mut stop, _) = Held::new(8, Instant::now()).begin();
        assert!(stop.changed().await.is_err(), "the lease is lost");
    }
}
