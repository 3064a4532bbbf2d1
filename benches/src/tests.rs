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
    let (pairs, _) = Churn::new(&engine, 0).run(&mut engine, 2500);
    assert_eq!(pairs, 2000);
    drain(&mut engine, 60_000 + standing.span(), &mut fired);
    let churned = 1000; // What the churn leaves pending fires too.
    assert_eq!(fired.count(), churned + SIZE as u64, "{}", E::NAME);
}

#[test]
fn all_engines_fire_all() {
    fires_all::<Wheel>();
    fires_all::<Heap>();
    fires_all::<BareHeap>();
}

#[test]
fn all_engines_fire_tick_by_tick() {
    fires_tick_by_tick::<Wheel>();
    fires_tick_by_tick::<Heap>();
    fires_tick_by_tick::<BareHeap>();
}

#[test]
fn all_engines_stay_steady() {
    stays_steady::<Wheel>();
    stays_steady::<Heap>();
    stays_steady::<BareHeap>();
}

#[test]
fn engines_extend() {
    extends::<Wheel>();
    extends::<Heap>();
}

#[test]
fn cancelling_leaves_the_rest() {
    cancels_leave_the_rest::<Wheel>();
    cancels_leave_the_rest::<Heap>();
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
