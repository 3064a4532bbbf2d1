//! One thread: whole passes, and single operations.

use std::mem;
use std::time::Duration;

use crate::args::label;
use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Producer};
use crate::names::{BOTH, FIRE, MILLION, SCHEDULE};
use crate::passes::{
    LOST, cancel_all, extend_all, fire_all, pair_each, round_trip, schedule_all, schedule_keeping, time,
};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, THIRTY_MINUTES, Workload, later};

/// Pairs of schedule and cancel that a churn makes, the timers between them, and their delay.
const PAIRS: u64 = if cfg!(test) { 5_000 } else { 4_000_000 };
const OUTSTANDING: usize = 1_000;
const AHEAD: u64 = 30_000;

/// Standing timers are due after this many ticks, so that none fires while a churn moves the clock.
const OUT_OF_THE_WAY: u64 = 60_000;

/// Pairs of schedule and cancel between two calls of the advancer.
pub(crate) const PAIRS_PER_ADVANCE: usize = 4096;

/// Timers that stand during pairs, and whether the advancer is called meanwhile.
pub(crate) const PAIRS_OVER: [(usize, bool); 4] = [(0, true), (0, false), (MILLION, true), (MILLION, false)];

/// Suffixes of figures: nodes of a new engine, and of an engine in which as many timers have fired.
pub(crate) const NODES: [&str; 2] = [", fresh nodes", ", nodes used before"];

pub(crate) const EXTEND: [&str; 2] = ["extend, in the order scheduled", "extend, in random order"];
pub(crate) const CANCEL_ALL: &str = "all scheduled, then all cancelled";
pub(crate) const PAIR: &str = "schedule + cancel";

/// Schedules and fires in a new engine, a workload for each of `parts`, the suffix of its figures.
fn round_trips<E: Engine>(task: &Task, spread: Spread, parts: &[&str]) -> Outcome {
    let work = (0..parts.len()).map(|nth| task.workload(spread, nth)).collect::<Vec<_>>();
    let mut spent = vec![[Duration::ZERO; 2]; parts.len()];
    for _ in 0..task.repeats() {
        let (mut engine, mut base) = (E::new(), 0);
        for (work, spent) in work.iter().zip(&mut spent) {
            let trip = round_trip(&mut engine, base, work);
            (0..2).for_each(|part| spent[part] += trip[part]);
            base += work.span;
        }
    }
    let mut outcome = Outcome::new(work[0].expected(0, 1).digest());
    for (part, [schedule, fire]) in parts.iter().zip(spent) {
        for (what, time) in [(SCHEDULE, schedule), (FIRE, fire), (BOTH, schedule + fire)] {
            outcome.time(format!("{what}{part}"), time, task.repeats() * task.timers);
        }
    }
    outcome
}

/// Random deadlines over 30 minutes, in fresh nodes and in nodes used before.
pub(crate) fn both_nodes<E: Engine>(task: &Task) -> Outcome {
    round_trips::<E>(task, Spread::ThirtyMinutes, &NODES)
}

/// Random deadlines over 30 minutes.
pub(crate) fn random<E: Engine>(task: &Task) -> Outcome {
    round_trips::<E>(task, Spread::ThirtyMinutes, &[""])
}

/// All due within one second, in random order.
pub(crate) fn second<E: Engine>(task: &Task) -> Outcome {
    round_trips::<E>(task, Spread::DueInOneSecond, &[""])
}

/// A constant delay, placed within one second.
pub(crate) fn constant<E: Engine>(task: &Task) -> Outcome {
    round_trips::<E>(task, Spread::PlacedInOneSecond, &[""])
}

pub(crate) fn pairs_name(standing: usize, advanced: bool) -> String {
    let advancer = if advanced { "called now and then" } else { "not called" };
    format!("cancelled at once, {} standing, advancer {advancer}", label(standing))
}

/// Schedules and cancels at once; then schedules all and cancels all.
pub(crate) fn cancel<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let mut outcome = Outcome::new(task.seed(0));
    for (standing, advanced) in PAIRS_OVER {
        let others = Workload::new(Spread::ThirtyMinutes, standing, task.seed(1));
        let elapsed = pairs_over::<E>([&others, &work], task.repeats(), advanced);
        outcome.time(pairs_name(standing, advanced), elapsed, task.repeats() * task.timers);
    }
    let (mut handles, mut elapsed) = (Vec::with_capacity(task.timers), Duration::ZERO);
    for _ in 0..task.repeats() {
        let engine = E::new();
        let producer = engine.producer();
        elapsed += schedule_keeping(&producer, &work, &mut handles);
        elapsed += cancel_all(&producer, &handles);
    }
    outcome.time(CANCEL_ALL, elapsed, task.repeats() * task.timers);
    outcome
}

/// Schedules and cancels at once what the second workload has, over the first one.
pub(crate) fn pairs_over<E: Engine<Producer: Cancel>>(
    work: [&Workload; 2],
    repeats: usize,
    advanced: bool,
) -> Duration {
    let [standing, work] = work;
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    schedule_all(&producer, 0, standing);
    let elapsed = time(|| {
        for delays in (0..repeats).flat_map(|_| work.delays.chunks(PAIRS_PER_ADVANCE)) {
            pair_each(&producer, 0, delays);
            if advanced {
                engine.advance(0, &mut fired);
            }
        }
    });
    assert_eq!(fired.count(), 0, "a timer fired while the clock stood still");
    elapsed
}

/// Moves every timer to a later deadline, in the order scheduled, then again in random order.
pub(crate) fn extend<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let once = later(&work, task.seed(1));
    let twice = later(&once, task.seed(2));
    let expected = twice.expected(0, 1);
    let mut order = (0..task.timers).collect::<Vec<_>>();
    fastrand::Rng::with_seed(task.seed(3)).shuffle(&mut order);
    let shuffled = order.iter().map(|&nth| twice.delays[nth]).collect::<Vec<_>>();
    let (mut handles, mut spent) = (Vec::with_capacity(task.timers), [Duration::ZERO; 2]);
    for repeat in 0..task.repeats() {
        let mut engine = E::new();
        let producer = engine.producer();
        schedule_keeping(&producer, &work, &mut handles);
        spent[0] += extend_all(&producer, &mut handles, &once.delays);
        let mut handles = order.iter().map(|&nth| handles[nth]).collect::<Vec<_>>();
        spent[1] += extend_all(&producer, &mut handles, &shuffled);
        // The heap pops three entries for each timer: above a million, one round is checked.
        if repeat == 0 && (task.round == 0 || task.timers <= MILLION) {
            fire_all(&mut engine, twice.span, &expected);
        }
    }
    let mut outcome = Outcome::new(expected.digest());
    for (what, elapsed) in EXTEND.iter().zip(spent) {
        outcome.time(*what, elapsed, task.repeats() * task.timers);
    }
    outcome
}

/// Timeouts that almost never fire: schedules 30 s ahead and cancels the timer of a thousand
/// earlier, over standing timers. The clock moves by a tick after each thousand pairs.
pub(crate) fn churn<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    let standing = task.workload(Spread::ThirtyMinutes, 0);
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    schedule_all(&engine.producer(), OUT_OF_THE_WAY, &standing);
    let producer = engine.producer();
    let mut ring = (0..OUTSTANDING).map(|_| producer.schedule(AHEAD, 0)).collect::<Vec<_>>();
    let elapsed = time(|| {
        for clock in 0..PAIRS / OUTSTANDING as u64 {
            for oldest in &mut ring {
                let newest = producer.schedule(clock + AHEAD, 0);
                assert!(producer.cancel(mem::replace(oldest, newest)).is_some(), "{LOST}");
            }
            engine.advance(clock + 1, &mut Checksum::default());
        }
    });
    // What is left fires, so that a cancelled timer which fires changes the sum.
    engine.advance(OUT_OF_THE_WAY + THIRTY_MINUTES, &mut fired);
    let mut outcome = Outcome::new(fired.digest());
    outcome.time(PAIR, elapsed, PAIRS as usize);
    outcome
}
