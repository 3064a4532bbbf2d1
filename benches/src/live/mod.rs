//! The suite `live`: `Timer` beside timers that run in real time, each run in a process of its own.

mod fire;
mod heap_thread;
mod idle;
mod ledger;
mod schedule;
mod shardwheel;
mod sleep;
mod timer;
mod tokio;

use crate::names::{LIVE_FINE, LIVE_FIRE, P50, P99, P999};
use crate::results::Results;
use crate::samples::Samples;
use crate::suite::{Section, Sizes, Suite, runs};
use crate::table::{Readings, Requirement};
use fire::{FIRING, NEVER, coarse, fine};
use heap_thread::{Exact, Ticked};
use idle::idle;
use schedule::{AFTER_CANCELLED, AFTER_FIRED, schedule_alone, schedule_and_cancel};
use shardwheel::{OneShard, Shardwheel, ShardwheelSleeps};
use sleep::sleeps;
use timer::Live;
use tokio::Tokio;

const SLEEP: &str = "sleep";
const SCHEDULE: &str = "schedule";
const IDLE: &str = "idle";

pub(crate) static SUITE: Suite = Suite {
    name: "live",
    title: "Live timers",
    method: "real time, a process for each run, the engines in turns",
    operations: 1,
    pinned: false,
    apart: true,
    backing: 0,
    note: "",
    sections: &[
        Section::new(
            LIVE_FIRE,
            "Fire: due evenly, placed from two threads, ticks of 1 ms",
            runs!(coarse: Shardwheel, ShardwheelSleeps, OneShard, Tokio, Exact, Ticked),
        )
        .with(Sizes::Unnamed),
        Section::new(LIVE_FINE, "The same, ticks of 100 µs", runs!(fine: Shardwheel)).with(Sizes::Unnamed),
        Section::new(SLEEP, "Sleeps of 30 minutes, all threads together", runs!(sleeps: Shardwheel, Tokio))
            .with(Sizes::Unnamed),
        Section::new(
            SCHEDULE,
            "Closures, one thread, a million within 30 minutes",
            runs!(schedule_and_cancel: Shardwheel; schedule_alone: Exact),
        )
        .with(Sizes::Unnamed),
        Section::new(IDLE, "One timer an hour away, watched for 5 s", runs!(idle: Shardwheel, Tokio, Exact))
            .with(Sizes::Unnamed),
    ],
};

/// `shardwheel` as it comes: closures and sleeps; and with one shard.
const OURS: [&str; 3] = [Shardwheel::NAME, ShardwheelSleeps::NAME, OneShard::NAME];

/// The requirements, judged. What must never happen is judged by the worst round, everything else
/// by medians.
pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let never = |section, what| {
        let text = format!("{section}: {what}, in the worst round");
        let readings = readings(results, section, what, &OURS, Samples::greatest);
        Requirement::at_most(0.0, text, readings)
    };
    let at_most = |section, what, limit| {
        let readings = readings(results, section, what, &OURS, Samples::median);
        Requirement::at_most(limit, format!("{section}: {what}"), readings)
    };
    let mut all = [LIVE_FIRE, LIVE_FINE].map(|section| NEVER.map(|what| never(section, what))).concat();
    all.extend([(P50, 1000.0), (P99, 2000.0), (P999, 4000.0)].map(|(what, us)| at_most(LIVE_FIRE, what, us)));
    all.push(at_most(LIVE_FINE, P50, 150.0));
    // A peer that calls closures is compared with closures.
    let (tokio, heaps) = ((Tokio::NAME, 0.5), [Exact::NAME, Ticked::NAME].map(|heap| (heap, 0.2)));
    for (engines, closures) in [(&OURS[..2], &OURS[..1]), (&OURS[2..], &OURS[2..])] {
        all.push(share(results, LIVE_FIRE, FIRING, engines, tokio));
        all.extend(heaps.map(|heap| share(results, LIVE_FIRE, FIRING, closures, heap)));
    }
    all.push(share(results, SLEEP, sleep::ONE, &OURS, (Tokio::NAME, 0.5)));
    all.push(share(results, SLEEP, sleep::TWO, &OURS, (Tokio::NAME, 0.25)));
    all.extend([AFTER_FIRED, AFTER_CANCELLED].map(|what| at_most(SCHEDULE, what, 60.0)));
    all.extend([never(IDLE, idle::WAKES), at_most(IDLE, idle::SPENT, 1000.0)]);
    all
}

/// Reads a figure of each of `engines` that was measured.
fn readings(
    results: &Results,
    section: &str,
    what: &str,
    engines: &[&str],
    read: impl Fn(&Samples) -> f64,
) -> Readings {
    let read = |engine: &&str| Some(((*engine).to_owned(), read(results.get(section, None, what, engine)?)));
    engines.iter().filter_map(read).collect()
}

/// Divides what `engines` take by what a peer takes, round by round.
fn share(
    results: &Results,
    section: &str,
    what: &str,
    engines: &[&str],
    (peer, limit): (&str, f64),
) -> Requirement {
    let over = |peer: &Samples| readings(results, section, what, engines, |ours| ours.over(peer).median());
    let readings = results.get(section, None, what, peer).map(over).unwrap_or_default();
    let shards = if engines == &OURS[2..] { ", with one shard" } else { "" };
    Requirement::at_most(limit, format!("{section}: {what}, over that of {peer}{shards}"), readings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Outcome, Task};

    fn add(results: &mut Results, section: &str, engine: &str, what: &str, figure: f64) {
        results.add(section, None, engine, Outcome::of(what, figure));
    }

    fn verdicts(results: &Results, part: &str) -> Vec<String> {
        let found = requirements(results).into_iter().filter(|it| it.requirement.contains(part));
        found.map(|it| it.verdict).collect()
    }

    #[test]
    fn every_engine_takes_part_in_what_it_can_do() {
        // The module `fire` has tests of its own, and these sections take seconds.
        for section in SUITE.sections.iter().filter(|it| ![LIVE_FIRE, LIVE_FINE].contains(&it.name)) {
            for run in section.runs {
                let figures = (run.measure)(&Task::small(1)).figures;
                assert!(!figures.is_empty() && figures.iter().all(|(_, figure)| figure.is_finite()));
            }
        }
    }

    #[test]
    fn one_lost_timer_is_too_many() {
        let mut results = Results::default();
        assert!(requirements(&results).iter().all(|it| it.verdict == "not measured"));
        for lost in [0.0, 0.0, 1.0] {
            add(&mut results, LIVE_FIRE, Shardwheel::NAME, NEVER[0], lost);
        }
        assert_eq!(verdicts(&results, "fire: timers lost"), ["**NOT met**"]);
    }

    #[test]
    fn one_shard_has_verdicts_of_its_own() {
        let mut results = Results::default();
        for (engine, millis) in [(Shardwheel::NAME, 70.0), (OneShard::NAME, 40.0), (Tokio::NAME, 100.0)] {
            add(&mut results, LIVE_FIRE, engine, FIRING, millis);
        }
        assert_eq!(verdicts(&results, "over that of tokio")[..2], ["**NOT met**", "met"]);
    }
}
