//! What callbacks leave behind, and how to wait for it.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use shardwheel::{ManualClock, Timer};

use super::timers::*;

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A manual one and one with two threads, for what has to hold of both. The first comes with its clock.
pub(crate) fn both() -> [(Timer, Option<ManualClock>); 2] {
    let (timer, clock) = manual();
    [(timer, Some(clock)), (threads(2), None)]
}

/// Lets that much time pass: by the clock, or in truth.
pub(crate) fn pass(clock: &Option<ManualClock>, time: Duration) {
    match clock {
        Some(clock) => clock.advance(time),
        None => thread::sleep(time),
    }
}

/// What callbacks wrote down, in the order in which they did.
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn add(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// What has been written since the last call.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Counts what threads do.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// Counts one.
    pub(crate) fn one(&self) {
        self.one_more();
    }

    /// Counts one, and says how many there are now.
    pub(crate) fn one_more(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn less_one(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Counts its drops, each once.
pub(crate) struct Dropped(pub(crate) Count);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.one();
    }
}

/// What somebody sends, waited for.
pub(crate) fn hear<T>(heard: &Receiver<T>) -> T {
    heard.recv_timeout(PATIENCE).expect("it is to be sent")
}

/// Checks, on a timer that is quiet, that each timer that it took has one outcome or is pending.
pub(crate) fn is_balanced(timer: &Timer) {
    let holds = |figures: &shardwheel::Figures| {
        let ended = figures.fired + figures.cancelled + figures.handed_back;
        figures.scheduled + figures.recurred == ended + figures.pending as u64
    };
    let mut stats = timer.stats();
    // The last callback may have told of itself just before its shard counts.
    let begin = Instant::now();
    while !(holds(&stats) && stats.shards.iter().all(holds)) {
        assert!(begin.elapsed() < PATIENCE, "{stats:?}");
        thread::sleep(ms(1));
        stats = timer.stats();
    }
}

/// Runs `work`, which schedules, on a thread whose own shard is that one. None where there is no such thread: on a
/// machine with one core, all threads that schedule are that core's.
pub(crate) fn on_shard<R: Send>(timer: &Timer, shard: usize, work: impl Fn() -> R + Sync) -> Option<R> {
    let attempt = || {
        // Where this works, the thread is of its core's shard; where not, threads are given shards in turn.
        core_affinity::set_for_current(CoreId { id: shard });
        let before = timer.stats().shards[shard].scheduled;
        timer.cancel(timer.schedule_after(HOUR, || ()).expect("the timer is open"));
        (timer.stats().shards[shard].scheduled > before).then(&work)
    };
    (0..64)
        .find_map(|_| thread::scope(|scope| scope.spawn(attempt).join().expect("work that does not panic")))
}

/// Runs `work`, which is to panic, and says with what.
pub(crate) fn panics<R: Debug>(work: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("it was to panic");
    *panic.downcast::<&'static str>().map(|text| Box::new((*text).to_owned())).expect("a text")
}

/// The names of this process's threads that begin so, in order; they are short enough for the system to keep whole.
/// None where the system does not tell.
pub(crate) fn threads_named(prefix: &str) -> Option<Vec<String>> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| task.ok().and_then(name)).map(|name| name.trim_end().to_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    Some(names)
}

/// Checks that there are as many threads of that name; one that has ended, and was waited for, may be listed for a
/// moment longer.
pub(crate) fn are_threads(prefix: &str, count: usize) {
    let named = || threads_named(prefix);
    until("threads as they should be", || named().is_none_or(|names| names.len() == count));
}
