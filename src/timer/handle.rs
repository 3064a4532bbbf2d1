//! The handles of a timer: [`Timer`] and [`WeakTimer`].

use std::fmt;
use std::sync::{Arc, Weak};

use crate::sync::Ordering;
use crate::time::Instant;
use crate::timer::end::Inner;
use crate::timer::key::TimerKey;
use crate::timer::shard::{ShardHandle, Stats};
use crate::timer::task::Members;

/// Runs callbacks and wakes futures when they are due.
///
/// By default a `Timer` has one shard for each core. A thread sleeps until the next timer of any
/// shard is due. Other threads help when there is more work, or when a callback blocks:
/// see [`Drivers`](crate::Drivers).
///
/// Scheduling, cancelling and rescheduling work from any thread, take no lock and wait for no other
/// thread. Clones are handles of the same `Timer`. The drop of the last handle shuts the `Timer`
/// down, and waits for callbacks that run, as [`shutdown`](Self::shutdown) does. A callback that
/// holds a handle keeps the `Timer` alive until the callback has run.
///
/// Each thread schedules on one shard, which it gets when it first uses the `Timer`.
/// [`Placement`](crate::Placement) says which, and offers other choices.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::{Duration, Instant};
/// use shardwheel::Timer;
///
/// let timer = Timer::builder().build()?;
/// let begin = Instant::now();
/// let (sender, receiver) = mpsc::channel();
/// timer.schedule_after(Duration::from_millis(20), move || sender.send(begin.elapsed()).unwrap())?;
/// let never = timer.schedule_after(Duration::from_secs(3600), || unreachable!("it is cancelled"))?;
/// assert!(timer.cancel(never));
///
/// assert!(receiver.recv()? >= Duration::from_millis(20)); // never early
/// assert_eq!(timer.stats().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    pub(in crate::timer) inner: Arc<Inner>,
    /// Set on a group's handle: what is scheduled through it joins the group.
    pub(in crate::timer) members: Option<Arc<Members>>,
}

impl Timer {
    /// Returns the time by the `Timer`'s clock.
    ///
    /// If a user-defined clock has been set back, this is the time that a shard has reached: the
    /// shard on which the calling thread schedules, or has scheduled last.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.inner.shards.present_shard().now_instant()
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inner.shards.handles.len()
    }

    /// Returns what the `Timer` has done and what it holds.
    ///
    /// # Performance
    ///
    /// O(threads + segments) for each shard. It makes no other thread wait.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // Ordering: Relaxed, a figure.
        Stats::of(&self.inner.shards.handles, |recent| recent.load(Ordering::Relaxed))
    }

    /// Returns the [`stats`](Self::stats), and begins anew to look for the
    /// [`longest_recent_callback`](crate::Figures::longest_recent_callback). Call it from one place
    /// for each `Timer`: the one that reports to a monitoring system.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let (slow, own) = (Duration::from_millis(7), clock.clone());
    /// timer.schedule_after(slow, move || own.advance(slow))?;
    /// clock.advance(slow);
    /// assert_eq!(timer.report().longest_recent_callback, slow);
    /// let since = timer.report();
    /// assert_eq!((since.longest_recent_callback, since.longest_callback), (Duration::ZERO, slow));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`stats`](Self::stats).
    #[must_use]
    pub fn report(&self) -> Stats {
        // Ordering: Relaxed, a figure.
        Stats::of(&self.inner.shards.handles, |recent| recent.swap(0, Ordering::Relaxed))
    }

    /// Returns a handle that does not keep the `Timer` from being shut down when the last `Timer`
    /// is dropped.
    #[must_use]
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer { inner: Arc::downgrade(&self.inner), members: self.members.clone() }
    }

    /// The first shard, which each timer has.
    pub(crate) fn first_shard(&self) -> &ShardHandle {
        &self.inner.shards.handles[0]
    }

    /// The shard that the key belongs to, if it is a shard of this timer.
    #[inline]
    pub(crate) fn home_of(&self, key: TimerKey) -> Option<&Arc<ShardHandle>> {
        self.inner.shards.handles.get(key.key().shards_after(self.inner.first))
    }

    /// The shard that the calling thread schedules on.
    #[inline(always)]
    pub(crate) fn handle(&self) -> &Arc<ShardHandle> {
        self.inner.shards.next_shard()
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("shards", &self.shards()).finish_non_exhaustive()
    }
}

/// A handle of a [`Timer`] that does not keep the `Timer` from being shut down. Made by
/// [`Timer::downgrade`].
///
/// A recurring callback that holds a [`Timer`] keeps that `Timer` alive for ever; one that holds a
/// `WeakTimer` does not. The weak handle of a [`Group`](crate::Group) gives a `Timer` within that
/// group.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
///
/// let timer = Timer::new()?;
/// let weak = timer.downgrade();
/// timer.schedule_every(Duration::from_secs(1), move || {
///     if let Some(timer) = weak.upgrade() {
///         println!("{} timers are pending", timer.stats().pending);
///     }
/// })?;
/// let weak = timer.downgrade();
/// drop(timer); // ends the recurring timer
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakTimer {
    inner: Weak<Inner>,
    members: Option<Arc<Members>>,
}

impl WeakTimer {
    /// Returns the `Timer`; `None` if its last [`Timer`] handle has been dropped.
    ///
    /// A `Timer` that was shut down by [`shutdown`](Timer::shutdown) is returned as long as a
    /// handle exists. If the returned handle is the last one when it is dropped, that drop shuts
    /// the `Timer` down.
    #[must_use]
    pub fn upgrade(&self) -> Option<Timer> {
        self.inner.upgrade().map(|inner| Timer { inner, members: self.members.clone() })
    }
}
