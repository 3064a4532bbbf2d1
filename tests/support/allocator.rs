//! An allocator that counts. A target that measures allocations makes it its global allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Passes all calls on to the system's allocator, and counts.
pub(crate) struct Counting;

/// Bytes in use, and the most there were since the last [`peak_of`].
static IN_USE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
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

// SAFETY: all calls are passed on to the system's allocator unchanged; counting neither allocates
// nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        remove(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}
