//! The end of a timer races its producers. The tests repeat many times, as a failure is rare.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use shardwheel::{Timer, TimerKey};

use crate::support::{Count, Dropped, END_WAITS, HOUR, after, ms, threads, until};

/// Threads that move timers, more than there are cores, so that most of them are interrupted in a
/// move when the timer ends.
const MOVERS: usize = 24;

/// Moves a timer back and forth until its key names nothing.
fn move_about(timer: &Timer, mut key: TimerKey) {
    let delays = [2 * HOUR, HOUR].into_iter().cycle();
    for delay in delays {
        match timer.reschedule_after(key, delay) {
            Some(moved) => key = moved,
            None => return,
        }
    }
}

/// Each timer comes back at shutdown although a thread is moving it; on a busy machine, where a
/// thread may be stopped in a move for longer than the shutdown waits, each is dropped at least.
/// Promise 8.
fn all_come_back(schedule: fn(&Timer, Dropped) -> TimerKey) {
    for round in 0..40 {
        let (timer, dropped, has_ended) = (threads(2), Count::default(), AtomicBool::new(false));
        let (unfired, may_lose) = thread::scope(|scope| {
            for _ in 0..MOVERS {
                let key = schedule(&timer, Dropped(dropped.clone()));
                let (timer, has_ended) = (&timer, &has_ended);
                scope.spawn(move || {
                    move_about(timer, key);
                    // A timer on the move may look gone a moment before the end.
                    until("the timer has ended", || has_ended.load(Ordering::SeqCst));
                });
            }
            thread::sleep(ms(5));
            let begin = Instant::now();
            let unfired = timer.shutdown();
            let may_lose = begin.elapsed() >= END_WAITS;
            has_ended.store(true, Ordering::SeqCst);
            (unfired, may_lose)
        });
        let back = unfired.count();
        if !may_lose {
            assert_eq!((back, dropped.get()), (MOVERS, MOVERS), "round {round}");
            assert_eq!(timer.stats().handed_back, MOVERS as u64, "round {round}");
        }
        drop(timer);
        assert_eq!(dropped.get(), MOVERS, "round {round}");
    }
}

/// Threads reschedule timers, also recurring ones, while the timer is shut down. Promise 8.
#[test]
fn timers_on_the_move_come_back_at_shutdown() {
    all_come_back(|timer, held| after(timer, HOUR, move || drop(held)));
    all_come_back(|timer, held| {
        timer.schedule_every(HOUR, move || _ = held.0.get()).expect("the timer is open")
    });
}
