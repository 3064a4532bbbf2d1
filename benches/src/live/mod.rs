//! The suite `live`: `Timer` beside timers that run in real time, each run in a process of its own.

mod costs;
mod fire;
mod ledger;
mod own_thread;
mod switches;
mod timer;

use crate::args::label;
use crate::names::{LIVE_FINE, LIVE_FIRE, MILLION, late};
use crate::results::{At, Results};
use crate::samples::Samples;
use crate::suite::{Run, Section, Sizes, Suite, runs};
use crate::table::Requirement;
use costs::{AFTER_CANCELLED, AFTER_FIRED, idle, schedule, sleeps};
use fire::{FIRING, WAKES_A_TICK, coarse, fine, wakes};
use ledger::NEVER;
use own_thread::{Exact, Flat};
use timer::{Global, Live, OneShard, Shardwheel, ShardwheelSleeps, SixteenShards, Tokio, TokioAlternative};

const WAKES: &str = "wakes";
const SLEEP: &str = "sleep";
const SCHEDULE: &str = "schedule";
const IDLE: &str = "idle";

pub(crate) static SUITE: Suite = Suite {
    name: "live",
    title: "Live timers",
    method: "real time, a process for each run, the engines in turns",
    options: &[("timers", "100k,1M"), ("span", "10")],
    operations: 1,
    pinned: false,
    apart: true,
    backing: 0,
    sections: &[
        Section::new(LIVE_FIRE, "Fire: due evenly, placed from two threads, ticks of 1 ms", FIRE_RUNS)
            .with(Sizes::Many),
        Section::new(LIVE_FINE, "The same, ticks of 100 µs", runs!(fine: Shardwheel)).with(Sizes::Many),
        Section::new(WAKES, "The same from 16 threads, ticks of 1 ms, one timer a tick each", WAKES_RUNS)
            .with(Sizes::Fixed(&[160_000])),
        Section::new(SLEEP, "Sleeps of 30 minutes, all threads together", SLEEP_RUNS)
            .with(Sizes::Fixed(&[SLEEPS])),
        Section::new(SCHEDULE, "Closures, one thread, within 30 minutes", runs!(schedule: Shardwheel, Exact))
            .with(Sizes::Fixed(&[MILLION])),
        Section::new(IDLE, "A timer an hour away, watched for 5 s", IDLE_RUNS).with(Sizes::Fixed(&[1])),
    ],
};

/// Sleeps of each thread.
const SLEEPS: usize = 2 * MILLION;

const FIRE_RUNS: &[Run] =
    runs!(coarse: Shardwheel, ShardwheelSleeps, OneShard, Tokio, TokioAlternative, Exact, Flat);
const SLEEP_RUNS: &[Run] = runs!(sleeps: Shardwheel, Global, Tokio);
const WAKES_RUNS: &[Run] = runs!(wakes: Shardwheel, OneShard, SixteenShards, Tokio, TokioAlternative);
const IDLE_RUNS: &[Run] = runs!(idle: Shardwheel, Tokio, TokioAlternative, Exact);

const A_MILLION: At<'_> = (LIVE_FIRE, MILLION);
const CALLS: &[&str] = &[Shardwheel::NAME];
const AS_IT_COMES: &[&str] = &[Shardwheel::NAME, ShardwheelSleeps::NAME];
const SLEEPERS: &[&str] = &[Shardwheel::NAME, Global::NAME];
const ONE_SHARD: &[&str] = &[OneShard::NAME];

/// `shardwheel` as it comes: closures and sleeps; and with one shard.
const ENGINES: [&str; 3] = [Shardwheel::NAME, ShardwheelSleeps::NAME, OneShard::NAME];

/// A section and a number of timers; our engines, a peer, and how many times its cost ours may be.
type Share<'a> = (At<'a>, &'a [&'a str], &'a str, f64);

/// A peer that calls closures is compared with closures.
const FIRE_SHARES: [Share<'_>; 5] = [
    ((LIVE_FIRE, 100_000), AS_IT_COMES, Tokio::NAME, 1.1),
    (A_MILLION, AS_IT_COMES, Tokio::NAME, 0.75),
    (A_MILLION, CALLS, Exact::NAME, 0.2),
    (A_MILLION, ONE_SHARD, Tokio::NAME, 0.5),
    (A_MILLION, ONE_SHARD, Exact::NAME, 0.2),
];

/// What must never happen is judged by the worst round, everything else by medians.
pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let never = |section, what| {
        let text = format!("{section}: {what}, in the worst round");
        let readings = results.read((section, what), &ENGINES, Samples::greatest);
        Requirement::at_most(0.0, text, readings)
    };
    let at_most = |section, what: &str, engines: &[&str], limit| {
        let readings = results.read((section, what), engines, Samples::median);
        Requirement::at_most(limit, format!("{section}: {what}"), readings)
    };
    let mut all = [LIVE_FIRE, LIVE_FINE].map(|section| NEVER.map(|what| never(section, what))).concat();
    let limits = [(0.5, 1000.0), (0.99, 2000.0), (0.999, 4000.0)];
    all.extend(limits.map(|(share, micros)| at_most(LIVE_FIRE, &late(share), &ENGINES, micros)));
    all.push(at_most(LIVE_FINE, &late(0.5), &ENGINES, 150.0));
    all.push(at_most(WAKES, WAKES_A_TICK, &[SixteenShards::NAME], 2.0));
    all.extend(FIRE_SHARES.map(|row| share(results, FIRING, row)));
    all.push(share(results, &late(0.999), (A_MILLION, CALLS, Flat::NAME, 1.2)));
    for (what, limit) in costs::SLEEP.into_iter().zip([0.5, 0.25]) {
        all.push(share(results, what, ((SLEEP, SLEEPS), SLEEPERS, Tokio::NAME, limit)));
    }
    all.extend([AFTER_FIRED, AFTER_CANCELLED].map(|what| at_most(SCHEDULE, what, &ENGINES, 60.0)));
    all.extend([never(IDLE, costs::WAKES), at_most(IDLE, costs::SPENT, &ENGINES, 1000.0)]);
    all
}

/// Divides what `engines` take by what a peer takes, round by round.
fn share(results: &Results, what: &str, (at, engines, peer, limit): Share<'_>) -> Requirement {
    let ratio = |engine| results.ratio(at, [(what, engine), (what, peer)]);
    let readings = engines.iter().filter_map(|engine| Some(((*engine).to_owned(), ratio(engine)?)));
    let text = format!("{}: {what}, {} timers, over that of {peer}", at.0, label(at.1));
    Requirement::at_most(limit, text, readings.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    #[test]
    fn one_lost_timer_is_too_many() {
        let mut results = Results::default();
        assert!(requirements(&results).iter().all(|it| it.verdict == "not measured"));
        for lost in [0.0, 0.0, 1.0] {
            results.add((LIVE_FIRE, MILLION), Shardwheel::NAME, Outcome::of(NEVER[0], lost));
        }
        let judged = requirements(&results).into_iter().find(|it| it.requirement.contains(NEVER[0]));
        assert_eq!(judged.unwrap().verdict, "**NOT met**");
    }
}
