//! A letter box, with orderings of each sort: needed, not needed, and not there in a model.

#[cfg(planted_loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(planted_loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Holds a letter.
#[derive(Debug)]
pub struct LetterBox {
    letter: AtomicU32,
    is_full: AtomicBool,
    posted: AtomicU32,
}

impl LetterBox {
    /// An empty one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "loom's atomics have none that is of use here")]
    pub fn new() -> Self {
        Self { letter: AtomicU32::new(0), is_full: AtomicBool::new(false), posted: AtomicU32::new(0) }
    }

    /// Puts a letter in.
    pub fn post(&self, letter: u32) {
        // Ordering: Relaxed, published by the flag.
        self.letter.store(letter, Ordering::Relaxed);
        // Ordering: Release, pairs with `collect`.
        self.is_full.store(true, Ordering::Release);
        // Ordering: Release for no reason, which the tool is to find out.
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// The letter, if there is one.
    #[must_use]
    pub fn collect(&self) -> Option<u32> {
        // Ordering: Acquire, pairs with `post`; Relaxed, that brought the letter.
        self.is_full.load(Ordering::Acquire).then(|| self.letter.load(Ordering::Relaxed))
    }

    /// How many letters were posted.
    #[must_use]
    pub fn posted(&self) -> u32 {
        // Ordering: Relaxed, a count.
        self.posted.load(Ordering::Relaxed)
    }

    /// As [`posted`](Self::posted), where no model looks.
    #[cfg(not(planted_loom))]
    #[must_use]
    pub fn posted_so_far(&self) -> u32 {
        // Ordering: Acquire for no reason.
        self.posted.load(Ordering::Acquire)
    }
}
