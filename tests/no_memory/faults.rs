//! An allocator that refuses what it is told to, to the thread that has told it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    /// The one of that number, the first being 1.
    Once(usize),
    /// It, and all after it.
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
    /// Whether anything has been refused since [`begin`].
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    static SUSPENDED: Cell<Option<Plan>> = const { Cell::new(None) };
}

/// Begins to count, with nothing refused yet.
pub(crate) fn begin(fail: Fail) {
    SUSPENDED.set(Some(Plan { fail, requests: 0 }));
    REFUSED.set(false);
}

/// Ends; whether anything has been refused.
pub(crate) fn end() -> bool {
    SUSPENDED.set(None);
    REFUSED.get()
}

/// Runs what is to be refused memory, if its turn has come. What the test itself needs it needs outside.
pub(crate) fn short<R>(work: impl FnOnce() -> R) -> R {
    PLAN.set(SUSPENDED.take());
    let result = work();
    SUSPENDED.set(PLAN.take());
    result
}

/// What crossbeam-epoch asks for, without a way out where it gets nothing: what it knows of a thread, and a bag of calls
/// that are put off. The crate looks beforehand whether there is memory, and does without if there is none.
const EPOCHS: [(usize, usize); 2] = [(2304, 128), (2072, 8)];

/// Whether this request is to fail.
fn refuses(layout: Layout) -> bool {
    if EPOCHS.contains(&(layout.size(), layout.align())) {
        return false;
    }
    // What a panic says needs memory.
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
    if refuses && !REFUSED.replace(true) {
        // What this needs is not refused.
        PLAN.set(None);
        trace();
        PLAN.set(Some(plan));
    }
    refuses
}

/// Says which lines of the crate have asked, if that is wanted.
fn trace() {
    if !crate::child::is_traced() {
        return;
    }
    let text = Backtrace::force_capture().to_string();
    let ours = text.lines().map(str::trim).filter_map(|line| line.strip_prefix("at ./src/"));
    let lines: Vec<_> = ours.take(6).collect();
    eprintln!("asked for by src/{}", lines.join(" < "));
}

struct Failing;

// SAFETY: all is passed on to the system's allocator as it is, or refused, as any allocator may.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;
