//! A handle of a group that keeps neither it nor its timer.

use std::sync::{Arc, Weak};

use super::{Group, Owner};

/// A handle of a [`Group`] that does not keep the group from ending. Made by [`Group::weak`].
///
/// A [`WeakTimer`](crate::WeakTimer) that a group was downgraded to schedules members, and no more.
/// This one gives back the group, by which a callback of a member also counts or cancels the others.
#[derive(Clone, Debug)]
pub struct WeakGroup {
    owner: Weak<Owner>,
}

impl Group {
    /// Returns a handle that does not keep the group from ending when the last `Group` is dropped,
    /// nor its `Timer`.
    ///
    /// # Examples
    ///
    /// A member that ends all others:
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let group = Timer::builder().clock(clock.clone()).build()?.group();
    /// let weak = group.weak();
    /// group.schedule_every(Duration::from_secs(20), || println!("ping"))?;
    /// group.schedule_after(Duration::from_secs(30), move || {
    ///     weak.upgrade().map(|group| group.cancel_all());
    /// })?;
    /// let weak = group.weak();
    /// clock.advance(Duration::from_secs(60));
    /// assert!(group.is_empty());
    /// drop(group);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn weak(&self) -> WeakGroup {
        WeakGroup { owner: Arc::downgrade(&self.owner) }
    }
}

impl WeakGroup {
    /// Returns the group; `None` if its last [`Group`] has been dropped. If the returned handle is
    /// the last one when it is dropped, that drop ends the group.
    #[must_use]
    pub fn upgrade(&self) -> Option<Group> {
        self.owner.upgrade().map(|owner| Group { owner })
    }
}
