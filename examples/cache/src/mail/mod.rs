//! Messages between threads.
//!
//! Each ordered pair of threads has a ring with one writer and one reader: neither waits for the
//! other, and messages arrive in the order in which they were sent. If a ring is full, its messages
//! wait at the sender, which tries again in its next round. A thread that has nothing to do sleeps
//! in its poll; others wake it there, but only if it sleeps: see [`Bell`].

pub(crate) mod batch;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_utils::CachePadded;
use mio::{Poll, Token};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::protocol::Request;
use crate::session::Address;
use batch::Batch;

/// The token of a wake by another thread. Clients have the tokens of their slots.
pub(crate) const WAKE: Token = Token(usize::MAX);
/// Messages that a ring holds, and how many may wait for room. A message is a whole batch.
const RING: usize = 128;
/// A batch with more bytes than this is sent although it may grow.
const FULL_BATCH: usize = 16 * 1024;

pub(crate) enum Message {
    /// Work for the receiver, which owns the keys or the subscribers.
    Work(Batch),
    /// The same batch on its way back, with the replies.
    Done(Batch),
    /// A batch with long replies, once they have been copied. If the thread that has made them frees them, too, their
    /// memory is there for the next ones at once.
    Used(Batch),
}

struct Bell {
    /// Set by the thread before it polls. Cleared by the thread after the poll, or by the thread that
    /// wakes it, so that only one thread does.
    is_asleep: CachePadded<AtomicBool>,
    waker: mio::Waker,
}

impl Bell {
    /// Wakes the thread if it sleeps or is about to. Called after a message, or a client, has been pushed.
    fn ring_if_asleep(&self) {
        // Ordering: pairs with the fence in `Mailbox::lie_down`. Either this thread sees that the other is
        // asleep, or the other sees the message that was pushed before this fence.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, see the fence. The flag guards nothing but the wake itself.
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            self.ring();
        }
    }

    fn ring(&self) {
        // It fails if the system has no room for the poller; then the poll fails as well.
        let _ = self.waker.wake();
    }
}

/// One thread's ends of its rings, in the order of the threads. Its ring to itself is not used.
#[derive(Default)]
pub(crate) struct Mailbox {
    bells: Arc<[Bell]>,
    outgoing: Vec<Outgoing>,
    /// With what is left of a batch, which comes before the ring.
    incoming: Vec<(Consumer<Message>, Option<Batch>)>,
    /// Too many messages wait for a thread that does not keep up. Until it does, only such threads get
    /// messages: all clients of which this thread works wait for it, and so make no more messages.
    pub(crate) is_clogged: bool,
}

struct Outgoing {
    ring: Producer<Message>,
    /// Messages for which the ring has had no room yet.
    waiting: VecDeque<Message>,
    open: Option<Batch>,
}

impl Outgoing {
    fn close_if_full(&mut self) {
        let full = self.open.take_if(|batch| batch.bytes.len() > FULL_BATCH);
        self.waiting.extend(full.map(Message::Work));
    }
}

impl Mailbox {
    pub(crate) fn all(threads: usize) -> io::Result<Vec<(Poll, Self)>> {
        let polls = (0..threads).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
        let bell = |waker| Bell { is_asleep: CachePadded::default(), waker };
        let bell = |poll: &Poll| mio::Waker::new(poll.registry(), WAKE).map(bell);
        let bells = polls.iter().map(bell).collect::<io::Result<Arc<_>>>()?;
        let new = |_| Self { bells: bells.clone(), ..Self::default() };
        let mut boxes: Vec<_> = (0..threads).map(new).collect();
        for (from, to) in (0..threads).flat_map(|from| (0..threads).map(move |to| (from, to))) {
            let (ring, incoming) = RingBuffer::new(RING);
            boxes[from].outgoing.push(Outgoing { ring, waiting: VecDeque::new(), open: None });
            boxes[to].incoming.push((incoming, None));
        }
        Ok(polls.into_iter().zip(boxes).collect())
    }

    /// Work for a thread, which is sent at the next `post`, or before. What is joined to the request before it
    /// goes with it.
    pub(crate) fn forward(&mut self, thread: usize, home: Option<Address>, request: &Request<'_>) {
        let outgoing = &mut self.outgoing[thread];
        if !request.is_joined {
            outgoing.close_if_full();
        }
        outgoing.open.get_or_insert_default().add(home, request);
    }

    /// A transaction begins.
    pub(crate) fn close_full_batches(&mut self) {
        self.outgoing.iter_mut().for_each(Outgoing::close_if_full);
    }

    pub(crate) fn send(&mut self, thread: usize, message: Message) {
        let outgoing = &mut self.outgoing[thread];
        outgoing.waiting.extend(outgoing.open.take().map(Message::Work));
        outgoing.waiting.push_back(message);
    }

    /// Sends what has been collected; wakes those that sleep. True if a ring has had no room.
    pub(crate) fn post(&mut self) -> bool {
        let (mut is_full, mut is_clogged) = (false, false);
        for (Outgoing { ring, waiting, open }, bell) in self.outgoing.iter_mut().zip(&*self.bells) {
            waiting.extend(open.take().map(Message::Work));
            let (is_idle, are_many) = (waiting.is_empty(), waiting.len() > RING);
            is_clogged |= are_many;
            // There is room until the ring is full: no other thread pushes.
            while (are_many || !self.is_clogged)
                && !ring.is_full()
                && let Some(message) = waiting.pop_front()
            {
                let _ = ring.push(message);
            }
            is_full |= !waiting.is_empty();
            if !is_idle {
                bell.ring_if_asleep();
            }
        }
        self.is_clogged = is_clogged;
        is_full
    }

    pub(crate) fn receive(&mut self, from: usize) -> Option<Message> {
        let (ring, rest) = self.incoming.get_mut(from)?;
        rest.take().map(Message::Work).or_else(|| ring.pop().ok())
    }

    /// Takes back what is left of a batch: it comes next from that thread.
    pub(crate) fn put_back(&mut self, from: usize, rest: Option<Batch>) {
        self.incoming[from].1 = rest;
    }

    /// Says that this thread is about to poll, and returns whether it may sleep there: whether no
    /// message has come.
    pub(crate) fn lie_down(&self, number: usize) -> bool {
        // Ordering: Relaxed, the fence orders it.
        self.bells[number].is_asleep.store(true, Ordering::Relaxed);
        // Ordering: pairs with the fence in `Bell::ring_if_asleep`.
        fence(Ordering::SeqCst);
        self.incoming.iter().all(|(ring, rest)| ring.is_empty() && rest.is_none())
    }

    pub(crate) fn get_up(&self, number: usize) {
        // Ordering: Relaxed. A thread that still sees the flag wakes a thread that is awake, whose
        // next poll returns at once.
        self.bells[number].is_asleep.store(false, Ordering::Relaxed);
    }

    /// A client has come to a thread.
    pub(crate) fn wake(&self, thread: usize) {
        self.bells[thread].ring_if_asleep();
    }

    /// Wakes all threads, whether they sleep or not.
    pub(crate) fn wake_all(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}
