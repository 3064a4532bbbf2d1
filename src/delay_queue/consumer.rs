//! The consumer's calls: the stream, and those that block.
//!
//! The consumer takes the whole stack at once and reverses it, so that values of one shard come in
//! the order in which they expired.
//!
//! # The wake-up
//!
//! The consumer's waker lies in an [`AtomicWaker`](crate::sync::AtomicWaker). A shard's thread
//! pushes, then wakes. The consumer looks, registers its waker, and looks again before it waits. The
//! wake and the registration are read-modify-writes of one word, so one of them comes first:
//!
//! - *The wake comes first.* The registration acquires what the wake has released, so the second
//!   look finds the value.
//! - *The registration comes first.* The wake finds the waker and wakes the consumer, which looks
//!   again.
//! - *They overlap.* The `AtomicWaker` makes the later one wake the waker that is being registered.
//!
//! Several shards' threads may push and wake at once. A wake that meets another leaves the waking to
//! that one, which takes the waker after both pushes. The end of the timer is announced in the same
//! way: the flag first, then the wake.
//!
//! There is one waker, so a second task that waits takes the first one's place. Threads in
//! [`recv`](DelayQueue::recv) take turns instead: one of them waits for a value, the others wait
//! for their turn.

use std::iter;
#[cfg(feature = "stream")]
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
#[cfg(feature = "stream")]
use std::task::Context;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

#[cfg(feature = "stream")]
use futures_core::Stream;

use super::entry::{Entry, Expired, Shared};
use super::{DelayQueue, QueueKey};
use crate::clock::unpoisoned;
use crate::fallible::{Stack, has_memory};
use crate::shield::Shield;
use crate::sync::Ordering;
use crate::sync::plain::AtomicBool;
use crate::unwind::FirstPanic;

/// What the consumer has taken from the stacks, the first value on top. There usually is one
/// consumer, so the locks are free. No user code runs under `due` and `unexpired`.
pub(super) struct Consumer<T> {
    due: Mutex<Stack<Entry<T>>>,
    unexpired: Mutex<Stack<Entry<T>>>,
    /// Held by the thread whose waker is registered by `recv`.
    turn: Mutex<()>,
    /// The waker that was registered last. It lives as long as it is registered.
    registered: Mutex<Weak<Shield>>,
}

impl<T: Send + 'static> Consumer<T> {
    pub(super) fn new() -> Self {
        Self {
            due: Mutex::new(Stack::new()),
            unexpired: Mutex::new(Stack::new()),
            turn: Mutex::new(()),
            registered: Mutex::new(Weak::new()),
        }
    }

    /// The next entry that has expired, if there is one.
    pub(super) fn next_due(&self, shared: &Shared<T>) -> Option<Entry<T>> {
        let entry = next(&self.due, shared.due())?;
        shared.note_left();
        Some(entry)
    }

    /// The next entry that has expired; `None` at the end. The protocol is in the module
    /// documentation.
    pub(super) fn poll(&self, shared: &Shared<T>, waker: &Waker) -> Poll<Option<Entry<T>>> {
        if let Some(entry) = self.next_due(shared) {
            return Poll::Ready(Some(entry));
        }
        self.register(shared, waker);
        // Read before the last look: what expired before the end is found.
        let has_ended = shared.has_ended();
        match self.next_due(shared) {
            None if !has_ended => Poll::Pending,
            entry => Poll::Ready(entry),
        }
    }

    fn register(&self, shared: &Shared<T>, waker: &Waker) {
        let mut last = unpoisoned(self.registered.lock()).clone();
        let waker = Shield::around(waker, &mut last);
        *unpoisoned(self.registered.lock()) = last;
        shared.waker().register(&waker);
    }

    /// Drops all that is left to the consumer.
    pub(super) fn drop_all(&self, shared: &Shared<T>) {
        let mut panics = FirstPanic::new();
        while let Some(entry) = next(&self.due, shared.due()) {
            panics.catch_drop(entry);
        }
        while let Some(entry) = next(&self.unexpired, shared.unexpired()) {
            panics.catch_drop(entry);
        }
        panics.resume();
    }
}

/// The next entry: of what was taken before, or else of what is on the stack now.
fn next<T>(taken: &Mutex<Stack<Entry<T>>>, stack: &Stack<Entry<T>>) -> Option<Entry<T>> {
    let mut taken = unpoisoned(taken.lock());
    taken.pop().or_else(|| {
        *taken = stack.take_all().reversed();
        taken.pop()
    })
}

/// How long a blocked thread sleeps between two looks if there is no memory for its waker.
const WITHOUT_WAKER: Duration = Duration::from_millis(1);

impl<T: Send + 'static> DelayQueue<T> {
    /// Returns the next value that has expired, if there is one. Does not wait.
    pub fn try_recv(&self) -> Option<Expired<T>> {
        self.consumer.next_due(&self.shared)?.into_expired(self.shared.id())
    }

    /// Waits for the next value to expire. Returns `None` if the timer has been shut down and all
    /// that has expired is taken.
    ///
    /// Several threads may wait: each value goes to one of them. A callback of the timer must not
    /// wait here, because it would wait for its own thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// thread::scope(|scope| {
    ///     scope.spawn(|| queue.insert("receipt", Duration::from_millis(5)).unwrap());
    ///     assert_eq!(queue.recv().unwrap().value, "receipt");
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv(&self) -> Option<Expired<T>> {
        if let Some(expired) = self.try_recv() {
            return Some(expired);
        }
        let _turn = unpoisoned(self.consumer.turn.lock());
        let blocked = has_memory(2 * size_of::<Blocked>()).then(|| Arc::new(Blocked::here()));
        let waker = blocked.clone().map_or_else(|| Waker::noop().clone(), Waker::from);
        loop {
            if let Poll::Ready(expired) = self.poll_recv(&waker) {
                return expired;
            }
            match &blocked {
                Some(blocked) => blocked.wait(),
                None => thread::sleep(WITHOUT_WAKER),
            }
        }
    }

    /// Yields the values that had not expired when the timer was shut down, in no particular order.
    /// Yields nothing before that.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let timer = Timer::new()?;
    /// let queue = DelayQueue::new(&timer);
    /// let key = queue.insert("order 17", Duration::from_secs(1800))?;
    /// drop(timer.shutdown());
    /// assert_eq!(queue.recv(), None);
    /// assert_eq!(queue.unexpired().collect::<Vec<_>>(), [(key, "order 17")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unexpired(&self) -> impl Iterator<Item = (QueueKey, T)> + '_ {
        iter::from_fn(|| {
            let entry = next(&self.consumer.unexpired, self.shared.unexpired())?;
            self.shared.note_left();
            Some(entry.into_unexpired(self.shared.id()))
        })
    }

    fn poll_recv(&self, waker: &Waker) -> Poll<Option<Expired<T>>> {
        let entry = self.consumer.poll(&self.shared, waker);
        entry.map(|entry| entry?.into_expired(self.shared.id()))
    }
}

#[cfg(feature = "stream")]
/// Yields what has expired; waits while nothing has. Ends when the timer has been shut down.
impl<T: Send + 'static> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_recv(context.waker())
    }
}

#[cfg(feature = "stream")]
/// The same by a shared reference, for a queue that other threads insert into. There should be one
/// consumer: of several, only the one that began to wait last is woken.
impl<T: Send + 'static> Stream for &DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_recv(context.waker())
    }
}

/// A thread that waits in [`DelayQueue::recv`].
struct Blocked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Blocked {
    fn here() -> Self {
        Self { thread: thread::current(), is_woken: AtomicBool::new(false) }
    }

    fn wait(&self) {
        // Ordering: Acquire, pairs with the Release in `wake`. (The values are acquired from the
        // stack.)
        while !self.is_woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Wake for Blocked {
    fn wake(self: Arc<Self>) {
        // Ordering: Release, pairs with the Acquire in `wait`.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
