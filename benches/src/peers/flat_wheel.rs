//! The least that a timer wheel can be: one level, a bucket for each tick, no lock, no cascade.
//!
//! A bucket is a list linked through a `Vec` of nodes. Cancelling marks the node, extending writes the later
//! deadline into it; the bucket's turn frees the one and moves the other. It has eight megabytes of buckets and
//! looks at every tick that the clock passes, so it is a bound for what a timer may cost, not a structure to use.

use super::BUCKETS;
use crate::structure::{Removal, Structure};

const NONE: u32 = u32::MAX;

struct Node {
    deadline: u64,
    payload: Option<u64>,
    generation: u32,
    next: u32,
}

/// One list for each tick, written by hand.
pub struct FlatWheel {
    heads: Vec<u32>,
    nodes: Vec<Node>,
    free: u32,
    /// What is left of the bucket at `clock`.
    rest: u32,
    clock: u64,
}

impl FlatWheel {
    #[inline]
    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Puts a node into its deadline's bucket, or into the next one where that has passed.
    #[inline]
    fn link(&mut self, node: u32) {
        let tick = self.node(node).deadline.max(self.clock + 1);
        let head = &mut self.heads[tick as usize % BUCKETS];
        self.nodes[node as usize].next = std::mem::replace(head, node);
    }

    #[inline]
    fn free(&mut self, node: u32) {
        self.node(node).next = self.free;
        self.free = node;
    }
}

impl Structure for FlatWheel {
    const NAME: &'static str = "flat wheel, no lock";
    const NAME_LOCKED: &'static str = "flat wheel";

    type Handle = (u32, u32);

    fn new() -> Self {
        Self { heads: vec![NONE; BUCKETS], nodes: Vec::new(), free: NONE, rest: NONE, clock: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> (u32, u32) {
        let mut node = self.free;
        if node == NONE {
            node = u32::try_from(self.nodes.len()).expect("fewer than 2^32 timers");
            self.nodes.push(Node { deadline, payload: Some(payload), generation: 0, next: NONE });
        } else {
            self.free = self.node(node).next;
            let Node { generation, .. } = *self.node(node);
            *self.node(node) =
                Node { deadline, payload: Some(payload), generation: generation.wrapping_add(1), next: NONE };
        }
        self.link(node);
        (node, self.node(node).generation)
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        loop {
            while self.rest == NONE {
                if self.clock >= now {
                    return None;
                }
                self.clock += 1;
                self.rest = std::mem::replace(&mut self.heads[self.clock as usize % BUCKETS], NONE);
            }
            let node = self.rest;
            let Node { deadline, payload, next, .. } = *self.node(node);
            self.rest = next;
            if payload.is_some() && deadline > self.clock {
                self.link(node);
                continue;
            }
            self.free(node);
            if let Some(payload) = self.node(node).payload.take() {
                return Some((deadline, payload));
            }
        }
    }
}

impl Removal for FlatWheel {
    #[inline]
    fn cancel(&mut self, (node, generation): (u32, u32)) -> Option<u64> {
        let node = self.node(node);
        if node.generation == generation { node.payload.take() } else { None }
    }

    #[inline]
    fn extend(&mut self, handle: (u32, u32), deadline: u64) -> Option<(u32, u32)> {
        let node = self.node(handle.0);
        if node.generation != handle.1 || node.payload.is_none() {
            return None;
        }
        node.deadline = deadline;
        Some(handle)
    }
}
