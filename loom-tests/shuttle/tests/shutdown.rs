//! Shutdowns from inside and from outside, at the same time.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{Job, Placement, Timer, TimerBuilder, TimerKey};
use shardwheel_shuttle_tests::{Ledger, Token, VirtualClock, explore_both, millis, timer};
use shuttle::sync::mpsc;
use shuttle::thread;

/// Callbacks that run once. The first of them shuts the timer down.
const ONCE: usize = 4;
const ALL: usize = ONCE + 2;

fn run(token: Token) -> impl FnMut() + Send + 'static {
    move || token.run()
}

/// Shuts the timer down, and adds what comes back of these keys.
fn shut_down(timer: &Timer, once: &[TimerKey], handed_back: &AtomicUsize) {
    for task in timer.shutdown() {
        if once.contains(&task.key()) {
            handed_back.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A callback and another thread shut the timer down, about when timers of both shards are due.
/// Each callback that runs once runs or comes back, and all are dropped.
fn shut_down_twice(builder: TimerBuilder) -> (Ledger, Arc<AtomicUsize>) {
    let (stops, stopped) = mpsc::channel();
    let builder = builder.shards(2).placement(Placement::RoundRobin);
    let builder = builder.on_thread_stop(move || stops.send(()).expect("the model waits"));
    let timer = builder.build().expect("it starts");
    let (ledger, handed_back) = (Ledger::of(ALL), Arc::new(AtomicUsize::new(0)));
    let mut once = Vec::new();
    for number in 1..ONCE {
        // Before the shutdowns, at about the same time, and long after them.
        let delay = millis([1_000, 1, 2][number % 3]);
        once.push(timer.schedule_after(delay, run(ledger.token(number, delay))).expect("it is open"));
    }
    for number in ONCE..ALL {
        let token = ledger.token(number, millis(1));
        timer.schedule_every(millis(1), run(token)).expect("it is open");
    }
    let (within, keys, back) = (timer.clone(), once.clone(), Arc::clone(&handed_back));
    let token = ledger.token(0, millis(1));
    let inside = move || {
        token.run();
        shut_down(&within, &keys, &back);
    };
    once.push(timer.schedule_after(millis(1), inside).expect("it is open"));
    let back = Arc::clone(&handed_back);
    let outside = thread::spawn(move || {
        VirtualClock::sleep(millis(1));
        shut_down(&timer, &once, &back);
    });
    outside.join().expect("it does not panic");
    // A shutdown from inside may be at work until the threads have ended.
    (0..2).for_each(|_| stopped.recv().expect("the threads end"));
    (ledger, handed_back)
}

/// Checks what has become of the callbacks, after the last thread. Returns whether only the one
/// came back that was due long after the shutdowns.
fn check((ledger, handed_back): (Ledger, Arc<AtomicUsize>)) -> bool {
    ledger.check();
    let ran = (0..ONCE).map(|number| ledger.ran(number)).collect::<Vec<_>>();
    assert!(ran.iter().all(|&ran| ran <= 1), "{ran:?} have run");
    let handed_back = handed_back.load(Ordering::SeqCst);
    assert_eq!(ran.iter().sum::<usize>() + handed_back, ONCE, "{ran:?} have run");
    handed_back == 1
}

#[test]
fn from_inside_and_from_outside() {
    explore_both("shutdowns from inside and from outside", || check(shut_down_twice(timer())));
}

/// The callbacks run on a thread of an executor.
#[test]
fn with_an_executor() {
    explore_both("shutdowns with an executor", || {
        let (send, receive) = mpsc::channel::<Job>();
        let worker = thread::spawn(move || receive.into_iter().for_each(Job::run));
        let ends = shut_down_twice(timer().executor(move |job: Job| drop(send.send(job))));
        // Ends with the executor, which the last shard drops.
        worker.join().expect("it does not panic");
        check(ends)
    });
}
