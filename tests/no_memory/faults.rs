//! An allocator that refuses the requests of a thread as that thread has asked.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    /// The request of that number, counted from 1.
    Once(usize),
    /// That request, and all after it.
    From(usize),
}

#[derive(Clone, Copy)]
struct Plan {
    fail: Fail,
    /// Requests so far.
    requests: usize,
}

thread_local! {
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
    /// Whether a request has been refused since [`begin`].
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    static SUSPENDED: Cell<Option<Plan>> = const { Cell::new(None) };
}

/// Begins to count; no request is refused yet.
pub(crate) fn begin(fail: Fail) {
    SUSPENDED.set(Some(Plan { fail, requests: 0 }));
    REFUSED.set(false);
}

/// Ends. Returns whether a request was refused.
pub(crate) fn end() -> bool {
    SUSPENDED.set(None);
    REFUSED.get()
}

/// Runs `work`, whose requests count and may be refused. The test's own requests are outside.
pub(crate) fn short<R>(work: impl FnOnce() -> R) -> R {
    PLAN.set(SUSPENDED.take());
    let result = work();
    SUSPENDED.set(PLAN.take());
    result
}

/// Requests of crossbeam-epoch that abort when they are refused: what it knows of a thread, for
/// which the crate looks for memory beforehand, and a bag of deferred calls, the advancer's.
const EPOCHS: [(usize, usize); 2] = [(2304, 128), (2072, 8)];

/// Whether this request fails.
fn refuses(layout: Layout) -> bool {
    if EPOCHS.contains(&(layout.size(), layout.align())) {
        return false;
    }
    // A panic message needs memory.
    if std::thread::panicking() {
        return false;
    }
    let Ok(Some(mut plan)) = PLAN.try_with(Cell::get) else { return false };
    plan.requests += 1;
    let refuses = match plan.fail {
        Fail::Once(number) => plan.requests == number,
        Fail::From(number) => plan.requests >= number,
    };
    PLAN.set(Some(plan));
    REFUSED.set(refuses || REFUSED.get());
    refuses
}

struct Failing;

// SAFETY: all calls are passed on to the system's allocator unchanged, or refused, as any allocator
// may.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;
