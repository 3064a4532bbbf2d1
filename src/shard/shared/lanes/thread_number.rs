//! A number for each of up to 64 threads. A thread keeps its number until it ends; the next thread
//! without one gets the lowest that is free.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers are less than this. A thread with this one has none: all are taken, or it is ending.
pub(super) const NUMBERS: usize = u64::BITS as usize;

/// The thread has not asked for a number.
const UNKNOWN: usize = NUMBERS + 1;

/// A bit for each number that a thread has.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Gives the thread's number back when the thread ends.
struct AtEnd;

thread_local! {
    /// Has no destructor, so it is reached in one step.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static AT_END: AtEnd = const { AtEnd };
}

/// The calling thread's number, or [`NUMBERS`]. Lock-free.
#[inline]
pub(super) fn get() -> usize {
    match NUMBER.get() {
        UNKNOWN => take(),
        number => number,
    }
}

/// Gives the calling thread a number for good. Two threads with one number use different lanes.
#[cfg(test)]
pub(super) fn set(number: usize) {
    NUMBER.set(number);
}

#[cold]
fn take() -> usize {
    if let Some(number) = crate::sync::model_thread() {
        return number;
    }
    // A thread whose `AT_END` is gone gets no number, because nothing would give it back. A thread
    // that finds all numbers taken asks again at its next call.
    if AT_END.try_with(|_| ()).is_err() {
        return NUMBERS;
    }
    let with_lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
    // Ordering: Acquire, pairs with the drop: what the last thread with the number did in its lanes
    // is visible. Relaxed on failure, nothing is read.
    match TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, with_lowest) {
        Ok(before) => {
            let number = (!before).trailing_zeros() as usize;
            NUMBER.set(number);
            number
        }
        Err(_) => NUMBERS,
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let number = NUMBER.replace(NUMBERS);
        if number < NUMBERS {
            // Ordering: Release, pairs with `take`. A later change of other bits continues the
            // release sequence.
            TAKEN.fetch_and(!(1 << number), Ordering::Release);
        }
    }
}
