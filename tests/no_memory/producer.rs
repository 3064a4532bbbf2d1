//! Producers that are refused memory.

use std::sync::mpsc;

use shardwheel::{Advancer, Config, Key, ScheduleErrorKind, Scheduler, Tick, shard};

use crate::child::at_every_request;
use crate::faults::short;
use crate::payload::{Count, Payload};

/// Timers that a crowd sets: more than a segment holds of them.
const MANY: usize = 70_000;

type Shard = (Scheduler<Payload>, Advancer<Payload>);

pub(crate) fn small_shard() -> Shard {
    shard(&Config::builder().wheel_size(16).build().expect("a power of two"))
}

/// Deadlines for every wheel, and the past.
pub(crate) fn deadlines() -> impl Iterator<Item = Tick> {
    (0..60).step_by(4).map(|bits| 1 << bits).chain([0, Tick::MAX])
}

/// Schedules, with memory refused; a refusal hands the payload back and says why.
pub(crate) fn schedule(
    scheduler: &Scheduler<Payload>,
    count: &Count,
    deadline: Tick,
    number: usize,
) -> Option<Key> {
    let payload = count.payload(number);
    match short(|| scheduler.schedule(deadline, payload)) {
        Ok(key) => Some(key),
        Err(refused) => {
            assert!(matches!(refused.kind(), ScheduleErrorKind::OutOfMemory { .. }), "{refused}");
            assert_eq!(refused.into_payload().number, number);
            None
        }
    }
}

/// All is well: what is pending fires, and another timer can be set and fires.
pub(crate) fn end((scheduler, mut advancer): Shard, count: &Count, pending: usize) {
    assert_eq!((scheduler.len(), count.living()), (pending, pending));
    assert!(scheduler.schedule(Tick::MAX, count.payload(0)).is_ok());
    assert_eq!(advancer.advance(Tick::MAX).count(), pending + 1);
    assert!(scheduler.schedule(5, count.payload(0)).is_ok());
    assert_eq!(advancer.into_pending().count(), 1);
    assert_eq!(count.living(), 0);
}

#[test]
fn schedule_for_every_wheel() {
    at_every_request("producer::schedule_for_every_wheel", || {
        let (shard, count) = (small_shard(), Count::default());
        let set = |(number, deadline)| schedule(&shard.0, &count, deadline, number);
        let set = deadlines().enumerate().filter_map(set).count();
        end(shard, &count, set);
    });
}

#[test]
fn schedule_beyond_a_segment() {
    at_every_request("producer::schedule_beyond_a_segment", || {
        let (shard, count) = (small_shard(), Count::default());
        let set = |number| schedule(&shard.0, &count, 1 + number as Tick, number);
        let set = (0..MANY).filter_map(set).count();
        end(shard, &count, set);
    });
}

#[test]
fn cancel_and_schedule_again() {
    at_every_request("producer::cancel_and_schedule_again", || {
        let (shard, count) = (small_shard(), Count::default());
        let set = |number| shard.0.schedule(1 << 20, count.payload(number)).ok();
        let keys: Vec<_> = (0..200).filter_map(set).collect();
        for &key in &keys {
            assert!(short(|| shard.0.cancel(key)).is_some());
        }
        let again = (0..200).filter_map(|number| schedule(&shard.0, &count, 1 << 21, number)).count();
        end(shard, &count, again);
    });
}

/// Where there is no memory for a move the timer keeps its deadline.
#[test]
fn reschedule_to_every_wheel() {
    at_every_request("producer::reschedule_to_every_wheel", || {
        let (shard, count) = (small_shard(), Count::default());
        let set = |number| shard.0.schedule(Tick::MAX, count.payload(number)).ok();
        let mut keys: Vec<_> = (0..16).filter_map(set).collect();
        for (key, deadline) in keys.iter_mut().zip(deadlines()) {
            *key = short(|| shard.0.reschedule(*key, deadline)).expect("it is pending");
        }
        end(shard, &count, keys.len());
    });
}

/// Has a timer set by another thread, which keeps what it has of the shard while `work` is done with the key.
fn with_a_timer_of_another(scheduler: &Scheduler<Payload>, count: &Count, work: impl FnOnce(Key)) {
    std::thread::scope(|scope| {
        let (told, heard) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let (scheduler, count) = (scheduler.clone(), count.clone());
        scope.spawn(move || {
            let key = scheduler.schedule(9, count.payload(1)).map_err(|refused| refused.kind());
            told.send(key).expect("it is waited for");
            // Until the other end is dropped.
            let _ = ended.recv();
        });
        work(heard.recv().expect("it is sent").expect("there is memory"));
        drop(end);
    });
}

/// A thread that comes to the shard for the first time, to cancel: it may not say that there is no such timer.
#[test]
fn first_call_of_a_thread_cancels() {
    at_every_request("producer::first_call_of_a_thread_cancels", || {
        let (shard, count) = (small_shard(), Count::default());
        with_a_timer_of_another(&shard.0, &count, |key| {
            assert!(short(|| shard.0.cancel(key)).is_some());
            assert!(short(|| shard.0.cancel(key)).is_none());
        });
        end(shard, &count, 0);
    });
}

#[test]
fn first_call_of_a_thread_reschedules() {
    at_every_request("producer::first_call_of_a_thread_reschedules", || {
        let (shard, count) = (small_shard(), Count::default());
        with_a_timer_of_another(&shard.0, &count, |key| {
            assert!(short(|| shard.0.reschedule(key, 20)).is_some());
        });
        end(shard, &count, 1);
    });
}

#[test]
fn first_call_of_a_thread_looks() {
    at_every_request("producer::first_call_of_a_thread_looks", || {
        let (shard, count) = (small_shard(), Count::default());
        with_a_timer_of_another(&shard.0, &count, |key| {
            short(|| shard.0.prefetch(key));
            let stats = short(|| shard.0.stats());
            assert_eq!((stats.pending, short(|| shard.0.len())), (1, 1));
        });
        end(shard, &count, 1);
    });
}
