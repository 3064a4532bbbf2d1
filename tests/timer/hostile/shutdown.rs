//! Shutdown returns, whatever the callbacks do meanwhile.

use std::sync::mpsc::{self, Receiver, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;

use futures::channel::oneshot;
use futures::executor::block_on;
use shardwheel::{Job, ManualClock, Timer};

use crate::support::{
    Built, Count, HOUR, Log, Tampered, after, fires, hear, is_on_shard_of, manual, ms, threads, until,
    watched,
};

/// A callback waits with `wait`, which takes the wake-up that shutdown sends to its thread.
fn ends_while_a_callback_waits(wait: fn(Receiver<()>), end: fn(Timer)) {
    watched(move || {
        let timer = threads(1);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let callback = move || {
            begun.send(()).expect("the test waits");
            wait(released);
        };
        after(&timer, ms(1), callback);
        after(&timer, HOUR, || ());
        hear(&has_begun);
        let ender = thread::spawn(move || end(timer));
        thread::sleep(ms(50));
        release.send(()).expect("the callback waits");
        ender.join().expect("the end does not panic");
    });
}

fn receives(released: Receiver<()>) {
    released.recv().expect("it is released");
}

fn leaves_a_scope(released: Receiver<()>) {
    thread::scope(|scope| drop(scope.spawn(move || receives(released))));
}

fn blocks_on(released: Receiver<()>) {
    let (done, is_done) = oneshot::channel();
    thread::spawn(move || {
        receives(released);
        done.send(()).expect("the callback waits");
    });
    block_on(is_done).expect("the other thread sends it");
}

fn shuts_down(timer: Timer) {
    assert_eq!(timer.shutdown().len(), 1);
}

/// A callback waits for a message, for a scoped thread, or for a future, while its timer is shut down
/// or its last handle is dropped. Promise 8.
#[test]
fn the_end_returns_while_a_callback_waits() {
    type Case = (&'static str, fn(Receiver<()>), fn(Timer));
    let cases: [Case; 4] = [
        ("shutdown_returns_while_a_callback_receives", receives, shuts_down),
        ("shutdown_returns_while_a_callback_leaves_a_scope", leaves_a_scope, shuts_down),
        ("shutdown_returns_while_a_callback_blocks_on_a_future", blocks_on, shuts_down),
        ("dropping_the_last_handle_returns_while_a_callback_receives", receives, drop),
    ];
    for (name, wait, end) in cases {
        println!("{name}");
        ends_while_a_callback_waits(wait, end);
    }
}

/// A timer whose shard's thread parks whenever it reads the clock.
fn with_a_clock_that_parks() -> Timer {
    let before = || {
        if is_on_shard_of("parks-") {
            thread::park_timeout(ms(20));
        }
    };
    let clock = Tampered { before, manual: None };
    Timer::builder().shards(1).thread_name("parks").clock(clock).built()
}

/// A clock parks when the shard's thread reads it, and takes no producer's wake-up: each timer
/// fires before the timer of an hour. Promise 7.
#[test]
fn a_clock_that_parks_takes_no_producers_wake() {
    watched(|| {
        let timer = with_a_clock_that_parks();
        after(&timer, HOUR, || ());
        for pause in (0..100).step_by(5) {
            thread::sleep(ms(pause));
            fires(&timer, ms(1));
        }
    });
}

/// A clock that parks does not take the wake-up of a shutdown. Promise 8.
#[test]
fn shutdown_returns_while_a_clock_parks() {
    watched(|| {
        for pause in (0..100).step_by(5) {
            let timer = with_a_clock_that_parks();
            after(&timer, HOUR, || ());
            thread::sleep(ms(pause));
            assert_eq!(timer.shutdown().len(), 1);
        }
    });
}

const JOBS: usize = 8;

/// Each of eight jobs shuts the timer down, while the shard waits for room in a queue of length
/// `queue`.
fn a_job_shuts_down(queue: usize, clock: Option<ManualClock>) {
    let (send, receive) = sync_channel::<Job>(queue);
    let runner = thread::spawn(move || receive.into_iter().for_each(Job::run));
    let builder = Timer::builder().shards(1).executor(move |job: Job| drop(send.send(job)));
    let timer = clock.iter().cloned().fold(builder, |builder, clock| builder.clock(clock)).built();
    let (ran, handed_back) = (Count::default(), Log::new());
    for _ in 0..JOBS {
        let (inner, ran, handed_back) = (timer.clone(), ran.clone(), handed_back.clone());
        let shuts_down = move || {
            thread::sleep(ms(50));
            handed_back.add(inner.shutdown().len());
            ran.one();
        };
        after(&timer, ms(20), shuts_down);
    }
    if let Some(clock) = clock {
        clock.advance(ms(20));
    }
    let mut unfired = 0;
    until("each job has run or come back", || {
        unfired += handed_back.take().iter().sum::<usize>();
        ran.get() + unfired == JOBS
    });
    drop(timer);
    runner.join().expect("the executor goes with the timer");
}

/// Shutdown does not wait for the executor that its own job blocks; nor where the thread that moves a
/// manual clock is in the executor. Promises 7 and 8.
#[test]
fn a_job_may_shut_down_while_the_executor_is_full() {
    for queue in [0, 1] {
        watched(move || a_job_shuts_down(queue, None));
        watched(move || a_job_shuts_down(queue, Some(ManualClock::new())));
    }
}

/// One callback of each timer runs at the same moment, and ends the next timer; `drive` moves their
/// clocks.
fn end_in_a_circle(timers: Vec<Timer>, by_drop: bool, drive: Vec<ManualClock>) {
    let meeting = Arc::new(Barrier::new(timers.len()));
    let (sender, receiver) = mpsc::channel();
    for (i, timer) in timers.iter().enumerate() {
        let (next, meeting) = (timers[(i + 1) % timers.len()].clone(), Arc::clone(&meeting));
        let sender = sender.clone();
        let ends_the_next = move || {
            meeting.wait();
            if !by_drop {
                assert!(next.shutdown().is_empty());
            }
            drop(next);
            sender.send(()).expect("the test waits");
        };
        after(timer, ms(50), ends_the_next);
    }
    let count = timers.len();
    let kept = (!by_drop).then_some(timers);
    let move_on = |clock: ManualClock| thread::spawn(move || clock.advance(ms(50)));
    let drivers: Vec<_> = drive.into_iter().map(move_on).collect();
    (0..count).for_each(|_| hear(&receiver));
    drivers.into_iter().for_each(|driver| driver.join().expect("the thread does not panic"));
    drop(kept);
}

/// Callbacks of two timers, or of three in a circle, shut down the next one at the same time, or drop
/// its last handle. Promises 7 and 8.
#[test]
fn callbacks_may_end_each_others_timer() {
    let cases = [
        ("two_callbacks_may_shut_each_others_timer_down", 2, false, false),
        ("three_callbacks_may_shut_timers_down_in_a_circle", 3, false, false),
        ("two_callbacks_may_drop_each_others_last_handle", 2, true, false),
        ("two_callbacks_of_manual_timers_may_end_each_other", 2, false, true),
        ("two_callbacks_of_manual_timers_may_end_each_other", 2, true, true),
    ];
    for (name, count, by_drop, is_manual) in cases {
        println!("{name}");
        watched(move || {
            let new = || if is_manual { manual() } else { (threads(1), ManualClock::new()) };
            let (timers, clocks) = (0..count).map(|_| new()).unzip();
            end_in_a_circle(timers, by_drop, clocks);
        });
    }
}

/// A callback of a timer, whose clock `pass` moves, runs until a callback of another timer has done
/// `act`, which therefore does not wait for it.
fn acts_beside_a_callback(timer: &Timer, pass: impl FnOnce(), act: impl FnOnce() + Send + 'static) {
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let callback = move || {
        begun.send(()).expect("the test waits");
        hear(&released);
    };
    after(timer, ms(1), callback);
    pass();
    hear(&has_begun);
    let (done, is_done) = mpsc::channel();
    let other = threads(1);
    let acts = move || {
        act();
        release.send(()).expect("the callback waits");
        done.send(()).expect("the test waits");
    };
    after(&other, ms(1), acts);
    hear(&is_done);
}

/// A callback that shuts another timer down waits for no callback of that timer. Promise 7.
#[test]
fn a_callback_waits_for_no_callback_of_a_timer_that_it_ends() {
    watched(|| {
        let timer = threads(1);
        after(&timer, HOUR, || ());
        let ended = timer.clone();
        acts_beside_a_callback(&timer, || (), move || assert_eq!(ended.shutdown().len(), 1));
    });
}

/// A callback that moves a clock which another thread drives waits for no callback of that clock;
/// the other thread runs what is due. Promise 7.
#[test]
fn a_callback_waits_for_no_callback_of_a_clock_that_it_moves() {
    watched(|| {
        let (timer, clock) = manual();
        let fired = Count::default();
        after(&timer, ms(20), fired.adds());
        let (moved, driven, mut driver) = (clock.clone(), clock.clone(), None);
        let drive = || driver = Some(thread::spawn(move || driven.advance(ms(1))));
        acts_beside_a_callback(&timer, drive, move || moved.advance(ms(30)));
        driver.expect("it has started").join().expect("the thread does not panic");
        assert_eq!((fired.get(), clock.elapsed()), (1, ms(31)));
    });
}

/// Callbacks of several manual clocks move each other's clock. Promise 7.
#[test]
fn manual_clocks_may_move_each_other() {
    for count in [2, 3] {
        watched(move || {
            let (timers, clocks): (Vec<_>, Vec<_>) = (0..count).map(|_| manual()).unzip();
            let meeting = Arc::new(Barrier::new(count));
            for (i, timer) in timers.iter().enumerate() {
                let (next, meeting) = (clocks[(i + 1) % count].clone(), Arc::clone(&meeting));
                let moves_the_next = move || {
                    meeting.wait();
                    next.advance(ms(10));
                };
                after(timer, ms(10), moves_the_next);
            }
            let drive = |clock: ManualClock| thread::spawn(move || clock.advance(ms(20)));
            let drivers: Vec<_> = clocks.iter().cloned().map(drive).collect();
            drivers.into_iter().for_each(|driver| driver.join().expect("the thread does not panic"));
            assert!(timers.iter().all(|timer| timer.stats().fired == 1));
            assert!(clocks.iter().all(|clock| clock.elapsed() >= ms(20)));
        });
    }
}
