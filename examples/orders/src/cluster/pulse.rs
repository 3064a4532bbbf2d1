//! How a partition is: its owner reports, `/healthz` and `/metrics` tell.
//!
//! A pulse lasts as long as the worker has the partition, over all owners that work for it.
//! Progress is a message that is decided and whose result stands, the first time that an owner of
//! this worker has come so far. It is also the answer of the log's leader that there are no more
//! messages, while no tick is on its way. An owner that only begins again and reads the same
//! messages, or waits for a message that does not come, makes none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Mutex<Vitals>>);

#[derive(Clone, Debug)]
pub(crate) struct Vitals {
    /// When an owner made progress last, or when the worker took the partition.
    pub(crate) progress: Instant,
    /// The number of the last message that owners of this worker have applied.
    input: u64,
    /// The oldest message that has no answer yet, and since when it waits.
    pub(crate) unanswered: Option<(u64, Instant)>,
    /// Orders that wait for their check.
    pub(crate) pending: u64,
    /// Why the last owner ended, if none has made progress since.
    pub(crate) failure: Option<String>,
    /// No owner works until a person has mended something.
    pub(crate) stopped: bool,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        let progress = Instant::now();
        let vitals =
            Vitals { progress, input: 0, unanswered: None, pending: 0, failure: None, stopped: false };
        Self(Arc::new(Mutex::new(vitals)))
    }

    fn lock(&self) -> MutexGuard<'_, Vitals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner makes progress.
    pub(crate) fn beat(&self) {
        let mut vitals = self.lock();
        (vitals.progress, vitals.failure) = (Instant::now(), None);
    }

    /// The owner has come as far as a message, and has answered all up to it. That is progress if no owner
    /// before it has.
    pub(crate) fn reached(&self, input: u64) {
        let mut vitals = self.lock();
        vitals.unanswered.take_if(|(first, _)| *first <= input);
        if input > vitals.input {
            (vitals.progress, vitals.failure, vitals.input) = (Instant::now(), None, input);
        }
    }

    /// A message needs an answer, and has waited for a while.
    pub(crate) fn waits(&self, input: u64, age: Duration) {
        let unanswered = &mut self.lock().unanswered;
        if unanswered.is_none_or(|(first, _)| input < first) {
            *unanswered = Some((input, Instant::now().checked_sub(age).unwrap_or_else(Instant::now)));
        }
    }

    pub(crate) fn pending(&self, orders: usize) {
        self.lock().pending = orders as u64;
    }

    /// The owner has ended; the partition may have stopped.
    pub(crate) fn failed(&self, failure: String, stopped: bool) {
        let mut vitals = self.lock();
        (vitals.failure, vitals.stopped) = (Some(failure), stopped);
    }

    /// The partition is served.
    pub(crate) fn serves(&self) {
        self.lock().stopped = false;
    }

    pub(crate) fn vitals(&self) -> Vitals {
        self.lock().clone()
    }
}
