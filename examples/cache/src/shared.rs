//! The little that all threads share: numbers that one writes and the others read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use shardwheel::Scheduler;

use crate::clock::Clock;
use crate::commands::config::Settings;
use crate::keyspace::{Due, Placement};
use crate::session::Session;
use crate::stats::Stats;

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) placement: Placement,
    /// Each thread has those that it has last seen here.
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) stats: Vec<Arc<Stats>>,
    pub(crate) timers: Vec<Scheduler<Due>>,
    /// The number of channels that each thread's clients have subscribed to.
    channels: Vec<CachePadded<AtomicUsize>>,
    /// The clients that come to each thread: new ones, and those that move. So a client is in the reach of exactly
    /// one thread at any time. The lock is held for a push or a swap.
    arrivals: Vec<Mutex<VecDeque<Box<Session>>>>,
    /// Bytes of events that threads have sent to each other and that are not yet with the subscribers.
    ///
    /// Ordering: Relaxed; only the number matters. It grows before the message is sent.
    pub(crate) events_underway: AtomicUsize,
    /// Subscribers for which keys that are due wait, of all threads.
    ///
    /// Ordering: Relaxed; only the number matters.
    pub(crate) slow_subscribers: AtomicUsize,
    /// Open connections of clients.
    clients: AtomicUsize,
    /// The server is to end: no more connections, and the present ones end when they are answered.
    is_draining: AtomicBool,
}

impl Shared {
    pub(crate) fn new(timers: Vec<Scheduler<Due>>, settings: Settings) -> Self {
        Self {
            clock: Clock::start_now(),
            placement: Placement::new(timers.len(), settings.one_thread),
            settings: ArcSwap::from_pointee(settings),
            stats: timers.iter().map(|_| Arc::default()).collect(),
            channels: timers.iter().map(|_| CachePadded::default()).collect(),
            arrivals: timers.iter().map(|_| Mutex::default()).collect(),
            timers,
            events_underway: AtomicUsize::new(0),
            slow_subscribers: AtomicUsize::new(0),
            clients: AtomicUsize::new(0),
            is_draining: AtomicBool::new(false),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.timers.len()
    }

    pub(crate) fn arrivals(&self, thread: usize) -> MutexGuard<'_, VecDeque<Box<Session>>> {
        self.arrivals[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Ordering: Relaxed in the following functions; only the numbers matter.

    /// Whether there is room for one more client; if so, it counts from now on. Only the acceptor asks.
    pub(crate) fn admit(&self) -> bool {
        let is_admitted = self.clients() < self.settings.load().max_clients;
        self.clients.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
        is_admitted
    }

    /// True if it was the last client.
    pub(crate) fn dismiss(&self) -> bool {
        self.clients.fetch_sub(1, Ordering::Relaxed) == 1
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Tells the other threads how many channels a thread's clients have subscribed to.
    pub(crate) fn set_channels(&self, thread: usize, channels: usize) {
        // Ordering: Release, pairs with the Acquire in `channels`. A client that has read the
        // confirmation, which is written later, can rely on it in any other thread.
        self.channels[thread].store(channels, Ordering::Release);
    }

    pub(crate) fn channels(&self, thread: usize) -> usize {
        // Ordering: Acquire, pairs with the Release in `set_channels`.
        self.channels[thread].load(Ordering::Acquire)
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
