//! Two threads: what one gets done alone, what two get done with an engine each, and what two get done on one.
//!
//! Each thread has the whole work to do, and the time is divided by the operations of all, so that a perfect scaling
//! halves it. An engine for one thread alone has no figure for two threads on one.

use std::time::Duration;

use shardwheel_benches::names::{ALONE, APART, SHARED};
use shardwheel_benches::{
    Cancel, Checksum, Churn, Engine, Layout, Producer, Spread, THIRTY_MINUTES, Workload, drain, race_then,
    schedule_all,
};

use crate::measure::{OUT_OF_THE_WAY, PAIRS};
use crate::peer::{Outcome, Task};

const THREADS: usize = 2;

/// By then all standing timers have fired, and those that a churn leaves.
const ALL_DUE: u64 = OUT_OF_THE_WAY + THIRTY_MINUTES;

/// The time that so many threads take, each with an engine of its own.
type Own<'a> = &'a dyn Fn(usize) -> Duration;

/// The time that two threads take on one engine, where they can share it.
type Shared<'a> = Option<&'a dyn Fn() -> Duration>;

/// Schedules at random over 30 minutes, `--timers` from each thread, after as many have been scheduled and fired: two
/// threads that touch fresh memory wait for one another in the kernel. For an engine that threads cannot share.
pub(crate) fn schedule_apart<E: Engine>(task: Task) -> Outcome {
    let work = random(task);
    outcome(task, &work, task.size, &|threads| schedule_on_own::<E>(threads, &work), None)
}

/// The same for one that they can.
pub(crate) fn schedule<E: Engine<Producer: Send>>(task: Task) -> Outcome {
    let work = random(task);
    let own: Own<'_> = &|threads| schedule_on_own::<E>(threads, &work);
    outcome(task, &work, task.size, own, Some(&|| schedule_on_one::<E>(&work)))
}

/// Schedules 30 s ahead and cancels the timer of a thousand earlier, in each thread; the size is the number of
/// standing timers of an engine. For an engine that threads cannot share.
pub(crate) fn churn_apart<E: Engine<Producer: Cancel>>(task: Task) -> Outcome {
    let standing = random(task);
    outcome(task, &standing, PAIRS, &|threads| churn_on_own::<E>(threads, &standing), None)
}

/// The same for one that they can.
pub(crate) fn churn<E: Engine<Producer: Cancel + Send> + Send>(task: Task) -> Outcome {
    let standing = random(task);
    let own: Own<'_> = &|threads| churn_on_own::<E>(threads, &standing);
    outcome(task, &standing, PAIRS, own, Some(&|| churn_on_one::<E>(&standing)))
}

fn random(task: Task) -> Workload {
    Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0))
}

/// Lets each column have its go, a different one first in each round. Each run checks what has fired in the end; the
/// digest says which work it was. `operations` are those of a thread.
fn outcome(task: Task, work: &Workload, operations: usize, own: Own<'_>, shared: Shared<'_>) -> Outcome {
    let columns = [(ALONE, 1), (APART, THREADS), (SHARED, THREADS)];
    let columns = &columns[..if shared.is_some() { 3 } else { 2 }];
    let mut times = vec![Duration::ZERO; columns.len()];
    for nth in (0..columns.len()).map(|nth| (nth + task.round) % columns.len()) {
        times[nth] = match (columns[nth], shared) {
            ((SHARED, _), Some(shared)) => shared(),
            ((_, threads), _) => own(threads),
        };
    }
    let figure = |(&(what, threads), time): (&(&str, usize), Duration)| {
        (what.to_owned(), time.as_nanos() as f64 / (operations * threads) as f64)
    };
    let figures = columns.iter().zip(times).map(figure).collect();
    Outcome { checksum: work.expected(0, 1).digest(), figures }
}

fn schedule_on_own<E: Engine>(threads: usize, work: &Workload) -> Duration {
    let base = work.span();
    let prepare = || {
        let mut engine = E::new();
        let producer = engine.producer();
        schedule_all(&producer, 0, work);
        fire_all(&mut engine, base, &work.expected(0, 1));
        move || {
            schedule_all(&producer, base, work);
            engine
        }
    };
    let then = |mut engine: E| fire_all(&mut engine, 2 * base, &work.expected(base, 1));
    race_then(vec![prepare; threads], then).0
}

fn schedule_on_one<E: Engine<Producer: Send>>(work: &Workload) -> Duration {
    let mut engines = Layout::TwoOnOne.engines::<E>();
    let mut pass = |base| {
        let elapsed = Layout::TwoOnOne.race(&engines, |producer| {
            producer.enter();
            move || schedule_all(&producer, base, work)
        });
        let expected = work.expected(base, THREADS);
        engines.iter_mut().for_each(|engine| fire_all(engine, base + work.span(), &expected));
        elapsed
    };
    pass(0);
    pass(work.span())
}

fn churn_on_own<E: Engine<Producer: Cancel>>(threads: usize, standing: &Workload) -> Duration {
    let prepare = || {
        let mut engine = with_standing::<E>(standing);
        let mut churn = Churn::new(engine.producer(), 0);
        move || {
            churn.run(PAIRS, |clock| engine.advance(clock, &mut Checksum::default()));
            (engine, churn.pending())
        }
    };
    let then = |(mut engine, pending)| fire_all(&mut engine, ALL_DUE, &after_churns(standing, [pending]));
    race_then(vec![prepare; threads], then).0
}

/// The first thread moves the clock as well.
fn churn_on_one<E: Engine<Producer: Cancel + Send> + Send>(standing: &Workload) -> Duration {
    let mut engine = with_standing::<E>(standing);
    let producers = [engine.producer(), engine.producer()];
    let threads = producers.into_iter().zip([Some(&mut engine), None]).map(|(producer, mut advancer)| {
        move || {
            producer.enter();
            let mut churn = Churn::new(producer, 0);
            move || {
                churn.run(PAIRS, |clock| {
                    if let Some(engine) = &mut advancer {
                        engine.advance(clock, &mut Checksum::default());
                    }
                });
                churn.pending()
            }
        }
    });
    let (elapsed, pending) = race_then(threads.collect(), |pending| pending);
    fire_all(&mut engine, ALL_DUE, &after_churns(standing, pending));
    elapsed
}

fn with_standing<E: Engine>(standing: &Workload) -> E {
    let engine = E::new();
    schedule_all(&engine.producer(), OUT_OF_THE_WAY, standing);
    engine
}

/// What is left of the standing timers and of churns.
fn after_churns(standing: &Workload, pending: impl IntoIterator<Item = Vec<(u64, u64)>>) -> Checksum {
    let mut expected = standing.expected(OUT_OF_THE_WAY, 1);
    pending.into_iter().flatten().for_each(|(deadline, payload)| expected.expect(deadline, payload));
    expected
}

/// Moves the clock to `now`; stops the run where the engine does not fire what is expected.
fn fire_all<E: Engine>(engine: &mut E, now: u64, expected: &Checksum) {
    let mut fired = Checksum::default();
    drain(engine, now, &mut fired);
    fired.verify(expected, E::NAME);
}
