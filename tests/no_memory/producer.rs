//! Producers whose requests for memory are refused.

use std::sync::mpsc;

use shardwheel::{Advancer, Config, Key, ScheduleErrorKind, Scheduler, Tick, shard};

use crate::at_every_request;
use crate::support::allocator::short;
use crate::support::ledger::{Ledger, Payload};

type Shard<T = Payload> = (Scheduler<T>, Advancer<T>);

/// A payload of which a segment holds 256.
struct Large {
    payload: Payload,
    _bytes: [u8; 4096],
}

impl From<Payload> for Large {
    fn from(payload: Payload) -> Self {
        Self { payload, _bytes: [0; 4096] }
    }
}

impl From<Large> for Payload {
    fn from(large: Large) -> Self {
        large.payload
    }
}

pub(crate) fn small_shard<T: Send>() -> Shard<T> {
    shard(&Config::builder().wheel_size(16).build().expect("a power of two"))
}

/// Deadlines for every wheel, and in the past.
pub(crate) fn deadlines() -> impl Iterator<Item = Tick> {
    (0..60).step_by(4).map(|bits| 1 << bits).chain([0, Tick::MAX])
}

/// Schedules with memory refused. A refusal returns the payload and says why.
pub(crate) fn schedule<T>(scheduler: &Scheduler<T>, ledger: &Ledger, deadline: Tick) -> Option<Key>
where
    T: From<Payload>,
    Payload: From<T>,
{
    let payload = ledger.payload();
    let id = payload.id();
    match short(|| scheduler.schedule(deadline, payload.into())) {
        Ok(key) => Some(key),
        Err(refused) => {
            assert!(matches!(refused.kind(), ScheduleErrorKind::OutOfMemory { .. }), "{refused}");
            assert_eq!(Payload::from(refused.into_payload()).id(), id);
            None
        }
    }
}

/// Checks that everything works: what is pending fires, and another timer can be set and fires.
pub(crate) fn end<T: From<Payload>>((scheduler, mut advancer): Shard<T>, ledger: &Ledger, pending: usize) {
    assert_eq!((scheduler.len(), ledger.living()), (pending, pending));
    assert!(scheduler.schedule(Tick::MAX, ledger.payload().into()).is_ok());
    assert_eq!(advancer.advance(Tick::MAX).count(), pending + 1);
    assert!(scheduler.schedule(5, ledger.payload().into()).is_ok());
    assert_eq!(advancer.into_pending().count(), 1);
    assert_eq!(ledger.living(), 0);
    ledger.check_drops();
}

/// Scheduling for every wheel.
#[test]
fn schedule_for_every_wheel() {
    at_every_request(|| {
        let (shard, ledger) = (small_shard::<Payload>(), Ledger::default());
        let set = |deadline| schedule(&shard.0, &ledger, deadline);
        let set = deadlines().filter_map(set).count();
        end(shard, &ledger, set);
    });
}

/// Scheduling more timers than a segment holds.
#[test]
fn schedule_beyond_a_segment() {
    at_every_request(|| {
        let (shard, ledger) = (small_shard::<Large>(), Ledger::default());
        let set = |deadline| schedule(&shard.0, &ledger, deadline);
        let set = (1..700).filter_map(set).count();
        end(shard, &ledger, set);
    });
}

/// Cancelling, and scheduling in the same nodes.
#[test]
fn cancel_and_schedule_again() {
    at_every_request(|| {
        let (shard, ledger) = (small_shard(), Ledger::default());
        let set = |_| shard.0.schedule(1 << 20, ledger.payload()).ok();
        let keys: Vec<_> = (0..200).filter_map(set).collect();
        for &key in &keys {
            assert!(short(|| shard.0.cancel(key)).is_some());
        }
        let again = (0..200).filter_map(|_| schedule(&shard.0, &ledger, 1 << 21)).count();
        end(shard, &ledger, again);
    });
}

/// Rescheduling to every wheel; without memory for a move the timer keeps its deadline.
#[test]
fn reschedule_to_every_wheel() {
    at_every_request(|| {
        let (shard, ledger) = (small_shard(), Ledger::default());
        let set = |_| shard.0.schedule(Tick::MAX, ledger.payload()).ok();
        let mut keys: Vec<_> = (0..16).filter_map(set).collect();
        for (key, deadline) in keys.iter_mut().zip(deadlines()) {
            *key = short(|| shard.0.reschedule(*key, deadline)).expect("the timer is pending");
        }
        end(shard, &ledger, keys.len());
    });
}

/// Another thread sets a timer, and stays alive while `work` uses the key.
fn with_a_timer_of_another(scheduler: &Scheduler<Payload>, ledger: &Ledger, work: impl FnOnce(Key)) {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
        scope.spawn(move || {
            let key = scheduler.schedule(9, ledger.payload()).map_err(|refused| refused.kind());
            sender.send(key).expect("the other thread waits");
            // Until the other end is dropped.
            let _ = ended.recv();
        });
        work(receiver.recv().expect("the other thread sends it").expect("there is memory"));
        drop(end);
    });
}

/// A thread's first call of a shard is a cancel, which must not answer that there is no such timer; a
/// reschedule; or it reads the shard's state.
#[test]
fn first_call_of_a_thread() {
    at_every_request(|| {
        let (shard, ledger) = (small_shard(), Ledger::default());
        with_a_timer_of_another(&shard.0, &ledger, |key| {
            assert!(short(|| shard.0.cancel(key)).is_some());
            assert!(short(|| shard.0.cancel(key)).is_none());
        });
        end(shard, &ledger, 0);
        let (shard, ledger) = (small_shard(), Ledger::default());
        with_a_timer_of_another(&shard.0, &ledger, |key| {
            assert!(short(|| shard.0.reschedule(key, 20)).is_some());
        });
        end(shard, &ledger, 1);
        let (shard, ledger) = (small_shard(), Ledger::default());
        with_a_timer_of_another(&shard.0, &ledger, |key| {
            short(|| shard.0.prefetch(key));
            let stats = short(|| shard.0.stats());
            assert_eq!((stats.pending, short(|| shard.0.len())), (1, 1));
        });
        end(shard, &ledger, 1);
    });
}
