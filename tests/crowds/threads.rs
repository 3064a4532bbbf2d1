//! Threads in waves and all at once.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;

/// Threads in all, and of a wave.
pub(crate) const THREADS: usize = 4_000;
const WAVE: usize = 100;

/// Threads that are alive at once.
pub(crate) const AT_ONCE: usize = 1_000;

/// A small stack, in bytes, as a thousand threads are alive at once.
const STACK: usize = 512 << 10;

/// What each thread of a crowd does, by its number.
pub(crate) type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Runs `work` in these threads, all of which are alive at once, and stay alive until `meanwhile` is
/// done.
pub(crate) fn crowd(threads: Range<usize>, work: Work<'_>, meanwhile: impl FnOnce()) {
    let meeting = &Barrier::new(threads.len() + 1);
    thread::scope(|scope| {
        for number in threads {
            let thread = move || {
                // A panic must not keep the others waiting.
                let done = catch_unwind(AssertUnwindSafe(|| work(number)));
                meeting.wait();
                meeting.wait();
                done.unwrap_or_else(|panic| resume_unwind(panic));
            };
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, thread).expect("the system has threads");
        }
        meeting.wait();
        // A failed assertion comes out when the threads have been released.
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        meeting.wait();
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Threads come and go, a wave at a time.
pub(crate) fn waves(work: Work<'_>) {
    (0..THREADS).step_by(WAVE).for_each(|first| crowd(first..first + WAVE, work, || ()));
}

/// One wave.
pub(crate) fn wave(work: Work<'_>) {
    crowd(0..WAVE, work, || ());
}

/// Many threads at once.
pub(crate) fn many(work: Work<'_>) {
    crowd(0..2 * AT_ONCE, work, || ());
}
