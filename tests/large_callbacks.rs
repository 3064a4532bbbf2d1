//! Callbacks that are larger than the stack of the thread that runs them.

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use shardwheel::{Job, Timer};
use support::{Count, Dropped, HOUR, hear, manual, ms, survives, threads, until};

/// More than the stack of a timer's thread holds.
const LARGE: usize = 3 << 20;

/// Runs `work` on a thread with a stack on which a few large callbacks have room.
fn with_room(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(32 * LARGE).spawn(work).expect("a thread starts");
    thread.join().expect("no panic");
}

/// A callback with a capture of 3 MB runs on a timer's thread, or an executor's, or is dropped
/// there, and its stack has 2 MiB. Promise 7. `cargo test --release --test large_callbacks` runs it.
#[test]
#[cfg_attr(debug_assertions, ignore = "code that is not optimised copies the capture to the stack")]
fn a_callback_larger_than_the_stack_runs() {
    survives(|| {
        with_room(|| {
            let (jobs, queue) = mpsc::channel::<Job>();
            thread::spawn(move || queue.into_iter().for_each(Job::run));
            let pool = Timer::builder().executor(move |job: Job| drop(jobs.send(job)));
            for timer in [threads(1), pool.build().expect("settings within their limits")] {
                let (sender, receiver) = mpsc::channel();
                let (other, large) = (sender.clone(), [7_u8; LARGE]);
                let drops = Count::default();
                let dropped = Dropped(drops.clone());
                let once = move || sender.send(large[LARGE - 1]).expect("the test waits");
                let key = timer.schedule_after(HOUR, once.clone()).expect("the timer is open");
                timer.schedule_after(ms(1), once.clone()).expect("the timer is open");
                assert_eq!(hear(&receiver), 7);
                let recurs = move || _ = other.send(large[0]);
                let recurring = timer.schedule_every(ms(1), recurs).expect("the timer is open");
                assert_eq!((hear(&receiver), hear(&receiver)), (7, 7));
                // The timer's thread drops the schedule and the callback.
                let mut is_first = true;
                let ends = move |at: Instant| std::mem::take(&mut is_first).then(|| at + ms(large[0].into()));
                timer.schedule_with(ends, move || _ = (&dropped, large[0])).expect("the timer is open");
                until("it is dropped", || drops.get() == 1);
                timer.schedule_after(HOUR, once).expect("the timer is open");
                // Neither a cancel nor the caller of `run` needs more of the stack.
                let small = thread::spawn(move || {
                    assert!(timer.cancel(key) && timer.cancel(recurring));
                    timer.shutdown().for_each(shardwheel::UnfiredTask::run);
                });
                small.join().expect("no panic");
                assert!(receiver.into_iter().count() >= 1);
            }
        });
    });
}

/// A large callback that is refused comes back. Promise 8.
#[test]
fn a_refused_callback_larger_than_the_stack_comes_back() {
    survives(|| {
        with_room(|| {
            let (timer, _clock) = manual();
            drop(timer.shutdown());
            let large = [7_u8; LARGE];
            let refused = timer.schedule_after(ms(1), move || assert_eq!(large[0], 7));
            refused.expect_err("the timer is over").into_payload()();
        });
    });
}
