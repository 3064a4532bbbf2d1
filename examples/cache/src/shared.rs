//! The little that all threads share: numbers that one writes and the others read.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::clock::Clock;
use crate::keyspace::Placement;

/// Made before the threads start.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) placement: Placement,
    pub(crate) address: SocketAddr,
    /// Open connections of clients.
    pub(crate) clients: AtomicUsize,
    /// The number of the next client.
    pub(crate) next_id: AtomicU64,
    /// Each thread's memory for keys and buffers. Written by the thread, once a round.
    pub(crate) memory: Vec<CachePadded<AtomicU64>>,
    /// The number of channels that each thread's clients have subscribed to.
    pub(crate) channels: Vec<CachePadded<AtomicUsize>>,
    /// The server is to end: no more connections, and the present ones end when they are answered.
    is_draining: AtomicBool,
}

impl Shared {
    pub(crate) fn new(threads: usize, address: SocketAddr) -> Self {
        Self {
            clock: Clock::start_now(),
            placement: Placement::new(threads),
            address,
            clients: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            memory: (0..threads).map(|_| CachePadded::default()).collect(),
            channels: (0..threads).map(|_| CachePadded::default()).collect(),
            is_draining: AtomicBool::new(false),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.memory.len()
    }

    /// Whether there is room for one more client; if so, it counts from now on.
    pub(crate) fn admit(&self, limit: usize) -> bool {
        // Ordering: Relaxed, only the number matters. One thread accepts, so it does not race.
        let is_admitted = self.clients.load(Ordering::Relaxed) < limit;
        if is_admitted {
            // Ordering: Relaxed, as above.
            self.clients.fetch_add(1, Ordering::Relaxed);
        }
        is_admitted
    }

    /// A client has left. True if it was the last.
    pub(crate) fn dismiss(&self) -> bool {
        // Ordering: Relaxed, only the number matters.
        self.clients.fetch_sub(1, Ordering::Relaxed) == 1
    }

    pub(crate) fn open_clients(&self) -> usize {
        // Ordering: Relaxed, only the number matters.
        self.clients.load(Ordering::Relaxed)
    }

    /// The memory of all threads, each as of its last round.
    pub(crate) fn used_memory(&self) -> u64 {
        // Ordering: Relaxed, an estimate.
        self.memory.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Whether a thread has subscribers.
    pub(crate) fn has_subscribers(&self, thread: usize) -> bool {
        // Ordering: Acquire, pairs with the Release in `publish_count`.
        self.channels[thread].load(Ordering::Acquire) > 0
    }

    pub(crate) fn drain(&self) {
        // Ordering: Release, pairs with `is_draining`. The threads are woken afterwards.
        self.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        // Ordering: Acquire, pairs with `drain`.
        self.is_draining.load(Ordering::Acquire)
    }
}
