//! loom's types in the place of the standard library's: see `src/sync/mod.rs`.

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;
pub(crate) use std::sync::mpsc;
pub(crate) use std::thread_local;

pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Parking, with the standard library's names. loom's own `unpark` also ends a wait of the
/// thread for a lock or for another thread.
pub(crate) mod thread {
    use loom::sync::{Arc, Condvar, Mutex};

    #[derive(Clone)]
    pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

    loom::thread_local! {
        static OWN: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
    }

    impl Thread {
        pub(crate) fn unpark(&self) {
            let (token, left) = &*self.0;
            *token.lock().expect("no model panics here") = true;
            left.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        OWN.with(Clone::clone)
    }

    pub(crate) fn park() {
        let own = current();
        let (token, left) = &*own.0;
        let mut token = token.lock().expect("no model panics here");
        while !*token {
            token = left.wait(token).expect("no model panics here");
        }
        *token = false;
    }

    /// A model has no time, so the wait is over at once.
    pub(crate) fn park_timeout(_: std::time::Duration) {
        loom::thread::yield_now();
    }

    pub(crate) use park_timeout as sleep;

    // No model starts the threads of a timer.
    pub(crate) use std::thread::{Builder, JoinHandle, available_parallelism};
}

/// atomic-waker's type, of which a model sees what matters: a registration and a wake come one
/// after the other, and the later one acquires what the earlier one has released.
#[cfg(feature = "timer")]
pub(crate) struct AtomicWaker(Mutex<Option<std::task::Waker>>);

#[cfg(feature = "timer")]
impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn register(&self, waker: &std::task::Waker) {
        *self.0.lock().expect("no model panics here") = Some(waker.clone());
    }

    pub(crate) fn take(&self) -> Option<std::task::Waker> {
        self.0.lock().expect("no model panics here").take()
    }
}

pub(crate) fn hint<H>(_: impl FnOnce() -> H) -> Option<H> {
    None
}

/// The number of the calling thread. A model ends before the locals of its threads do, so its
/// threads cannot give numbers back.
pub(crate) fn model_thread() -> Option<usize> {
    let id = format!("{:?}", loom::thread::current().id());
    Some(id.chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a number"))
}

/// Makes accesses to `plain` data visible to loom.
///
/// loom tries another order of two steps only if both touch the same loom object. So each
/// change and each read of `plain` data touches a trace, *before* the access: loom orders the
/// steps that it observes, each together with all that follows it up to the next such step.
///
/// loom also remembers only the last access to each object, by any thread. If a thread reads an
/// atomic and then changes it, loom misses another thread's read that comes before both. A
/// trace between the two steps makes up for that.
#[derive(Debug)]
pub(crate) struct Trace(AtomicU32);

impl Trace {
    pub(crate) fn begin() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn model_change(&self) {
        // Ordering: Relaxed, loom must observe the access; it orders nothing.
        self.0.fetch_add(1, super::Ordering::Relaxed);
    }

    pub(crate) fn model_look(&self) {
        // Ordering: Relaxed, as above.
        self.0.load(super::Ordering::Relaxed);
    }
}
