//! A wheel with one level, a bucket for each tick of 35 minutes: a lower bound, not a structure to use.
//!
//! [`FlatWheel`] has no lock and no cascade; a bucket is a list linked through a `Vec` of nodes. A
//! cancel marks the node, and the pass over the bucket frees it. It has 8 MiB of buckets and visits
//! every tick.

use std::mem;

use super::structure::{Removal, Structure};

/// Buckets of a wheel: each deadline of the workloads has a bucket of its own.
const ONE_LEVEL: usize = 1 << 21;

const NONE: u32 = u32::MAX;

struct Node {
    deadline: u64,
    payload: Option<u64>,
    next: u32,
}

pub(crate) struct FlatWheel {
    heads: Vec<u32>,
    nodes: Vec<Node>,
    free: u32,
    /// The rest of the bucket at `clock`.
    rest: u32,
    clock: u64,
}

impl FlatWheel {
    #[inline]
    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Puts a node into its deadline's bucket, or into the next bucket if the deadline has passed.
    #[inline]
    fn link(&mut self, node: u32) {
        let tick = self.node(node).deadline.max(self.clock + 1);
        let head = &mut self.heads[tick as usize % ONE_LEVEL];
        self.nodes[node as usize].next = mem::replace(head, node);
    }

    /// Moves the clock to the next bucket with nodes; `None` if there is none up to `now`.
    #[inline]
    fn next_node(&mut self, now: u64) -> Option<u32> {
        while self.rest == NONE {
            if self.clock >= now {
                return None;
            }
            self.clock += 1;
            self.rest = mem::replace(&mut self.heads[self.clock as usize % ONE_LEVEL], NONE);
        }
        let node = self.rest;
        self.rest = self.node(node).next;
        Some(node)
    }
}

impl Structure for FlatWheel {
    const NAMES: [&'static str; 2] = ["flat wheel", "flat wheel without a lock"];

    type Handle = u32;

    fn new() -> Self {
        Self { heads: vec![NONE; ONE_LEVEL], nodes: Vec::new(), free: NONE, rest: NONE, clock: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> u32 {
        let mut node = self.free;
        if node == NONE {
            node = u32::try_from(self.nodes.len()).expect("fewer than 2^32 timers");
            self.nodes.push(Node { deadline, payload: Some(payload), next: NONE });
        } else {
            self.free = self.node(node).next;
            *self.node(node) = Node { deadline, payload: Some(payload), next: NONE };
        }
        self.link(node);
        node
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        loop {
            let node = self.next_node(now)?;
            let Node { deadline, payload, .. } = *self.node(node);
            if payload.is_some() && deadline > self.clock {
                self.link(node);
                continue;
            }
            self.node(node).next = mem::replace(&mut self.free, node);
            if let Some(payload) = self.node(node).payload.take() {
                return Some((deadline, payload));
            }
        }
    }
}

/// A stale handle may name another timer; the workloads use no stale handles.
impl Removal for FlatWheel {
    #[inline]
    fn cancel(&mut self, node: u32) -> Option<u64> {
        self.node(node).payload.take()
    }
}
