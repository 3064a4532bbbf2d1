//! What all handles of a `Timer` share: its shards, and how their workers are visited (by drivers
//! with threads, a manual clock or an event loop) and ended by a shutdown.
//!
//! A shutdown marks all shards as stopping, and then takes each shard's advancer. It waits for the
//! worker to come back to its pool, which it does when the user code that it runs has returned. In
//! two cases the shutdown does not wait:
//!
//! - *The caller is user code of a `Timer`*, this one or another: a callback, or anything else on a
//!   thread that visits shards. So no threads wait for each other in a circle.
//! - *The worker is in `Executor::execute`*: an executor may wait for the caller, or for space that
//!   the caller has to make.
//!
//! The advancer then lies in the [slot](crate::timer::shard), and the shutdown takes it from
//! there. The worker finds the slot empty when the user code returns.
//!
//! At last the shutdown stops the threads: see [`threads`](crate::timer::threads). It joins those that
//! have ended, so nothing of them is left when it returns. A thread that the shutdown does not wait
//! for continues by itself. So does a thread that still drops the executor after [`GRACE`].

use std::sync::Arc;
use std::time::Duration;

use super::unfired::Unfired;
use crate::clock::{is_user_code, unpoisoned};
use crate::shard::{Advancer, ShardId};
use crate::sync::Mutex;
use crate::sync::thread::JoinHandle;
use crate::timer::shard::{Ended, Shards};
use crate::timer::task::{Task, TaskKind};
use crate::timer::threads::{Pool, Worker};

/// How long a shutdown waits for the drop of an executor, and on Windows for the system to end a
/// thread, before it leaves that thread alone.
const GRACE: Duration = Duration::from_millis(20);

pub(crate) struct Inner {
    pub(in crate::timer) shards: Shards,
    /// The number of the first shard. The other shards have the numbers after it.
    pub(in crate::timer) first: ShardId,
    /// Where the workers lie: one pool, or one for each shard.
    pub(in crate::timer) pools: Box<[Arc<Pool<Box<Worker>>>]>,
    /// In the order of the shards; a shutdown takes them.
    pub(in crate::timer) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Inner {
    /// The pool of a shard, or of a thread, and its number there.
    pub(in crate::timer) fn locate(&self, number: usize) -> (&Arc<Pool<Box<Worker>>>, usize) {
        if let [pool] = &*self.pools { (pool, number) } else { (&self.pools[number], 0) }
    }

    pub(in crate::timer) fn shutdown(&self) -> Unfired {
        self.end(TaskKind::is_callback)
    }

    /// Shuts the timer down, and returns the tasks whose kinds `keeps` accepts.
    pub(in crate::timer) fn end(&self, keeps: fn(TaskKind) -> bool) -> Unfired {
        // The first shard is marked first, so of two shutdowns one goes on.
        if !self.shards.handles.iter().all(|handle| handle.advancer_slot.stop()) {
            return Unfired::default();
        }
        for (shard, handle) in self.shards.handles.iter().enumerate() {
            if let Some(advancer) = self.retrieve(shard) {
                *handle.ended() = Ended::Retrieved(advancer);
            }
        }
        self.end_threads();
        Unfired::of(Arc::clone(&self.shards.handles), keeps)
    }

    /// Takes the advancer of a shard that is stopping. The module docs say how long this waits.
    fn retrieve(&self, shard: usize) -> Option<Box<Advancer<Task>>> {
        let slot = &self.shards.handles[shard].advancer_slot;
        let (pool, shard) = self.locate(shard);
        slot.shutdown.set_thread();
        loop {
            // Comes first: `wait` waits for what is notified after this.
            slot.shutdown.clear();
            if let Some(mut worker) = pool.take(shard) {
                let advancer = worker.close();
                pool.put_closed(shard, worker);
                return advancer;
            }
            let advancer = if is_user_code() { slot.take() } else { slot.take_from_executor() };
            if advancer.is_some() {
                return advancer;
            }
            slot.shutdown.wait(None);
        }
    }

    /// Ends the threads, after all advancers have been retrieved.
    fn end_threads(&self) {
        self.pools.iter().for_each(|pool| pool.stop());
        let threads = std::mem::take(&mut *unpoisoned(self.threads.lock()));
        // The pools that have no thread: of a manual clock, of an event loop, and those whose
        // thread did not start.
        for pool in self.pools.iter().skip(threads.len()) {
            while pool.take_to_end().map(drop).is_some() {}
        }
        if is_user_code() {
            return;
        }
        for (number, thread) in threads.into_iter().enumerate() {
            let (pool, number) = self.locate(number);
            if pool.has_ended(number, GRACE) {
                join(thread);
            }
        }
    }
}

/// Waits until nothing is left of a thread that has done its work. An error means that it panicked:
/// its advancers have been retrieved all the same.
#[cfg(not(windows))]
fn join(thread: JoinHandle<()>) {
    let _ = thread.join();
}

/// As above, but for [`GRACE`] at most: a thread of Windows ends under a lock of the system's, which
/// the caller has if it drops a thread-local at its own end. Without a limit, the two would wait for
/// each other.
#[cfg(windows)]
fn join(thread: JoinHandle<()>) {
    use std::os::windows::io::{AsRawHandle, RawHandle};
    unsafe extern "system" {
        fn WaitForSingleObject(handle: RawHandle, millis: u32) -> u32;
    }
    // SAFETY: the handle is that of a thread, and open for as long as `thread` is there.
    unsafe { WaitForSingleObject(thread.as_raw_handle(), GRACE.as_millis() as u32) };
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.shutdown());
    }
}
