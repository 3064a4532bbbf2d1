//! Who moves a timer's shards: a thread for each, or a manual clock.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use super::task::Task;
use super::worker::{Worker, take_from_drawer};
use crate::clock::unpoisoned;
use crate::shard::Advancer;

/// What moves a shard's clock, in the hands of who shuts the timer down.
pub(crate) type Ended = Option<Box<Advancer<Task>>>;

pub(crate) enum Drive {
    /// A thread for each shard; taken by who shuts the timer down.
    Threads(Mutex<Vec<Option<JoinHandle<Ended>>>>),
    /// A manual clock.
    Hand(Slots),
}

/// The workers of a timer that a manual clock drives, each in its slot but for the one that is at work.
pub(crate) struct Slots {
    slots: Mutex<Vec<Slot>>,
    back: Condvar,
}

enum Slot {
    In(Box<Worker>),
    /// At work.
    Out,
    /// Ended.
    Gone,
}

impl Drive {
    pub(crate) fn threads(handles: Vec<JoinHandle<Ended>>) -> Self {
        Self::Threads(Mutex::new(handles.into_iter().map(Some).collect()))
    }

    /// Waits until that shard's worker, which has been told to stop, has ended, and takes over its advancer. If
    /// the caller is code that the worker runs, there is no wait.
    pub(crate) fn retrieve(&self, timer: u64, shard: u32) -> Ended {
        if let Some(own) = take_from_drawer((timer, shard)) {
            return Some(own);
        }
        match self {
            Self::Threads(handles) => {
                let handle = unpoisoned(handles.lock()).get_mut(shard as usize)?.take()?;
                // A thread that has none in its drawer and is the caller's own has ended its timer before.
                if handle.thread().id() == thread::current().id() { None } else { handle.join().ok()? }
            }
            Self::Hand(slots) => slots.retrieve(shard as usize),
        }
    }
}

impl Slots {
    pub(crate) fn new(workers: Vec<Worker>) -> Self {
        let slots = workers.into_iter().map(|worker| Slot::In(Box::new(worker))).collect();
        Self { slots: Mutex::new(slots), back: Condvar::new() }
    }

    /// Runs `look` with each worker that is not at work.
    pub(crate) fn each<R>(&self, mut look: impl FnMut(&Worker) -> R) -> Vec<R> {
        let slots = self.lock();
        slots
            .iter()
            .filter_map(|slot| if let Slot::In(worker) = slot { Some(look(worker)) } else { None })
            .collect()
    }

    /// Has each worker, one after the other, do all that it has to do by now.
    pub(crate) fn run_due(&self) {
        let shards = self.lock().len();
        for shard in 0..shards {
            self.run_shard(shard);
        }
    }

    fn run_shard(&self, shard: usize) {
        let Some(mut worker) = self.take(shard) else { return };
        while worker.turn() || worker.is_sweeping() {}
        worker.rest();
        self.lock()[shard] = Slot::In(worker);
        self.back.notify_all();
    }

    fn take(&self, shard: usize) -> Option<Box<Worker>> {
        take_in(&mut self.lock()[shard], Slot::Out)
    }

    fn retrieve(&self, shard: usize) -> Ended {
        let mut slots = self.lock();
        while let Slot::Out = slots[shard] {
            slots = unpoisoned(self.back.wait(slots));
        }
        let worker = take_in(&mut slots[shard], Slot::Gone);
        drop(slots);
        worker?.end()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        unpoisoned(self.slots.lock())
    }
}

/// Takes the worker out of its slot, if it is in.
fn take_in(slot: &mut Slot, leave: Slot) -> Option<Box<Worker>> {
    if let Slot::In(_) = slot
        && let Slot::In(worker) = std::mem::replace(slot, leave)
    {
        return Some(worker);
    }
    None
}
