//! An allocator that counts, and refuses requests of a thread as that thread has asked. A target
//! that measures allocations, or is refused some, makes it its global allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Passes all calls on to the system's allocator, and counts; or refuses.
pub(crate) struct Counting;

/// Which requests of a thread fail: one, or all from one on. They are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    Once(u64),
    From(u64),
}

/// Bytes in use, and the most there were since the last [`peak_of`].
static IN_USE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// What fails, and the requests so far, where they count.
    static SHORT: Cell<Option<(Fail, u64)>> = const { Cell::new(None) };
    /// The same where they do not count.
    static SUSPENDED: Cell<Option<(Fail, u64)>> = const { Cell::new(None) };
    /// Whether a request has been refused since [`begin`].
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Begins to refuse requests of the calling thread, which count inside [`short`].
pub(crate) fn begin(fail: Fail) {
    SUSPENDED.set(Some((fail, 0)));
    REFUSED.set(false);
}

/// Ends. Returns whether a request was refused.
pub(crate) fn end() -> bool {
    SUSPENDED.set(None);
    REFUSED.get()
}

/// Runs `work`, whose requests count and may be refused. The test's own requests are outside.
pub(crate) fn short<R>(work: impl FnOnce() -> R) -> R {
    SHORT.set(SUSPENDED.take());
    let result = work();
    SUSPENDED.set(SHORT.take());
    result
}

/// Requests of crossbeam-epoch that abort when they are refused: what it knows of a thread, for
/// which the crate looks for memory beforehand, and a bag of deferred calls, the advancer's.
const EPOCHS: [(usize, usize); 2] = [(2304, 128), (2072, 8)];

/// Whether this request fails. A panic message needs memory.
fn refuses(layout: Layout) -> bool {
    if EPOCHS.contains(&(layout.size(), layout.align())) || std::thread::panicking() {
        return false;
    }
    let Ok(Some((fail, requests))) = SHORT.try_with(Cell::get) else { return false };
    let requests = requests + 1;
    SHORT.set(Some((fail, requests)));
    let refuses = match fail {
        Fail::Once(number) => requests == number,
        Fail::From(number) => requests >= number,
    };
    REFUSED.set(refuses || REFUSED.get());
    refuses
}

/// Bytes that the process has allocated and not freed.
pub(crate) fn in_use() -> isize {
    IN_USE.load(Ordering::Relaxed)
}

/// By how much the heap grows at most while `work` runs. (Nodes are mapped, so they are not on the
/// heap.)
pub(crate) fn peak_of<R>(work: impl FnOnce() -> R) -> (isize, R) {
    let before = in_use();
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

/// How often the calling thread has allocated.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Counts an allocation of the calling thread, unless the thread is ending.
fn add(bytes: usize) {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let bytes = bytes as isize;
    PEAK.fetch_max(IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

fn remove(bytes: usize) {
    IN_USE.fetch_sub(bytes as isize, Ordering::Relaxed);
}

// SAFETY: all calls are passed on to the system's allocator unchanged, or refused, as any allocator
// may; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(layout) {
            return std::ptr::null_mut();
        }
        add(size);
        remove(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}
