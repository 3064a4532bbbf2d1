//! A `BTreeMap` by deadline and a number that keeps equal deadlines apart. The key is the handle.

use std::collections::BTreeMap;

use super::structure::{First, Removal, Structure};

pub(crate) struct Tree {
    timers: BTreeMap<(u64, u64), u64>,
    next_id: u64,
}

impl Structure for Tree {
    const NAMES: [&'static str; 2] = ["tree", "tree without a lock"];

    type Handle = (u64, u64);

    fn new() -> Self {
        Self { timers: BTreeMap::new(), next_id: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> (u64, u64) {
        let handle = (deadline, self.next_id);
        self.next_id += 1;
        self.timers.insert(handle, payload);
        handle
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        let first = self.timers.first_entry().filter(|first| first.key().0 <= now)?;
        let ((deadline, _), payload) = first.remove_entry();
        Some((deadline, payload))
    }
}

impl First for Tree {
    #[inline]
    fn next_expiration(&self) -> Option<u64> {
        self.timers.first_key_value().map(|(&(deadline, _), _)| deadline)
    }
}

impl Removal for Tree {
    #[inline]
    fn cancel(&mut self, handle: (u64, u64)) -> Option<u64> {
        self.timers.remove(&handle)
    }
}
