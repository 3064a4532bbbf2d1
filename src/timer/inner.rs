//! What all handles of a timer share, and the timer's end.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::drive::Drive;
use super::key::TimerKey;
use super::placement::Shards;
use super::shard_handle::{Ended, ShardHandle};
use super::unfired::Unfired;
use crate::shard::ShardId;

pub(super) struct Inner {
    pub(super) shards: Shards,
    /// The number of the first shard. The other shards have the numbers after it.
    pub(super) first: ShardId,
    pub(super) drive: Drive,
}

// User code runs where no structure is half changed: a panic in it leaves none behind.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Inner {
    /// The shard that the key belongs to, if it is a shard of this timer.
    #[inline]
    pub(super) fn home_of(&self, key: TimerKey) -> Option<&Arc<ShardHandle>> {
        self.shards.handles.get(key.key().shards_after(self.first))
    }

    pub(super) fn shutdown(&self) -> Unfired {
        let Some((first, others)) = self.shards.handles.split_first() else { return Unfired::default() };
        if !first.stop() {
            return Unfired::default();
        }
        for handle in others {
            handle.stop();
        }
        for (shard, handle) in self.shards.handles.iter().enumerate() {
            if let Some(advancer) = self.drive.retrieve(handle, shard) {
                *handle.ended() = Ended::Retrieved(advancer);
            }
        }
        self.drive.end();
        Unfired::of(Arc::clone(&self.shards.handles))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.shutdown());
    }
}
