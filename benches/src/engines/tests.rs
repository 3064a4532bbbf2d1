//! Every engine fires what a plain sum over the workload expects, after each kind of pass.

use super::*;
use crate::checksum::Checksum;
use crate::passes::*;
use crate::workload::{Spread, THIRTY_MINUTES, Workload, later};

const SIZE: usize = 2000;

fn work(seed: u64) -> Workload {
    Workload::new(Spread::ThirtyMinutes, SIZE, seed)
}

fn fires_all<E: Engine>() {
    let mut engine = E::new();
    let mut base = 0;
    for spread in [Spread::ThirtyMinutes, Spread::PlacedInOneSecond, Spread::DueInOneSecond] {
        let work = Workload::new(spread, SIZE, base);
        round_trip(&mut engine, base, &work);
        base += work.span();
    }
}

fn fires_tick_by_tick<E: Engine>() {
    let work = Workload::new(Spread::DueInOneSecond, SIZE, 1);
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    schedule_all(&engine.producer(), 0, &work);
    engine.advance(THIRTY_MINUTES - 1, &mut fired);
    assert_eq!(fired, Checksum::default(), "{} fired early", E::NAME);
    advance_by_ticks(&mut engine, THIRTY_MINUTES - 1, work.span(), &mut fired);
    fired.verify(&work.expected(0, 1), E::NAME);
}

fn extends<E: Engine<Producer: Cancel>>() {
    let (mut engine, extended, mut handles) = (E::new(), later(&work(1), 2), Vec::new());
    let producer = engine.producer();
    schedule_keeping(&producer, 0, &work(1), &mut handles);
    extend_all(&producer, 0, &mut handles, extended.delays());
    fire_all(&mut engine, extended.span(), &extended.expected(0, 1));
}

fn cancels_leave_the_rest<E: Engine<Producer: Cancel>>() {
    let (mut engine, mut handles, standing) = (E::new(), Vec::new(), work(1));
    let producer = engine.producer();
    schedule_all(&producer, 60_000, &standing);
    pairs(&producer, 0, &work(2));
    pairs_advanced(&mut engine, 0, &work(3));
    schedule_keeping(&producer, 0, &work(4), &mut handles);
    cancel_all(&producer, &handles);
    let mut churn = Churn::new(producer);
    let (pairs, _) = churn.run(2500, |clock| engine.advance(clock, &mut Checksum::default()));
    assert_eq!(pairs, 2000);
    let mut expected = standing.expected(60_000, 1);
    churn.pending().into_iter().for_each(|(deadline, payload)| expected.expect(deadline, payload));
    fire_all(&mut engine, 60_000 + standing.span(), &expected);
}

macro_rules! tests {
    ($($name:ident: $check:ident, $($engine:ty),+;)+) => {
        $(#[test] fn $name() { $($check::<$engine>();)+ })+
    };
}

tests! {
    all_engines_fire_all: fires_all, Wheel, Heap, Unlocked<LazyHeap>, BareHeap, Locked<Tree>,
        Locked<DelayQueue>, Unlocked<QuadWheel>, Unlocked<WeakQuadWheel>, Unlocked<RingWheel>, Unlocked<FlatWheel>;
    all_engines_fire_tick_by_tick: fires_tick_by_tick, Wheel, Heap, Unlocked<LazyHeap>, BareHeap, Locked<Tree>,
        Locked<DelayQueue>, Unlocked<QuadWheel>, Unlocked<WeakQuadWheel>, Unlocked<RingWheel>, Unlocked<FlatWheel>;
    engines_extend: extends, Wheel, Heap, Unlocked<LazyHeap>, Locked<Tree>, Locked<DelayQueue>,
        Unlocked<WeakQuadWheel>, Unlocked<FlatWheel>;
    a_cancel_leaves_the_rest: cancels_leave_the_rest, Wheel, Heap, Unlocked<LazyHeap>, Locked<Tree>,
        Locked<DelayQueue>, Unlocked<WeakQuadWheel>, Unlocked<FlatWheel>;
}

#[test]
fn a_stale_heap_handle_is_refused() {
    let heap = <Heap as Engine>::new();
    let first = heap.schedule(10, 1);
    assert_eq!(heap.cancel(first), Some(1));
    let second = heap.schedule(20, 2);
    assert_eq!((heap.cancel(first), heap.extend(first, 30).is_none()), (None, true));
    assert_eq!((heap.cancel(second), heap.cancel(second)), (Some(2), None));
}
