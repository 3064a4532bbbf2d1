//! Runs a future while a manual clock moves by itself.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::ManualClock;
use crate::sync::Ordering;
use crate::sync::plain::AtomicBool;

impl ManualClock {
    /// Runs a future on the calling thread, and moves the clock to the next deadline whenever the
    /// future waits: hours of waiting take no time.
    ///
    /// Returns `None` if the future waits and nothing is pending that could wake it, and drops the
    /// future. (Pass `pin!(future).as_mut()` to keep it.) Callbacks that become due run as in
    /// [`advance`](Self::advance). The future may only wait for timers that this clock drives, and
    /// for what their callbacks do. The call does not wait for the system, nor for another thread,
    /// except for one that moves this clock; a callback does not wait for that one either.
    ///
    /// If the future never ends while a recurring timer is pending, the call never returns.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let slept = clock.run_until_stalled(async {
    ///     timer.sleep(Duration::from_secs(3600)).await?;
    ///     timer.sleep(Duration::from_secs(1800)).await
    /// });
    /// assert_eq!(slept, Some(Ok(())));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(5400));
    /// assert_eq!(clock.run_until_stalled(std::future::pending::<()>()), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_until_stalled<F: IntoFuture>(&self, future: F) -> Option<F::Output> {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = pin!(future.into_future());
        loop {
            while woken.take() {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(output);
                }
            }
            let next = self.next_expiration();
            // With nothing pending, this waits for another thread that moves the clock.
            let by = next.map_or(Duration::ZERO, |next| next.saturating_sub(self.elapsed()));
            // Time passes, but nothing runs, if a callback that this clock runs calls this.
            let has_run = self.drive_for(by);
            let is_stalled = !has_run || next.or_else(|| self.next_expiration()).is_none();
            if is_stalled && !woken.is_set() {
                return None;
            }
        }
    }
}

/// Notes that the future has been woken.
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        // Ordering: Acquire, pairs with `wake`: the poll sees what it is woken for.
        self.0.swap(false, Ordering::Acquire)
    }

    fn is_set(&self) -> bool {
        // Ordering: Relaxed, `take` acquires.
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: Release, pairs with `take`.
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::cell::UnsafeCell;
    use std::thread;

    use super::*;

    struct Written(UnsafeCell<u32>);

    // SAFETY: one thread writes before it wakes, another reads after it has taken that wake.
    unsafe impl Sync for Written {}

    /// ThreadSanitizer reports a race if the wake does not release or the take does not acquire.
    #[test]
    fn a_poll_sees_what_was_written_before_its_wake() {
        let (woken, written) = (Arc::new(Woken(AtomicBool::new(false))), Written(UnsafeCell::new(0)));
        let (waker, written, is_read) = (Waker::from(Arc::clone(&woken)), &written, &AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: nothing reads before the wake.
                unsafe { *written.0.get() = 1 };
                waker.wake_by_ref();
                // Ordering: Relaxed. The tool may forget what a thread has done that has ended.
                while !is_read.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
            while !woken.take() {
                thread::yield_now();
            }
            // SAFETY: nothing writes after the wake.
            let read = unsafe { *written.0.get() };
            // Ordering: Relaxed, as above.
            is_read.store(true, Ordering::Relaxed);
            assert_eq!(read, 1);
        });
    }
}
