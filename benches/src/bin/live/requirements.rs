//! What the figures have to show.
//!
//! What must not happen at all (a timer lost or early, a thread that wakes for nothing) is judged by the
//! worst round, everything else by medians.

use shardwheel_benches::names::{P50, P99, P999};
use shardwheel_benches::{Limit, Requirement, Samples};

use crate::engine::Live;
use crate::heap_thread::{Exact, Ticked};
use crate::results::Results;
use crate::sections::{FINE, FIRE, IDLE, SCHEDULE, SLEEP, Section};
use crate::tokio_time::TokioTime;
use crate::wheel::{OneShard, Wheel, WheelSleeps};
use crate::{fire, idle, schedule, sleeps};

/// Microseconds late, at ticks of a millisecond.
const LATE: [(&str, f64); 3] = [(P50, 1000.0), (P99, 2000.0), (P999, 4000.0)];
/// The same, at ticks of 100 µs.
const LATE_FINE: f64 = 150.0;
const FIRING_OF_TOKIO: f64 = 0.5;
const FIRING_OF_HEAP: f64 = 0.2;
const SLEEP_ONE_OF_TOKIO: f64 = 0.5;
const SLEEP_TWO_OF_TOKIO: f64 = 0.25;
const SCHEDULE_NS: f64 = 60.0;
const IDLE_MICROS: f64 = 1000.0;

/// The engines of `shardwheel`, as it comes: closures and sleeps.
const BOTH: [&str; 2] = [Wheel::NAME, WheelSleeps::NAME];
/// Those, and the one with one shard.
const ALL: [&str; 3] = [Wheel::NAME, WheelSleeps::NAME, OneShard::NAME];

/// Every requirement, with what was measured for it.
pub(crate) fn all(results: &Results) -> Vec<Requirement> {
    let never = |section, what| worst(results, section, what);
    let medians = |section, what, limit| at_most(results, section, what, limit);
    let mut all = Vec::new();
    for section in [&FIRE, &FINE] {
        all.extend([fire::LOST, fire::AGAIN, fire::EARLY].map(|what| never(section, what)));
    }
    all.extend(LATE.map(|(what, limit)| medians(&FIRE, what, limit)));
    all.push(medians(&FINE, P50, LATE_FINE));
    all.push(share_of::<TokioTime>(results, &FIRE, fire::FIRING, FIRING_OF_TOKIO));
    all.push(share_of::<Exact>(results, &FIRE, fire::FIRING, FIRING_OF_HEAP));
    all.push(share_of::<Ticked>(results, &FIRE, fire::FIRING, FIRING_OF_HEAP));
    all.push(one_shard::<TokioTime>(results, FIRING_OF_TOKIO));
    all.push(one_shard::<Exact>(results, FIRING_OF_HEAP));
    all.push(one_shard::<Ticked>(results, FIRING_OF_HEAP));
    all.push(share_of::<TokioTime>(results, &SLEEP, sleeps::ONE, SLEEP_ONE_OF_TOKIO));
    all.push(share_of::<TokioTime>(results, &SLEEP, sleeps::TWO, SLEEP_TWO_OF_TOKIO));
    all.push(medians(&SCHEDULE, schedule::AFTER_FIRED, SCHEDULE_NS));
    all.push(medians(&SCHEDULE, schedule::AFTER_CANCELLED, SCHEDULE_NS));
    all.push(never(&IDLE, idle::WAKES));
    all.push(medians(&IDLE, idle::SPENT, IDLE_MICROS));
    all
}

fn name(section: &Section, what: &str) -> String {
    format!("{}: {what}", section.name)
}

/// A reading for each of `engines` that was measured.
fn readings(
    results: &Results,
    engines: &[&str],
    section: &Section,
    what: &str,
    read: impl Fn(&Samples) -> f64,
) -> Vec<(String, f64)> {
    let read = |engine: &&str| Some(((*engine).to_owned(), read(results.get(section, what, engine)?)));
    engines.iter().filter_map(read).collect()
}

/// Must not happen in any round.
fn worst(results: &Results, section: &Section, what: &str) -> Requirement {
    let greatest = |samples: &Samples| samples.figures().iter().copied().fold(0.0, f64::max);
    let text = format!("{}, in the worst round", name(section, what));
    Requirement {
        text,
        limit: Limit::AtMost(0.0),
        readings: readings(results, &ALL, section, what, greatest),
    }
}

fn at_most(results: &Results, section: &Section, what: &str, limit: f64) -> Requirement {
    let readings = readings(results, &ALL, section, what, Samples::median);
    Requirement { text: name(section, what), limit: Limit::AtMost(limit), readings }
}

/// Over what a peer took, round by round. A peer of closures is compared with closures.
fn share_of<P: Live>(results: &Results, section: &Section, what: &str, limit: f64) -> Requirement {
    let engines = if P::NAME == TokioTime::NAME { &BOTH[..] } else { &BOTH[..1] };
    share::<P>(results, engines, section, what, limit)
}

/// The same for firing with one shard, whose thread alone wakes for each tick.
fn one_shard<P: Live>(results: &Results, limit: f64) -> Requirement {
    let share = share::<P>(results, &[OneShard::NAME], &FIRE, fire::FIRING, limit);
    Requirement { text: format!("{}, with one shard", share.text), ..share }
}

fn share<P: Live>(
    results: &Results,
    engines: &[&str],
    section: &Section,
    what: &str,
    limit: f64,
) -> Requirement {
    let peer = results.get(section, what, P::NAME);
    let share = |peer: &Samples| readings(results, engines, section, what, |wheel| wheel.over(peer).median());
    let text = format!("{}, over that of {}", name(section, what), P::NAME);
    Requirement { text, limit: Limit::AtMost(limit), readings: peer.map(share).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(results: &Results, part: &str) -> &'static str {
        let found = all(results).into_iter().filter(|requirement| requirement.text.contains(part));
        let [found] = <[Requirement; 1]>::try_from(found.collect::<Vec<_>>()).ok().expect(part);
        found.verdict()
    }

    #[test]
    fn nothing_measured_is_not_met_nor_missed() {
        assert!(all(&Results::default()).iter().all(|requirement| requirement.verdict() == "not measured"));
    }

    #[test]
    fn one_lost_timer_is_one_too_many() {
        let mut results = Results::default();
        for lost in [0.0, 0.0, 1.0] {
            results.add(
                &FIRE,
                Wheel::NAME,
                vec![(fire::LOST.to_owned(), lost), (fire::EARLY.to_owned(), 0.0)],
            );
        }
        assert_eq!(verdict(&results, "fire: timers lost"), "**NOT met**");
        assert_eq!(verdict(&results, "fire: timers early"), "met");
    }

    #[test]
    fn one_shard_is_judged_by_itself() {
        let mut results = Results::default();
        for (engine, millis) in [(Wheel::NAME, 70.0), (OneShard::NAME, 40.0), (TokioTime::NAME, 100.0)] {
            results.add(&FIRE, engine, vec![(fire::FIRING.to_owned(), millis)]);
        }
        let verdicts = all(&results).into_iter().filter(|requirement| requirement.text.contains("of tokio"));
        let verdicts = verdicts.filter(|requirement| requirement.text.contains(fire::FIRING));
        assert!(verdicts.map(|requirement| requirement.verdict()).eq(["**NOT met**", "met"]));
    }

    #[test]
    fn shares_are_taken_within_a_round() {
        let mut results = Results::default();
        for (wheel, tokio) in [(10.0, 20.0), (30.0, 61.0), (50.0, 80.0)] {
            results.add(&SLEEP, Wheel::NAME, vec![(sleeps::ONE.to_owned(), wheel)]);
            results.add(&SLEEP, TokioTime::NAME, vec![(sleeps::ONE.to_owned(), tokio)]);
        }
        assert_eq!(verdict(&results, sleeps::ONE), "met");
    }
}
