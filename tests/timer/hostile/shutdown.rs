//! Shutdown returns, whatever the callbacks do meanwhile.

use std::sync::mpsc::{self, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;

use shardwheel::{Job, ManualClock, Timer};

use crate::support::{
    Built, Count, HOUR, Log, Tampered, after, fires, hear, is_on_shard_of, manual, ms, threads, until,
    watched,
};

/// A clock parks whenever the shard's thread reads it. It takes the wake-up of no producer, whose timer
/// fires before the timer of an hour, nor that of a shutdown. Promises 7 and 8.
#[test]
fn a_clock_that_parks_takes_no_wake() {
    watched(|| {
        for pause in (0..100).step_by(10) {
            let before = || {
                if is_on_shard_of("parks-") {
                    thread::park_timeout(ms(20));
                }
            };
            let clock = Tampered { before, manual: None };
            let timer = Timer::builder().shards(1).thread_name("parks").clock(clock).built();
            after(&timer, HOUR, || ());
            thread::sleep(ms(pause));
            fires(&timer, ms(1));
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
