//! One and two producer threads, on shards of their own and on a shared one.

use std::time::Duration;

use shardwheel_benches::{
    Cancel, Engine, Heap, Layout, Spread, Wheel, Workload, extend_all, later, pairs, schedule_all,
    schedule_keeping,
};

use crate::sections::Turn;

/// What each layout is measured at.
pub(crate) const OPERATIONS: [&str; 5] = [
    "schedule, fresh nodes",
    "schedule, nodes used before",
    "schedule + cancel",
    "extend",
    "fire, a thread for each shard",
];

/// Above this many timers the heap sits out: its lock is as contended at fewer, and it takes minutes.
const ENOUGH_FOR_A_HEAP: usize = 1_000_000;

/// Names the run of one operation in one layout.
pub(crate) fn name(operation: &str, layout: Layout) -> String {
    format!("{operation}: {}", layout.name())
}

struct Work {
    first: Workload,
    second: Workload,
    extended: Workload,
}

/// Every operation in every layout, each thread with this turn's number of timers.
pub(crate) fn run(turn: &mut Turn<'_>) {
    let [first, second] = [0, 1].map(|nth| turn.workload(Spread::ThirtyMinutes, nth));
    let extended = later(&first, turn.round as u64);
    let work = Work { first, second, extended };
    if turn.size <= ENOUGH_FOR_A_HEAP {
        turn.alternate(&work, &[wheel_layouts, heap_layouts]);
    } else {
        wheel_layouts(turn, &work);
    }
}

fn wheel_layouts(turn: &mut Turn<'_>, work: &Work) {
    all_layouts::<Wheel>(turn, work, turn.repeats());
}

/// Fewer repeats than the wheel has: two threads that wait for a lock are slow, and no verdict rests on them.
fn heap_layouts(turn: &mut Turn<'_>, work: &Work) {
    all_layouts::<Heap>(turn, work, ENOUGH_FOR_A_HEAP / turn.size);
}

/// The layouts too take turns at being first.
fn all_layouts<E>(turn: &mut Turn<'_>, work: &Work, repeats: usize)
where
    E: Engine<Producer: Cancel + Send> + Send,
{
    for nth in 0..Layout::ALL.len() {
        let layout = Layout::ALL[(nth + turn.round) % Layout::ALL.len()];
        one_layout::<E>(turn, layout, work, repeats);
    }
}

fn one_layout<E>(turn: &mut Turn<'_>, layout: Layout, work: &Work, repeats: usize)
where
    E: Engine<Producer: Cancel + Send> + Send,
{
    let mut spent = [Duration::ZERO; OPERATIONS.len()];
    for _ in 0..repeats {
        turn.provide_memory(layout.threads());
        let mut engines = layout.engines::<E>();
        let times = measure(layout, &mut engines, work);
        spent.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
    let operations = repeats * turn.size * layout.threads();
    for (operation, elapsed) in OPERATIONS.iter().zip(spent) {
        turn.record::<E>(&name(operation, layout), elapsed, operations);
    }
}

/// The times of the [`OPERATIONS`], in their order.
fn measure<E>(layout: Layout, engines: &mut [E], work: &Work) -> [Duration; OPERATIONS.len()]
where
    E: Engine<Producer: Cancel + Send> + Send,
{
    let fresh = layout.race(engines, |producer| move || schedule_all(&producer, 0, &work.first));
    let fire = layout.drain(engines, 0, &work.first);
    let base = work.first.span();
    let used = layout.race(engines, |producer| move || schedule_all(&producer, base, &work.second));
    layout.drain(engines, base, &work.second);
    let base = base + work.second.span();
    let pair = layout.race(engines, |producer| move || pairs(&producer, base, &work.first));
    let extend = layout.race(engines, |producer| {
        let mut handles = Vec::new();
        schedule_keeping(&producer, base, &work.first, &mut handles);
        move || extend_all(&producer, base, &mut handles, work.extended.delays())
    });
    layout.drain(engines, base, &work.extended);
    [fresh, used, pair, extend, fire]
}
