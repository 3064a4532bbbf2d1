//! The end of a timer against its producers and its executor: what takes many attempts to see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use shardwheel::{Timer, TimerKey};

use crate::support::{Count, Dropped, HOUR, after, ms, threads, until};

/// Threads that move timers until they are gone, more than there are cores: most are stopped
/// somewhere in a move when the timer ends.
const MOVERS: usize = 24;

/// Moves a timer to and fro until it is gone; whether its shard has ended by then.
fn move_about(timer: &Timer, mut key: TimerKey) {
    let delays = [2 * HOUR, HOUR].into_iter().cycle();
    for delay in delays {
        match timer.reschedule_after(key, delay) {
            Some(moved) => key = moved,
            None => return,
        }
    }
}

/// Each timer comes back at shutdown, though it is on the move. Promise 8.
fn all_come_back(schedule: fn(&Timer, Dropped) -> TimerKey) {
    for round in 0..40 {
        let (timer, dropped, has_ended) = (threads(2), Count::default(), AtomicBool::new(false));
        let unfired = thread::scope(|scope| {
            for _ in 0..MOVERS {
                let key = schedule(&timer, Dropped(dropped.clone()));
                let (timer, has_ended) = (&timer, &has_ended);
                scope.spawn(move || {
                    move_about(timer, key);
                    // What was met on the move may be seen as gone a moment before the end.
                    until("the end", || has_ended.load(Ordering::SeqCst));
                });
            }
            thread::sleep(ms(5));
            let unfired = timer.shutdown();
            has_ended.store(true, Ordering::SeqCst);
            unfired
        });
        assert_eq!((unfired.count(), dropped.get()), (MOVERS, MOVERS), "round {round}");
        assert_eq!(timer.stats().handed_back, MOVERS as u64, "round {round}");
    }
}

/// Threads reschedule timers while the timer is shut down. Promise 8.
#[test]
fn timers_on_the_move_come_back_at_shutdown() {
    all_come_back(|timer, held| after(timer, HOUR, move || drop(held)));
}

/// The same with recurring timers. Promise 8.
#[test]
fn recurring_timers_on_the_move_come_back_at_shutdown() {
    all_come_back(|timer, held| {
        timer.schedule_every(HOUR, move || _ = held.0.get()).expect("the timer is open")
    });
}
