//! Every engine fires what a plain sum over the workload says, after each kind of pass.

use crate::*;

const SIZE: usize = 2000;

fn work(seed: u64) -> Workload {
    Workload::new(Spread::ThirtyMinutes, SIZE, seed)
}

fn fires_all<E: Engine>() {
    let mut engine = E::new();
    let producer = engine.producer();
    let mut base = 0;
    for spread in [Spread::ThirtyMinutes, Spread::PlacedInOneSecond, Spread::DueInOneSecond] {
        let work = Workload::new(spread, SIZE, base);
        let mut fired = Checksum::default();
        schedule_all(&producer, base, &work);
        drain(&mut engine, base + work.span(), &mut fired);
        fired.verify(&work.expected(base, 1), E::NAME);
        base += work.span();
    }
}

fn fires_tick_by_tick<E: Engine>() {
    let work = Workload::new(Spread::DueInOneSecond, SIZE, 1);
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    schedule_all(&engine.producer(), 0, &work);
    drain(&mut engine, THIRTY_MINUTES - 1, &mut fired);
    assert_eq!(fired, Checksum::default(), "{} fired early", E::NAME);
    advance_by_ticks(&mut engine, THIRTY_MINUTES - 1, work.span(), &mut fired);
    fired.verify(&work.expected(0, 1), E::NAME);
}

fn stays_steady<E: Engine>() {
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    schedule_all(&engine.producer(), 0, &Workload::new(Spread::DueInOneSecond, SIZE, 1));
    drain(&mut engine, THIRTY_MINUTES - 1, &mut fired);
    let (_, clock) = steady(&mut engine, THIRTY_MINUTES - 1, &work(2), &mut fired);
    assert!(fired.count() >= SIZE as u64, "{} stopped early", E::NAME);
    drain(&mut engine, clock + THIRTY_MINUTES, &mut fired);
    assert_eq!(fired.count(), 2 * SIZE as u64, "{}", E::NAME);
}

fn extends<E: Engine<Producer: Cancel>>() {
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let extended = later(&work(1), 2);
    let mut handles = Vec::new();
    schedule_keeping(&producer, 0, &work(1), &mut handles);
    extend_all(&producer, 0, &mut handles, extended.delays());
    drain(&mut engine, extended.span(), &mut fired);
    fired.verify(&extended.expected(0, 1), E::NAME);
}

fn cancels_leave_the_rest<E: Engine<Producer: Cancel>>() {
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let standing = work(1);
    schedule_all(&producer, 60_000, &standing);
    pairs(&producer, 0, &work(2));
    pairs_advanced(&mut engine, 0, &work(3));
    let mut handles = Vec::new();
    schedule_keeping(&producer, 0, &work(4), &mut handles);
    cancel_all(&producer, &handles);
    let mut churn = Churn::new(producer, 0);
    let (pairs, _) = churn.run(2500, |clock| engine.advance(clock, &mut Checksum::default()));
    assert_eq!(pairs, 2000);
    drain(&mut engine, 60_000 + standing.span(), &mut fired);
    let mut expected = standing.expected(60_000, 1);
    churn.pending().into_iter().for_each(|(deadline, payload)| expected.expect(deadline, payload));
    fired.verify(&expected, E::NAME);
}

#[test]
fn all_engines_fire_all() {
    fires_all::<Wheel>();
    fires_all::<Locked<LazyHeap>>();
    fires_all::<Unlocked<LazyHeap>>();
    fires_all::<Locked<Tree>>();
    fires_all::<Unlocked<Tree>>();
    fires_all::<Locked<DelayQueue>>();
    fires_all::<Unlocked<DelayQueue>>();
    fires_all::<Locked<FlatWheel>>();
    fires_all::<Unlocked<FlatWheel>>();
    fires_all::<Unlocked<WeakQuadWheel>>();
    fires_all::<Unlocked<HashedWheel>>();
    fires_all::<BareHeap>();
    fires_all::<Locked<QuadWheel>>();
    fires_all::<Unlocked<QuadWheel>>();
    fires_all::<Locked<RingWheel>>();
    fires_all::<Unlocked<RingWheel>>();
}

#[test]
fn all_engines_fire_tick_by_tick() {
    fires_tick_by_tick::<Wheel>();
    fires_tick_by_tick::<Locked<LazyHeap>>();
    fires_tick_by_tick::<Unlocked<LazyHeap>>();
    fires_tick_by_tick::<Locked<Tree>>();
    fires_tick_by_tick::<Unlocked<Tree>>();
    fires_tick_by_tick::<Locked<DelayQueue>>();
    fires_tick_by_tick::<Unlocked<DelayQueue>>();
    fires_tick_by_tick::<Locked<FlatWheel>>();
    fires_tick_by_tick::<Unlocked<FlatWheel>>();
    fires_tick_by_tick::<Unlocked<WeakQuadWheel>>();
    fires_tick_by_tick::<Unlocked<HashedWheel>>();
    fires_tick_by_tick::<BareHeap>();
    fires_tick_by_tick::<Locked<QuadWheel>>();
    fires_tick_by_tick::<Unlocked<QuadWheel>>();
    fires_tick_by_tick::<Locked<RingWheel>>();
    fires_tick_by_tick::<Unlocked<RingWheel>>();
}

#[test]
fn all_engines_stay_steady() {
    stays_steady::<Wheel>();
    stays_steady::<Locked<LazyHeap>>();
    stays_steady::<Unlocked<LazyHeap>>();
    stays_steady::<Locked<Tree>>();
    stays_steady::<Unlocked<Tree>>();
    stays_steady::<Locked<DelayQueue>>();
    stays_steady::<Unlocked<DelayQueue>>();
    stays_steady::<Locked<FlatWheel>>();
    stays_steady::<Unlocked<FlatWheel>>();
    stays_steady::<Unlocked<WeakQuadWheel>>();
    stays_steady::<Unlocked<HashedWheel>>();
    stays_steady::<BareHeap>();
    stays_steady::<Locked<QuadWheel>>();
    stays_steady::<Unlocked<QuadWheel>>();
    stays_steady::<Locked<RingWheel>>();
    stays_steady::<Unlocked<RingWheel>>();
}

#[test]
fn engines_extend() {
    extends::<Wheel>();
    extends::<Locked<LazyHeap>>();
    extends::<Unlocked<LazyHeap>>();
    extends::<Locked<Tree>>();
    extends::<Unlocked<Tree>>();
    extends::<Locked<DelayQueue>>();
    extends::<Unlocked<DelayQueue>>();
    extends::<Locked<FlatWheel>>();
    extends::<Unlocked<FlatWheel>>();
    extends::<Unlocked<WeakQuadWheel>>();
    extends::<Unlocked<HashedWheel>>();
}

#[test]
fn cancelling_leaves_the_rest() {
    cancels_leave_the_rest::<Wheel>();
    cancels_leave_the_rest::<Locked<LazyHeap>>();
    cancels_leave_the_rest::<Unlocked<LazyHeap>>();
    cancels_leave_the_rest::<Locked<Tree>>();
    cancels_leave_the_rest::<Unlocked<Tree>>();
    cancels_leave_the_rest::<Locked<DelayQueue>>();
    cancels_leave_the_rest::<Unlocked<DelayQueue>>();
    cancels_leave_the_rest::<Locked<FlatWheel>>();
    cancels_leave_the_rest::<Unlocked<FlatWheel>>();
    cancels_leave_the_rest::<Unlocked<WeakQuadWheel>>();
    cancels_leave_the_rest::<Unlocked<HashedWheel>>();
}

#[test]
fn a_stale_heap_handle_is_refused() {
    let heap = Heap::new();
    let first = heap.schedule(10, 1);
    assert_eq!(heap.cancel(first), Some(1));
    let second = heap.schedule(20, 2);
    assert_eq!((heap.cancel(first), heap.extend(first, 30).is_none()), (None, true));
    assert_eq!((heap.cancel(second), heap.cancel(second)), (Some(2), None));
}
