//! A value on its way through the queue, and what the threads share.
//!
//! Each value is a timer of the queue's `Timer`: its node holds a [`Ticket`], which points to a box
//! with the value. Insert, remove and reset are those of a timer, so any thread may call them, and
//! they meet each other in the node's word. When the timer fires, its shard's thread pushes the box
//! onto a stack that all shards share, without an allocation, and wakes the consumers.
//!
//! A [`Ticket`] owns the value while its timer is pending. The thread that wins the node's word has
//! the ticket to itself: a `remove` takes the value out of it, and the shard's thread runs it,
//! which passes the value to the consumers. A ticket that is dropped otherwise was in a timer that
//! has ended: its value goes to the unexpired ones.

use std::sync::Arc;
use std::task::Waker;

use crossbeam_utils::CachePadded;

use super::keys::QueueKey;
use super::waiters::Waiters;
use crate::clock::unpoisoned;
use crate::fallible::{Stack, Stacked};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, plain};
use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::{Nanos, PanicGuard, RunContext, TaskBody, TaskKind, TimerKey, WatchesEnd};
use crate::unwind::FirstPanic;

/// A value that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    /// The value.
    pub value: T,
    /// The key that `insert` returned.
    pub key: QueueKey,
    /// When the value was due, as `insert` was asked for it. After a reset to another tick it is
    /// the time of that tick. A time before the start of the `Timer` is shown as that start.
    pub deadline: Instant,
}

/// A value and its times.
pub(super) struct Entry<T> {
    pub(super) value: T,
    pub(super) id: u64,
    /// What `insert` was asked for, and the tick for it.
    pub(super) deadline: Nanos,
    pub(super) armed_for: Tick,
    /// When it expired, and the key that its timer had then.
    pub(super) expired: Option<(TimerKey, Instant)>,
}

/// A value stays in its box from the insert until a consumer takes it out: it may be larger than
/// the stack of a timer's thread.
pub(super) type Boxed<T> = Box<Stacked<Entry<T>>>;

/// Where values leave the queue, in the order in which they came if one thread has pushed them.
pub(super) struct Outbox<T> {
    pushed: Stack<Entry<T>>,
    /// What consumers have taken from `pushed`, all at once, the first value on top. No user code
    /// runs under the lock. Padded apart from what the shards' threads write.
    taken: CachePadded<Mutex<Stack<Entry<T>>>>,
    /// How many values have come out. Written under the lock.
    count: AtomicU64,
}

impl<T> Outbox<T> {
    fn new() -> Self {
        Self { pushed: Stack::new(), taken: Mutex::new(Stack::new()).into(), count: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> Option<Boxed<T>> {
        let mut taken = unpoisoned(self.taken.lock());
        let next = self.pop(&mut taken)?;
        // Ordering: Relaxed, a count, and the lock orders its writers.
        self.count.store(self.count() + 1, Ordering::Relaxed);
        Some(next)
    }

    fn count(&self) -> u64 {
        // Ordering: Relaxed, a count.
        self.count.load(Ordering::Relaxed)
    }

    /// When the next value was due, if one has expired.
    pub(super) fn peek(&self) -> Option<Instant> {
        let mut taken = unpoisoned(self.taken.lock());
        let next = self.pop(&mut taken)?;
        let due = next.value.expired.map(|(_, due)| due);
        taken.push(next);
        due
    }

    fn pop(&self, taken: &mut Stack<Entry<T>>) -> Option<Boxed<T>> {
        taken.pop().or_else(|| {
            *taken = self.pushed.take_all().reversed();
            taken.pop()
        })
    }
}

/// What the queue, its tickets and the timer's shards share.
pub(super) struct QueueState<T> {
    /// Tells this queue from others.
    pub(super) id: u64,
    /// What has expired. Written by the shards' threads and the consumers.
    pub(super) due: Outbox<T>,
    /// What the timer's end has left. Written by the shutdown and the consumers.
    pub(super) unexpired: Outbox<T>,
    pub(super) waiters: Waiters,
    has_ended: AtomicBool,
    /// Whether the queue has been dropped. Read and written beside a push and a take of a stack.
    is_dropped: AtomicBool,
    /// Whether the queue is closed, for threads that take values out: see `close`.
    is_closed: AtomicBool,
    /// How many values have been inserted, and [`CLOSED`]. Written by producers, and by the close.
    inserted: CachePadded<AtomicU64>,
    /// How many of them were removed, or refused. Written by these threads.
    removed: CachePadded<AtomicU64>,
}

/// In the count of inserts: the queue takes no more values.
pub(super) const CLOSED: u64 = 1 << 63;

impl<T: Send + 'static> QueueState<T> {
    pub(super) fn new() -> Self {
        static NEXT: plain::AtomicU64 = plain::AtomicU64::new(1);
        Self {
            // Ordering: Relaxed, the number alone matters.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            due: Outbox::new(),
            unexpired: Outbox::new(),
            waiters: Waiters::default(),
            has_ended: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            inserted: CachePadded::new(AtomicU64::new(0)),
            removed: CachePadded::new(AtomicU64::new(0)),
        }
    }

    pub(super) fn len(&self) -> usize {
        // Read first, so the difference is not less than at some moment of the call.
        let left = self.left();
        // Ordering: Relaxed, a count.
        (self.inserted.load(Ordering::Relaxed) & !CLOSED).saturating_sub(left) as usize
    }

    /// How many values have left the queue.
    pub(super) fn left(&self) -> u64 {
        // Ordering: Acquire, pairs with the Release in `count_removal`: the insert of what was
        // removed is counted.
        self.removed.load(Ordering::Acquire) + self.due.count() + self.unexpired.count()
    }

    /// Counts a value that is about to be inserted, and returns its number. From [`CLOSED`] on: the
    /// queue is closed, and the value has to be removed again.
    pub(super) fn count_insert(&self) -> u64 {
        // Ordering: Relaxed, a count, and the number alone matters. The order of the inserts and
        // the close is that of their read-modify-writes.
        self.inserted.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a value that was removed, or refused.
    pub(super) fn count_removal(&self) {
        // Ordering: AcqRel. Release pairs with the Acquire in `left`, Acquire with the Release in
        // `close`.
        self.removed.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes no more values, and ends the queue if it is empty. If not, the thread that takes the
    /// last value out does so.
    ///
    /// *Against an insert.* Both change the count of inserts. If the insert comes first, each
    /// thread that sees the close sees it counted. If not, the insert sees the close.
    ///
    /// *Against the last value.* That is counted where a removal is counted, or under the lock of
    /// the outbox. If this comes before the same step of the close, the close sees the queue empty.
    /// If not, the thread that takes the value sees the close.
    pub(super) fn close(&self, wake: impl Fn(Waker)) {
        // Ordering: Relaxed, published by the next store.
        self.inserted.fetch_or(CLOSED, Ordering::Relaxed);
        // Ordering: Release, pairs with the Acquire in `end_if_empty`: the inserts are counted.
        self.is_closed.store(true, Ordering::Release);
        // Ordering: AcqRel, pairs with that of `count_removal`.
        self.removed.fetch_add(0, Ordering::AcqRel);
        drop(self.due.taken.lock());
        self.end_if_empty(wake);
    }

    /// Ends the queue if it is closed and holds no value. For each thread that has taken one out.
    pub(super) fn end_if_empty(&self, wake: impl Fn(Waker)) {
        // Ordering: Acquire, pairs with the Release in `close`.
        if self.is_closed.load(Ordering::Acquire) && self.len() == 0 {
            self.note_end(wake);
        }
    }

    /// Whether no value comes any more: the timer has ended and all its values have been passed on,
    /// or the queue is closed and empty.
    pub(super) fn has_ended(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `note_end`: the stacks hold all values.
        self.has_ended.load(Ordering::Acquire)
    }

    pub(super) fn note_end(&self, wake: impl Fn(Waker)) {
        // Ordering: Release, pairs with the Acquire in `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.waiters.wake_all(wake);
    }

    /// Nothing is consumed from now on: the caller takes what is in the stacks, and drops it.
    pub(super) fn note_drop(&self) {
        // Ordering: Relaxed, see `push`.
        self.is_dropped.store(true, Ordering::Relaxed);
    }

    /// Passes a value that has expired to the consumers. `wake` wakes those that wait. If the queue
    /// has been dropped, the value is passed to `discard` instead.
    pub(super) fn pass_on(&self, entry: Boxed<T>, wake: impl Fn(Waker), discard: impl FnMut(Boxed<T>)) {
        self.push(&self.due, entry, discard);
        self.waiters.wake_all(wake);
    }

    /// Pushes to one of the outboxs. No value is left there once the queue has been dropped, and so
    /// none is dropped with the last ticket, by whatever thread that is: this push comes before the
    /// last take of the queue's drop, which takes the value, or after it, and then the drop is
    /// seen.
    fn push(&self, outbox: &Outbox<T>, entry: Boxed<T>, mut discard: impl FnMut(Boxed<T>)) {
        outbox.pushed.push(entry);
        // Ordering: Relaxed. If a take came before the push, what was written before it is seen.
        if self.is_dropped.load(Ordering::Relaxed) {
            let mut left = outbox.pushed.take_all();
            while let Some(entry) = left.pop() {
                discard(entry);
            }
        }
    }
}

impl<T: Send + 'static> WatchesEnd for QueueState<T> {
    fn end(&self, guard: &PanicGuard) {
        self.note_end(|waker| _ = guard.run(None, || waker.wake()));
    }
}

impl<T> Entry<T> {
    /// Notes that the value's timer has fired.
    fn expire(&mut self, RunContext { key, deadline, time, .. }: RunContext<'_>) {
        let at = if deadline == self.armed_for { self.deadline } else { time.start_of(deadline) };
        // What has fired was due at a time that an `Instant` can represent.
        self.expired = Some((key, time.instant_shown(at)));
    }
}

/// The payload of a value's timer.
pub(super) struct Ticket<T: Send + 'static> {
    /// `None` once the value has been taken out.
    entry: Option<Boxed<T>>,
    shared: Arc<QueueState<T>>,
}

impl<T: Send + 'static> Ticket<T> {
    /// Makes a ticket, and returns the value's number.
    pub(super) fn new(
        shared: &Arc<QueueState<T>>,
        (deadline, armed_for): (Nanos, Tick),
        value: T,
    ) -> (u64, Self) {
        let id = shared.count_insert();
        let entry = Stacked::boxed(Entry { value, id, deadline, armed_for, expired: None });
        (id, Self { entry: Some(entry), shared: Arc::clone(shared) })
    }

    /// The value of a ticket that has not run.
    pub(super) fn into_value(self) -> T {
        self.into_entry().expect("a ticket that has not run has its value").value.value
    }

    /// The value in its box, counted as removed.
    pub(super) fn into_entry(mut self) -> Option<Boxed<T>> {
        self.shared.count_removal();
        self.entry.take()
    }
}

impl<T: Send + 'static> TaskBody for Ticket<T> {
    fn kind(&self) -> TaskKind {
        TaskKind::Entry
    }

    fn run(&mut self, context: RunContext<'_>) {
        if let Some(mut entry) = self.entry.take() {
            entry.value.expire(context);
            let guard = context.guard;
            let wake = |waker: Waker| _ = guard.run(None, || waker.wake());
            self.shared.pass_on(entry, wake, |entry| guard.discard(entry));
        }
    }
}

impl<T: Send + 'static> Drop for Ticket<T> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            let mut panics = FirstPanic::default();
            self.shared.push(&self.shared.unexpired, entry, |entry| panics.catch_drop(entry));
            panics.resume();
        }
    }
}
