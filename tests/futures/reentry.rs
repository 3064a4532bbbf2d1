//! Wakers that use the timer: they are woken and dropped while no lock is held. (Case 50: other
//! timers woke them under a lock.) Wakers that use other sleeps are in `tests/simulation/timers`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use shardwheel::{ManualClock, Sleep, Timer};

use crate::support::{Acts, HOUR, SOON, in_time, is_balanced, is_pending, manual, ms, poll, threads, until};

/// A waker polls its own sleep, which has fired, as an executor does that runs a task inside
/// `wake`. Promise 7.
#[test]
fn a_waker_may_poll_its_own_sleep() {
    in_time(|| {
        let (timer, clock) = manual();
        let own = Arc::new(Mutex::new(timer.sleep(ms(5))));
        let (inner, rounds, time) = (Arc::clone(&own), Arc::new(AtomicUsize::new(0)), timer.clone());
        let counted = Arc::clone(&rounds);
        poll_and_go_on(&inner, &time, &counted);
        clock.advance(ms(5) * 10);
        assert_eq!(rounds.load(Ordering::SeqCst), 10);
        // The waker and the sleep hold each other; this drops both.
        *own.lock().expect("no thread panics with the lock") = timer.sleep(HOUR);
        assert_eq!(timer.stats().pending, 0);
        is_balanced(&timer);
    });
}

/// Polls, and polls again at each wake; whenever the sleep is ready it is reset by 5 ms.
fn poll_and_go_on(sleep: &Arc<Mutex<Sleep>>, timer: &Timer, rounds: &Arc<AtomicUsize>) {
    let again = {
        let (sleep, timer, rounds) = (Arc::clone(sleep), timer.clone(), Arc::clone(rounds));
        Acts::waker(move || {
            rounds.fetch_add(1, Ordering::SeqCst);
            poll_and_go_on(&sleep, &timer, &rounds);
        })
    };
    let mut sleep = sleep.lock().expect("no thread panics with the lock");
    if poll(&mut *sleep, &again).is_ready() {
        sleep.reset(timer.now() + ms(5));
        is_pending(&mut *sleep, &again);
    }
}

/// Holds a timer, and uses it in its drop.
struct Uses {
    timer: Timer,
    log: Arc<AtomicUsize>,
}

impl Wake for Uses {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Uses {
    fn drop(&mut self) {
        let mut sleep = self.timer.sleep(HOUR);
        if poll(&mut sleep, Waker::noop()).is_pending() {
            drop(sleep);
            self.log.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A waker uses the timer in its drop: when another waker replaces it, when the sleep is dropped,
/// and after a wake. Promises 3 and 7.
#[test]
fn the_drop_of_a_waker_may_use_the_timer() {
    in_time(|| {
        for (timer, clock) in [(manual()), (threads(1), ManualClock::new())] {
            let log = Arc::new(AtomicUsize::new(0));
            let waker = || Waker::from(Arc::new(Uses { timer: timer.clone(), log: Arc::clone(&log) }));
            let mut sleep = timer.sleep(HOUR);
            is_pending(&mut sleep, &waker());
            is_pending(&mut sleep, &waker());
            assert_eq!(log.load(Ordering::SeqCst), 1);
            drop(sleep);
            assert_eq!(log.load(Ordering::SeqCst), 2);
            let mut sleep = timer.sleep(SOON);
            is_pending(&mut sleep, &waker());
            clock.advance(SOON);
            until("the drop is noted", || log.load(Ordering::SeqCst) == 3);
            assert_eq!(timer.stats().pending, 0);
            is_balanced(&timer);
        }
    });
}
