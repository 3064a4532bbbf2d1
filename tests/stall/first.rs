//! The producer that is stopped.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use shardwheel::stall::{self, Stop};
use shardwheel::{Key, Scheduler, Tick};

use crate::load::Load;
use crate::scene::START;
use crate::support::ledger::{End, Ledger};

/// The tag of its payloads.
pub(crate) const TAG: u64 = 0;

/// What the producer works with. Ticks count from the scene's start.
pub(crate) struct Hand {
    pub(crate) scheduler: Scheduler<Load>,
    pub(crate) ledger: Ledger,
    /// The timers that it has scheduled and not cancelled; the last one is at the end.
    pub(crate) keys: Vec<Key>,
}

impl Hand {
    pub(crate) fn set(&mut self, deadline: Tick) {
        match self.scheduler.schedule(START.wrapping_add(deadline), Load::new(&self.ledger, TAG)) {
            Ok(key) => self.keys.push(key),
            Err(refused) => drop(refused.into_payload().end(End::Refused)),
        }
    }

    pub(crate) fn set_all(&mut self, deadlines: &[Tick]) {
        deadlines.iter().for_each(|&deadline| self.set(deadline));
    }

    /// Cancels the last timer.
    pub(crate) fn cancel(&mut self) {
        let key = self.keys.pop().expect("the preparation has scheduled it");
        let _ = self.scheduler.cancel(key).map(|load| load.end(End::Cancelled));
    }

    /// Moves the last timer.
    pub(crate) fn move_to(&mut self, deadline: Tick) {
        let key = self.keys.pop().expect("the preparation has scheduled it");
        self.keys.extend(self.scheduler.reschedule(key, START + deadline));
    }
}

/// An operation in which a thread is stopped, and its preparation.
pub(crate) struct Case<S> {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn(&mut S),
    pub(crate) act: fn(&mut S),
    /// Whether the thread may be pinned when it is stopped, so that no memory goes back until it
    /// goes on.
    pub(crate) pins: bool,
    /// Whether the operation moves a timer: if the shard ends meanwhile, that timer is dropped.
    pub(crate) may_drop: bool,
    /// Whether the thread is stopped during its end, too.
    pub(crate) to_its_end: bool,
}

impl<S> Clone for Case<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Case<S> {}

/// The stopped thread, and where it stops.
pub(crate) struct First<S> {
    stop: &'static Stop,
    thread: JoinHandle<S>,
}

impl<S: Send + 'static> First<S> {
    /// Starts the thread, and returns when it is prepared; the second value has it begin.
    pub(crate) fn prepared(case: Case<S>, mut hand: S, stop: &'static Stop) -> (Self, impl FnOnce()) {
        let ((ready, is_ready), (go, gone)) = (channel(), channel::<()>());
        let work = move || {
            (case.prepare)(&mut hand);
            ready.send(()).expect("the scene waits");
            gone.recv().expect("the scene says when");
            stop.arm();
            (case.act)(&mut hand);
            if !case.to_its_end {
                stall::disarm();
            }
            hand
        };
        let thread = thread::spawn(move || {
            let ended = thread::spawn(work).join();
            // Also if it was not stopped.
            stop.release();
            ended.expect("the stopped producer does not panic")
        });
        is_ready.recv().expect("the preparation does not panic");
        (Self { stop, thread }, move || go.send(()).expect("the other thread waits"))
    }

    /// Waits until the thread has stopped, or has finished: then false.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop.is_reached()
    }

    /// Releases the thread, and waits for its end.
    pub(crate) fn finish(self) -> S {
        self.stop.release();
        self.thread.join().expect("the stopped producer does not panic")
    }
}
