//! hyper: `hyper::rt::Timer`.

use std::pin::Pin;
use std::time::{Duration, Instant};

use hyper::rt;
use shardwheel::Timer;

use crate::sleep::{Sleep, Source};

/// Lets a hyper server or client wait on a [`Timer`]: for header timeouts, keep-alive and HTTP/2
/// pings.
///
/// `HyperTimer::default()` is on the [global `Timer`](Timer::global), and tells hyper the time of
/// that `Timer`. Where hyper calls within the [scope](shardwheel::ManualClock::scope) of a clock,
/// the sleeps and the time are those of the scope.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use hyper::server::conn::http1;
/// use shardwheel_compat::HyperTimer;
///
/// let mut server = http1::Builder::new();
/// server.timer(HyperTimer::default()).header_read_timeout(Duration::from_secs(10));
/// ```
///
/// # Performance
///
/// A sleep is boxed, as hyper's trait demands. A reset keeps the box and the node: it is one
/// compare-and-swap for a later deadline.
#[derive(Clone, Debug)]
pub struct HyperTimer {
    source: Source,
}

impl Default for HyperTimer {
    #[track_caller]
    fn default() -> Self {
        Self { source: Source::global() }
    }
}

impl HyperTimer {
    /// Makes a `HyperTimer` whose sleeps wait on `timer`.
    #[must_use]
    #[track_caller]
    pub fn new(timer: Timer) -> Self {
        Self { source: Source::of(timer) }
    }
}

impl rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.source.sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.source.sleep_until(deadline))
    }

    fn now(&self) -> Instant {
        self.source.now()
    }

    /// Resets `sleep` in place. A sleep of another library's timer is replaced.
    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(ours) => self.source.reset(ours.get_mut(), new_deadline),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

impl rt::Sleep for Sleep {}
