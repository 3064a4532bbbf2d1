//! Timers of two shards, whose two drivers change hands while callbacks block, schedule, cancel and
//! move other timers.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use shardwheel::Placement;
use shardwheel_shuttle_tests::{Ledger, explore, explore_both, millis, timer};
use shuttle::sync::mpsc::{self, Receiver, Sender};
use shuttle::thread;

/// Two callbacks, of different shards, wait for each other. The leader blocks in one of them, so
/// the watchdog has to run the other. Nothing else wakes a thread: a lost wake-up is a deadlock.
#[test]
fn two_callbacks_that_wait_for_each_other() {
    explore("two callbacks that wait for each other", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let ledger = Ledger::of(2);
        let (end, ended) = mpsc::channel();
        let meet = |number: usize, to: Sender<()>, from: Receiver<()>| {
            let (token, end) = (ledger.token(number, millis(1)), end.clone());
            move || {
                token.run();
                to.send(()).expect("the other one waits");
                from.recv().expect("the other one runs");
                drop(token);
                end.send(()).expect("the model waits");
            }
        };
        let [(to_one, from_two), (to_two, from_one)] = [(); 2].map(|()| mpsc::channel());
        timer.schedule_after(millis(1), meet(0, to_two, from_two)).expect("it is open");
        timer.schedule_after(millis(1), meet(1, to_one, from_one)).expect("it is open");
        (0..2).for_each(|_| ended.recv().expect("both run"));
        assert_eq!(timer.shutdown().count(), 0);
        ledger.check();
        assert_eq!([0, 1].map(|number| ledger.ran(number)), [1, 1]);
    });
}

/// Callbacks schedule, cancel and move timers of both shards, and another thread does the same.
#[test]
fn callbacks_that_use_the_timer() {
    explore_both("callbacks that use the timer", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let ledger = Ledger::of(6);
        let (end, ended) = mpsc::channel();
        let callback = |number, delay| {
            let (token, end) = (ledger.token(number, millis(delay)), end.clone());
            move || {
                token.run();
                drop(token);
                end.send(number).expect("the model waits");
            }
        };
        let after = |delay, callback| timer.schedule_after(millis(delay), callback).expect("it is open");
        // Cancelled by a callback about when it is due, and moved by a callback to a later time.
        let cancelled = timer.schedule_after(millis(2), callback(0, 2)).expect("it is open");
        let moved = timer.schedule_after(millis(2), callback(1, 2)).expect("it is open");
        let (cancels, moves, schedules) = (timer.clone(), timer.clone(), timer.clone());
        let (first, second, third) = (callback(2, 1), callback(3, 1), callback(4, 1));
        let fourth = callback(5, 2);
        let was_cancelled = end.clone();
        let boxed: [Box<dyn FnOnce() + Send>; 3] = [
            Box::new(move || {
                if cancels.cancel(cancelled) {
                    was_cancelled.send(0).expect("the model waits");
                }
                first();
            }),
            Box::new(move || {
                // Whether the timer is moved or has fired, it fires once.
                let _ = moves.reschedule_after(moved, millis(9));
                second();
            }),
            Box::new(move || {
                schedules.schedule_after(millis(1), fourth).map(drop).expect("it is open");
                third();
            }),
        ];
        let [one, two, three] = boxed;
        after(1, one);
        let other = timer.clone();
        let thread = thread::spawn(move || {
            other.schedule_after(millis(1), two).expect("it is open");
        });
        after(1, three);
        let mut ends = (0..6).map(|_| ended.recv().expect("each ends")).collect::<Vec<_>>();
        thread.join().expect("it does not panic");
        ends.sort_unstable();
        assert_eq!(ends, [0, 1, 2, 3, 4, 5]);
        assert_eq!(timer.shutdown().count(), 0);
        ledger.check();
        assert!(ledger.ran(0) <= 1 && (1..6).all(|number| ledger.ran(number) == 1));
        ledger.ran(0) == 1
    });
}
