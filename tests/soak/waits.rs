//! Futures that wait, polled by hand at random times, with changing wakers, reset and dropped.

use std::future::{Future, Pending, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::Stream;
use shardwheel::{Interval, Missed, Sleep, SleepError, Timeout, TimeoutError};

use crate::account::Cause;
use crate::books::Books;
use crate::placing::delay;
use crate::scene::{Nanos, Scene, WITH_EXECUTOR};
use crate::support::before_poll;

/// A future that waits, and when it may be ready.
pub(crate) struct Wait {
    which: usize,
    future: Waiting,
    due: Nanos,
    bell: Arc<Bell>,
    /// Whether the last poll returned pending, so that the waker must be woken.
    is_armed: bool,
}

enum Waiting {
    Sleep(Sleep),
    Timeout(Timeout<Pending<()>>),
    Interval(Interval),
}

/// A waker that notes its wake.
struct Bell {
    scene: Arc<Scene>,
    which: usize,
    has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let books = self.scene.books(self.which);
        if Cause::now() == Cause::Shutdown { &books.last_wakes } else { &books.wakes }.one();
        self.has_rung.store(true, Ordering::Release);
    }
}

impl Bell {
    fn new(scene: &Arc<Scene>, which: usize) -> Arc<Self> {
        Arc::new(Self { scene: Arc::clone(scene), which, has_rung: AtomicBool::new(false) })
    }
}

/// How a wait has ended, with its deadline if it returns one.
type Ended = Result<Option<Instant>, SleepError>;

impl Wait {
    pub(crate) fn new(scene: &Arc<Scene>, rng: &mut Rng) -> Self {
        let which = rng.usize(..2);
        let (timer, now, delay) = (scene.timer(which), scene.now(), delay(rng));
        let (due, length) = (now + delay, Duration::from_nanos(delay));
        let (future, due) = match rng.u32(..4) {
            0 => (Waiting::Sleep(timer.sleep(length)), due),
            1 => (Waiting::Sleep(timer.sleep_until(scene.instant(due))), due),
            2 => (Waiting::Timeout(timer.timeout(length, pending())), due),
            _ => {
                let missed = [Missed::Burst, Missed::Skip, Missed::Delay][rng.usize(..3)];
                let interval = timer.interval(length.max(Duration::from_micros(100))).missed(missed);
                (Waiting::Interval(interval), now)
            }
        };
        Self { which, future, due, bell: Bell::new(scene, which), is_armed: false }
    }

    pub(crate) fn is_of(&self, which: usize) -> bool {
        self.which == which
    }

    fn scene(&self) -> &Scene {
        &self.bell.scene
    }

    fn books(&self) -> &Books {
        self.scene().books(self.which)
    }

    /// Polls it, sometimes with another waker. Returns true if it has ended.
    pub(crate) fn poll(&mut self, rng: &mut Rng) -> bool {
        if rng.u32(..4) == 0 {
            self.bell = Bell::new(&self.bell.scene, self.which);
        }
        before_poll();
        self.bell.has_rung.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self.bell));
        let polled = self.future.poll(&mut Context::from_waker(&waker));
        self.is_armed = polled.is_pending();
        match polled {
            Poll::Pending => false,
            Poll::Ready(ended) => self.judge(ended),
        }
    }

    /// Checks that the result was due. Returns true if nothing more will come.
    fn judge(&mut self, ended: Ended) -> bool {
        let now = self.scene().now();
        match ended {
            Ok(due) => {
                let of = due.map_or(self.due, |due| self.scene().nanos(due));
                let in_time = self.due <= of && of <= now;
                self.books().expect(in_time, format_args!("ready at {now}, due {of}, at least {}", self.due));
                let Waiting::Interval(interval) = &self.future else { return true };
                self.due = of + interval.period().as_nanos() as Nanos;
                false
            }
            Err(error) => {
                let full = error.is_full() && self.which == WITH_EXECUTOR;
                let expected = full || error.is_shut_down() && self.scene().is_shut(self.which);
                self.books().expect(expected, format_args!("a wait has failed: {error}"));
                true
            }
        }
    }

    /// Gives a sleep another deadline.
    pub(crate) fn reset(&mut self, rng: &mut Rng) {
        let due = self.scene().now().saturating_add(delay(rng)).saturating_sub(delay(rng));
        if self.scene().is_quiet() {
            return;
        }
        let at = self.scene().instant(due);
        if let Waiting::Sleep(sleep) = &mut self.future {
            sleep.reset(at);
            self.due = due;
        }
    }

    /// Checks that it has been woken if it was due by then.
    pub(crate) fn check_woken(&self, by: Nanos) {
        let slept_in = self.is_armed && self.due <= by && !self.bell.has_rung.load(Ordering::Acquire);
        self.books().expect(!slept_in, format_args!("not woken: a wait that was due {}, by {by}", self.due));
    }

    /// Its timer has been shut down: it has been woken, and is ready.
    pub(crate) fn check_over(&mut self, rng: &mut Rng) {
        self.check_woken(Nanos::MAX);
        self.poll(rng);
        self.books().expect(!self.is_armed, format_args!("a wait is pending after the shutdown"));
    }
}

impl Waiting {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        match self {
            Self::Sleep(sleep) => Pin::new(sleep).poll(context).map_ok(|()| None),
            Self::Timeout(timeout) => Pin::new(timeout).poll(context).map(|ended| match ended {
                Ok(()) => unreachable!("its future is never ready"),
                Err(TimeoutError::Sleep(error)) => Err(error),
                Err(_) => Ok(None),
            }),
            Self::Interval(interval) => Pin::new(interval).poll_next(context).map(|tick| match tick {
                Some(tick) => tick.map(Some),
                None => unreachable!("it is not polled after its end"),
            }),
        }
    }
}
