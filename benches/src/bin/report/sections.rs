//! What is timed on one thread; the section with several producers stands beside it.

use std::time::Duration;

use shardwheel_benches::{
    BareHeap, Cancel, Checksum, Churn, Engine, Heap, Spread, Wheel, Workload, advance_by_ticks, back_memory,
    cancel_all, drain, extend_all, label, later, pairs, pairs_advanced, schedule_all, schedule_keeping,
    steady,
};

use crate::producers;
use crate::results::Results;

/// How many operations a figure rests on at least; small sizes are repeated to get there.
const OPERATIONS: usize = 4_000_000;

/// More memory than an engine takes for a timer, with what the pass itself does.
const BYTES: usize = 128;

/// How many timers stand in the way in some of the runs that cancel.
const STANDING: [usize; 3] = [0, 100_000, 1_000_000];

/// Standing timers are due only after this many ticks, so that none fires while a churn moves the clock.
const OUT_OF_THE_WAY: u64 = 60_000;

/// Below this many timers a tick by tick run measures mostly ticks at which nothing is due.
const WORTH_TICKING: usize = 100_000;

/// A group of measurements.
pub(crate) struct Section {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// The heading of its table.
    pub(crate) title: &'static str,
    /// Whether it runs once for each of `--sizes`; otherwise it runs once and has sizes of its own.
    pub(crate) by_size: bool,
    /// Measures one round at one size.
    pub(crate) run: fn(&mut Turn<'_>),
}

/// Every section but the one about memory.
pub(crate) const SECTIONS: [Section; 7] = [
    Section::by_size("random", "Schedule and fire, random over 30 minutes, ns a timer", random),
    Section::by_size("second", "Fire, all within one second, ns a timer", second),
    Section::by_size("ticks", "The clock moved tick by tick, ns a timer", ticks),
    Section::by_size("cancel", "Schedule + cancel, ns a pair", cancel),
    Section::by_size("extend", "Extend, ns a timer", extend),
    Section { by_size: false, ..Section::by_size("churn", "Churn over standing timers, ns a pair", churn) },
    Section::by_size("producers", "Producers, ns a timer, all threads together", producers::run),
];

impl Section {
    const fn by_size(name: &'static str, title: &'static str, run: fn(&mut Turn<'_>)) -> Self {
        Self { name, title, by_size: true, run }
    }
}

/// What one engine does in a turn.
pub(crate) type Run<W> = fn(&mut Turn<'_>, &W);

/// One round of one section at one size.
pub(crate) struct Turn<'a> {
    pub(crate) section: &'static str,
    pub(crate) round: usize,
    pub(crate) size: usize,
    /// Whether fresh memory is as the machine has it, provided or not.
    pub(crate) cold: bool,
    pub(crate) results: &'a mut Results,
}

impl Turn<'_> {
    /// How often a pass over the workload is repeated for one figure.
    pub(crate) fn repeats(&self) -> usize {
        OPERATIONS.div_ceil(self.size)
    }

    /// A workload of this turn's size, another one in each round.
    pub(crate) fn workload(&self, spread: Spread, nth: usize) -> Workload {
        Workload::new(spread, self.size, self.seed(nth))
    }

    fn seed(&self, nth: usize) -> u64 {
        (self.round * 100 + nth) as u64
    }

    /// Keeps the time that `operations` took, as nanoseconds for each.
    pub(crate) fn record<E: Engine>(&mut self, what: &str, elapsed: Duration, operations: usize) {
        let figure = elapsed.as_nanos() as f64 / operations as f64;
        self.results.add::<E>(self.section, what, self.size, figure);
    }

    /// Has the machine provide the fresh memory of a run with so many threads.
    pub(crate) fn provide_memory(&self, threads: usize) {
        if !self.cold {
            back_memory(threads * self.size * BYTES);
        }
    }

    /// Lets each engine have its go, a different one first in each round.
    pub(crate) fn alternate<W>(&mut self, work: &W, runs: &[Run<W>]) {
        for nth in 0..runs.len() {
            self.provide_memory(1);
            runs[(nth + self.round) % runs.len()](self, work);
        }
    }
}

/// What a random round measures: in nodes that were never used, then in nodes that have all been used.
pub(crate) const NODES: [&str; 2] = ["fresh nodes", "nodes used before"];

fn random(turn: &mut Turn<'_>) {
    let work = [0, 1].map(|nth| turn.workload(Spread::ThirtyMinutes, nth));
    turn.alternate(&work, &[random_trips::<Wheel>, random_trips::<Heap>, random_trips::<BareHeap>]);
}

fn random_trips<E: Engine>(turn: &mut Turn<'_>, work: &[Workload; 2]) {
    let mut spent = [[Duration::ZERO; 2]; 2];
    for _ in 0..turn.repeats() {
        let mut engine = E::new();
        let mut base = 0;
        for (work, spent) in work.iter().zip(&mut spent) {
            let trip = round_trip(&mut engine, base, work);
            (0..2).for_each(|part| spent[part] += trip[part]);
            base += work.span();
        }
    }
    let operations = turn.repeats() * turn.size;
    for (nodes, [schedule, fire]) in NODES.iter().zip(spent) {
        turn.record::<E>(&format!("schedule, {nodes}"), schedule, operations);
        turn.record::<E>(&format!("fire, {nodes}"), fire, operations);
        turn.record::<E>(&format!("schedule + fire, {nodes}"), schedule + fire, operations);
    }
}

/// Schedules and fires all of `work`; the times of both.
fn round_trip<E: Engine>(engine: &mut E, base: u64, work: &Workload) -> [Duration; 2] {
    let mut fired = Checksum::default();
    let schedule = schedule_all(&engine.producer(), base, work);
    let fire = drain(engine, base + work.span(), &mut fired);
    fired.verify(&work.expected(base, 1), E::NAME);
    [schedule, fire]
}

fn second(turn: &mut Turn<'_>) {
    for (what, spread) in [
        ("fire, placed within one second, due in that order", Spread::PlacedInOneSecond),
        ("fire, due within one second, in random order", Spread::DueInOneSecond),
    ] {
        let work = (what, turn.workload(spread, 0));
        turn.alternate(&work, &[fire_second::<Wheel>, fire_second::<Heap>, fire_second::<BareHeap>]);
    }
}

fn fire_second<E: Engine>(turn: &mut Turn<'_>, (what, work): &(&'static str, Workload)) {
    let fire = (0..turn.repeats()).map(|_| round_trip(&mut E::new(), 0, work)[1]).sum();
    turn.record::<E>(what, fire, turn.repeats() * turn.size);
}

fn ticks(turn: &mut Turn<'_>) {
    if turn.size < WORTH_TICKING {
        return;
    }
    let work = [0, 1].map(|nth| turn.workload(Spread::ThirtyMinutes, nth));
    turn.alternate(&work, &[fire_by_ticks::<Wheel>, fire_by_ticks::<Heap>]);
    turn.alternate(&work, &[stay_steady::<Wheel>, stay_steady::<Heap>]);
}

fn fire_by_ticks<E: Engine>(turn: &mut Turn<'_>, [work, _]: &[Workload; 2]) {
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    schedule_all(&engine.producer(), 0, work);
    let elapsed = advance_by_ticks(&mut engine, 0, work.span(), &mut fired);
    fired.verify(&work.expected(0, 1), E::NAME);
    turn.record::<E>("fire", elapsed, turn.size);
}

fn stay_steady<E: Engine>(turn: &mut Turn<'_>, [standing, work]: &[Workload; 2]) {
    let mut engine = E::new();
    schedule_all(&engine.producer(), 0, standing);
    let (elapsed, _) = steady(&mut engine, 0, work, &mut Checksum::default());
    turn.record::<E>("fire, and schedule one for each fired", elapsed, turn.size);
}

/// Names a run of pairs.
pub(crate) fn pairs_name(standing: usize, advanced: bool) -> String {
    let advancer = if advanced { "called now and then" } else { "not called" };
    format!("cancelled at once, {} standing, advancer {advancer}", label(standing))
}

/// Names the run that cancels what it scheduled in a second pass.
pub(crate) const CANCEL_ALL: &str = "all scheduled, then all cancelled";

fn cancel(turn: &mut Turn<'_>) {
    for standing in [0, 1_000_000] {
        let standing = Workload::new(Spread::ThirtyMinutes, standing, turn.seed(1));
        let work = [standing, turn.workload(Spread::ThirtyMinutes, 0)];
        turn.alternate(&work, &[run_pairs::<Wheel>, run_pairs::<Heap>]);
    }
    let work = turn.workload(Spread::ThirtyMinutes, 0);
    turn.alternate(&work, &[run_cancel_all::<Wheel>, run_cancel_all::<Heap>]);
}

fn run_pairs<E: Engine<Producer: Cancel>>(turn: &mut Turn<'_>, [standing, work]: &[Workload; 2]) {
    for advanced in [true, false] {
        let mut engine = E::new();
        let producer = engine.producer();
        schedule_all(&producer, 0, standing);
        let mut pass =
            || if advanced { pairs_advanced(&mut engine, 0, work) } else { pairs(&producer, 0, work) };
        let elapsed = (0..turn.repeats()).map(|_| pass()).sum();
        let what = pairs_name(standing.delays().len(), advanced);
        turn.record::<E>(&what, elapsed, turn.repeats() * turn.size);
    }
}

fn run_cancel_all<E: Engine<Producer: Cancel>>(turn: &mut Turn<'_>, work: &Workload) {
    let mut handles = Vec::with_capacity(turn.size);
    let mut elapsed = Duration::ZERO;
    for _ in 0..turn.repeats() {
        let engine = E::new();
        let producer = engine.producer();
        elapsed += schedule_keeping(&producer, 0, work, &mut handles);
        elapsed += cancel_all(&producer, &handles);
    }
    turn.record::<E>(CANCEL_ALL, elapsed, turn.repeats() * turn.size);
}

fn extend(turn: &mut Turn<'_>) {
    let work = turn.workload(Spread::ThirtyMinutes, 0);
    let once = later(&work, turn.seed(1));
    let mut order = (0..turn.size).collect::<Vec<_>>();
    fastrand::Rng::with_seed(turn.seed(2)).shuffle(&mut order);
    let twice = later(&once, turn.seed(3));
    turn.alternate(&([work, once, twice], order), &[run_extend::<Wheel>, run_extend::<Heap>]);
}

fn run_extend<E>(turn: &mut Turn<'_>, (work, order): &([Workload; 3], Vec<usize>))
where
    E: Engine<Producer: Cancel>,
{
    let mut handles = Vec::with_capacity(turn.size);
    let shuffled = order.iter().map(|&nth| work[2].delays()[nth]).collect::<Vec<_>>();
    let mut spent = [Duration::ZERO; 2];
    for repeat in 0..turn.repeats() {
        let mut engine = E::new();
        let producer = engine.producer();
        schedule_keeping(&producer, 0, &work[0], &mut handles);
        spent[0] += extend_all(&producer, 0, &mut handles, work[1].delays());
        let mut handles = order.iter().map(|&nth| handles[nth]).collect::<Vec<_>>();
        spent[1] += extend_all(&producer, 0, &mut handles, &shuffled);
        if turn.round == 0 && repeat == 0 {
            let mut fired = Checksum::default();
            drain(&mut engine, work[2].span(), &mut fired);
            fired.verify(&work[2].expected(0, 1), E::NAME);
        }
    }
    for (what, elapsed) in ["in the order scheduled", "in random order"].iter().zip(spent) {
        turn.record::<E>(what, elapsed, turn.repeats() * turn.size);
    }
}

/// The size is here the number of timers that stand in the way.
fn churn(turn: &mut Turn<'_>) {
    for standing in STANDING {
        turn.size = standing;
        let work = turn.workload(Spread::ThirtyMinutes, 0);
        turn.alternate(&work, &[run_churn::<Wheel>, run_churn::<Heap>]);
    }
}

fn run_churn<E: Engine<Producer: Cancel>>(turn: &mut Turn<'_>, standing: &Workload) {
    let mut engine = E::new();
    schedule_all(&engine.producer(), OUT_OF_THE_WAY, standing);
    let mut churn = Churn::new(engine.producer(), 0);
    let (operations, elapsed) =
        churn.run(OPERATIONS, |clock| engine.advance(clock, &mut Checksum::default()));
    turn.record::<E>("30 s ahead, cancelled 1,000 later", elapsed, operations);
}
