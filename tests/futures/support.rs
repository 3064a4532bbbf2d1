//! Timers to test with, wakers that tell what becomes of them, and polls by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{ManualClock, Timer, TimerBuilder};

/// For how long a test waits for something that is to happen, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer that a clock drives by hand, and the clock.
pub(crate) fn manual() -> (Timer, ManualClock) {
    by_hand(Timer::builder())
}

/// The same, with other settings too.
pub(crate) fn by_hand(builder: TimerBuilder) -> (Timer, ManualClock) {
    let clock = ManualClock::new();
    (builder.clock(clock.clone()).build().expect("settings within their limits"), clock)
}

/// A timer in real time with that many shards.
pub(crate) fn threads(shards: usize) -> Timer {
    Timer::builder().shards(shards).build().expect("settings within their limits")
}

/// Counts how often it is woken; the `Arc` counts who holds it.
#[derive(Default)]
pub(crate) struct Bell(AtomicUsize);

impl Bell {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&bell));
        (bell, waker)
    }

    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs something when it is woken, once.
pub(crate) struct Acts(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Acts {
    pub(crate) fn waker(action: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Self(Mutex::new(Some(Box::new(action))))))
    }
}

impl Wake for Acts {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = action {
            action();
        }
    }
}

/// Polls once with that waker.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls a future that has to be ready.
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future, Waker::noop()) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is to be ready"),
    }
}

/// Polls a future that must not be ready.
pub(crate) fn is_pending<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    assert!(poll(future, waker).is_pending(), "too early");
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Runs `work` on a thread of its own, and panics if that does not come to an end: what would hang fails.
pub(crate) fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, heard) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let _done = done;
        work()
    });
    assert_eq!(heard.recv_timeout(2 * PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "it hangs");
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Checks, on a timer that is quiet, that each timer that it took has one outcome or is pending.
pub(crate) fn is_balanced(timer: &Timer) {
    until("each timer has one outcome", || {
        let stats = timer.stats();
        let ended = stats.fired + stats.cancelled + stats.handed_back;
        stats.scheduled + stats.recurred == ended + stats.pending as u64
    });
}
