//! What is timed: passes over a whole workload.

use std::time::Duration;

use shardwheel_benches::names::{FIRE, SCHEDULE};
use shardwheel_benches::{
    Cancel, Checksum, Churn, Engine, Spread, THIRTY_MINUTES, Workload, drain, extend_all, later,
    schedule_all, schedule_keeping,
};

use crate::peer::{Outcome, Task};

/// How many timers a figure rests on at least; small sizes are repeated to get there.
const TIMERS: usize = if cfg!(test) { 1_000 } else { 200_000 };

/// How many pairs of schedule and cancel a churn makes, in each of its threads.
pub(crate) const PAIRS: usize = if cfg!(test) { 5_000 } else { 4_000_000 };

/// Standing timers are due only after this many ticks, so that none fires while a churn moves the clock.
pub(crate) const OUT_OF_THE_WAY: u64 = 60_000;

/// The columns that say what a timer costs in all; they are judged.
pub(crate) const BOTH: &str = "schedule + fire";
pub(crate) const PAIR: &str = "schedule + cancel";
pub(crate) const EXTEND: [&str; 2] = ["extend, in the order scheduled", "extend, in random order"];

impl Task {
    /// The seed of the `nth` workload of this round.
    pub(crate) fn seed(self, nth: u64) -> u64 {
        self.round as u64 * 100 + nth
    }

    fn repeats(self) -> usize {
        TIMERS.div_ceil(self.size)
    }
}

impl Outcome {
    /// What `fired`, and times for `operations` each, in nanoseconds for one.
    fn timed(fired: &Checksum, operations: usize, times: &[(&str, Duration)]) -> Self {
        let figure =
            |&(what, time): &(&str, Duration)| (what.to_owned(), time.as_nanos() as f64 / operations as f64);
        Self { checksum: fired.digest(), figures: times.iter().map(figure).collect() }
    }
}

/// Schedules all and fires all in one move of the clock, each time in a new engine.
pub(crate) fn fire<E: Engine>(task: Task, spread: Spread) -> Outcome {
    let work = Workload::new(spread, task.size, task.seed(0));
    let expected = work.expected(0, 1);
    let (mut schedule, mut fire) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..task.repeats() {
        let (mut engine, mut fired) = (E::new(), Checksum::default());
        schedule += schedule_all(&engine.producer(), 0, &work);
        fire += drain(&mut engine, work.span(), &mut fired);
        fired.verify(&expected, E::NAME);
    }
    let times = [(SCHEDULE, schedule), (FIRE, fire), (BOTH, schedule + fire)];
    Outcome::timed(&expected, task.repeats() * task.size, &times)
}

/// Schedules 30 s ahead and cancels the timer of a thousand earlier; the size is the number of standing timers.
pub(crate) fn churn<E: Engine<Producer: Cancel>>(task: Task) -> Outcome {
    let standing = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let mut engine = E::new();
    schedule_all(&engine.producer(), OUT_OF_THE_WAY, &standing);
    let mut churn = Churn::new(engine.producer(), 0);
    let (pairs, elapsed) = churn.run(PAIRS, |clock| engine.advance(clock, &mut Checksum::default()));
    let mut fired = Checksum::default();
    drain(&mut engine, OUT_OF_THE_WAY + THIRTY_MINUTES, &mut fired);
    Outcome::timed(&fired, pairs, &[(PAIR, elapsed)])
}

/// Moves every timer to a later deadline, in the order in which they were scheduled; then again in random order.
pub(crate) fn extend<E: Engine<Producer: Cancel>>(task: Task) -> Outcome {
    let work = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let once = later(&work, task.seed(1));
    let twice = later(&once, task.seed(2));
    let mut order = (0..task.size).collect::<Vec<_>>();
    fastrand::Rng::with_seed(task.seed(3)).shuffle(&mut order);
    let shuffled = order.iter().map(|&nth| twice.delays()[nth]).collect::<Vec<_>>();
    let (mut engine, mut handles) = (E::new(), Vec::new());
    let producer = engine.producer();
    schedule_keeping(&producer, 0, &work, &mut handles);
    let in_order = extend_all(&producer, 0, &mut handles, once.delays());
    let mut handles = order.iter().map(|&nth| handles[nth]).collect::<Vec<_>>();
    let at_random = extend_all(&producer, 0, &mut handles, &shuffled);
    let mut fired = Checksum::default();
    drain(&mut engine, twice.span(), &mut fired);
    fired.verify(&twice.expected(0, 1), E::NAME);
    Outcome::timed(&fired, task.size, &[(EXTEND[0], in_order), (EXTEND[1], at_random)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PEERS;
    use crate::sections::SECTIONS;
    use shardwheel_benches::names::SHARED;

    fn columns(outcome: &Outcome) -> Vec<String> {
        outcome.figures.iter().map(|(column, _)| column.clone()).collect()
    }

    #[test]
    fn every_engine_fires_the_same_in_every_section() {
        for section in &SECTIONS {
            let task = Task { size: 700, round: 3 };
            let outcome = |peer| (section.measure)(peer).map(|measure| measure(task));
            let expected = outcome(&PEERS[0]).expect("shardwheel takes part in all");
            for peer in &PEERS[1..] {
                let Some(outcome) = outcome(peer) else { continue };
                assert_eq!(outcome.checksum, expected.checksum, "{}, {}", section.name, peer.engine);
                let mut columns = columns(&expected);
                columns.retain(|column| peer.locked || column != SHARED);
                assert_eq!(self::columns(&outcome), columns, "{}, {}", section.name, peer.engine);
            }
        }
    }

    #[test]
    fn other_rounds_have_other_work() {
        let checksum = |round| (PEERS[0].random)(Task { size: 100, round }).checksum;
        assert_eq!(checksum(0), checksum(0));
        assert_ne!(checksum(0), checksum(1));
    }
}
