//! The suite `live`: `Timer` beside timers that run in real time, each run in a process of its own.

mod costs;
mod fire;
mod heap_thread;
mod ledger;
mod timer;

use crate::names::{LIVE_FINE, LIVE_FIRE, late};
use crate::results::Results;
use crate::samples::Samples;
use crate::suite::{Run, Section, Sizes, Suite, runs};
use crate::table::{Readings, Requirement};
use costs::{AFTER_CANCELLED, AFTER_FIRED, idle, schedule_alone, schedule_and_cancel, sleeps};
use fire::{FIRING, coarse, fine};
use heap_thread::{Exact, Ticked};
use ledger::NEVER;
use timer::{Live, OneShard, Shardwheel, ShardwheelSleeps, Tokio};

const SLEEP: &str = "sleep";
const SCHEDULE: &str = "schedule";
const IDLE: &str = "idle";

pub(crate) static SUITE: Suite = Suite {
    name: "live",
    title: "Live timers",
    method: "real time, a process for each run, the engines in turns",
    options: &[("timers", "1M"), ("span", "10")],
    operations: 1,
    pinned: false,
    apart: true,
    backing: 0,
    sections: &[
        unnamed(LIVE_FIRE, "Fire: due evenly, placed from two threads, ticks of 1 ms", FIRE_RUNS),
        unnamed(LIVE_FINE, "The same, ticks of 100 µs", runs!(fine: Shardwheel)),
        unnamed(SLEEP, "Sleeps of 30 minutes, all threads together", runs!(sleeps: Shardwheel, Tokio)),
        unnamed(SCHEDULE, "Closures, one thread, a million within 30 minutes", SCHEDULE_RUNS),
        unnamed(IDLE, "One timer an hour away, watched for 5 s", runs!(idle: Shardwheel, Tokio, Exact)),
    ],
};

const FIRE_RUNS: &[Run] = runs!(coarse: Shardwheel, ShardwheelSleeps, OneShard, Tokio, Exact, Ticked);
const SCHEDULE_RUNS: &[Run] = runs!(schedule_and_cancel: Shardwheel; schedule_alone: Exact);

const fn unnamed(name: &'static str, title: &'static str, runs: &'static [Run]) -> Section {
    Section::new(name, title, runs).with(Sizes::Unnamed)
}

/// `shardwheel` as it comes: closures and sleeps; and with one shard.
const ENGINES: [&str; 3] = [Shardwheel::NAME, ShardwheelSleeps::NAME, OneShard::NAME];

/// The requirements, judged. What must never happen is judged by the worst round, everything else
/// by medians.
pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let never = |section, what| {
        let text = format!("{section}: {what}, in the worst round");
        let readings = read(results, (section, what), &ENGINES, Samples::greatest);
        Requirement::at_most(0.0, text, readings)
    };
    let at_most = |section, what: &str, limit| {
        let readings = read(results, (section, what), &ENGINES, Samples::median);
        Requirement::at_most(limit, format!("{section}: {what}"), readings)
    };
    let mut all = [LIVE_FIRE, LIVE_FINE].map(|section| NEVER.map(|what| never(section, what))).concat();
    let limits = [(0.5, 1000.0), (0.99, 2000.0), (0.999, 4000.0)];
    all.extend(limits.map(|(share, micros)| at_most(LIVE_FIRE, &late(share), micros)));
    all.push(at_most(LIVE_FINE, &late(0.5), 150.0));
    // A peer that calls closures is compared with closures.
    let (tokio, heaps) = ((Tokio::NAME, 0.5), [Exact::NAME, Ticked::NAME].map(|heap| (heap, 0.2)));
    for (engines, closures) in [(&ENGINES[..2], &ENGINES[..1]), (&ENGINES[2..], &ENGINES[2..])] {
        all.push(share(results, (LIVE_FIRE, FIRING), engines, tokio));
        all.extend(heaps.map(|heap| share(results, (LIVE_FIRE, FIRING), closures, heap)));
    }
    let sleeps = costs::SLEEP.into_iter().zip([0.5, 0.25]);
    all.extend(sleeps.map(|(what, limit)| share(results, (SLEEP, what), &ENGINES, (Tokio::NAME, limit))));
    all.extend([AFTER_FIRED, AFTER_CANCELLED].map(|what| at_most(SCHEDULE, what, 60.0)));
    all.extend([never(IDLE, costs::WAKES), at_most(IDLE, costs::SPENT, 1000.0)]);
    all
}

/// Reads a figure of each of `engines` that was measured.
fn read(
    results: &Results,
    (section, what): (&str, &str),
    engines: &[&str],
    of: impl Fn(&Samples) -> f64,
) -> Readings {
    let figure = |engine: &str| Some(of(results.get((section, None), what, engine)?));
    engines.iter().filter_map(|engine| Some(((*engine).to_owned(), figure(engine)?))).collect()
}

/// Divides what `engines` take by what a peer takes, round by round.
fn share(
    results: &Results,
    (section, what): (&str, &str),
    engines: &[&str],
    (peer, limit): (&str, f64),
) -> Requirement {
    let over = |peer: &Samples| read(results, (section, what), engines, |ours| ours.over(peer).median());
    let readings = results.get((section, None), what, peer).map(over).unwrap_or_default();
    let shards = if engines == &ENGINES[2..] { ", with one shard" } else { "" };
    Requirement::at_most(limit, format!("{section}: {what}, over that of {peer}{shards}"), readings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    fn add(results: &mut Results, section: &str, engine: &str, what: &str, figure: f64) {
        results.add((section, None), engine, Outcome::of(what, figure));
    }

    fn verdicts(results: &Results, part: &str) -> Vec<String> {
        let found = requirements(results).into_iter().filter(|it| it.requirement.contains(part));
        found.map(|it| it.verdict).collect()
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
}
