//! One timer, an hour away: what the engine does meanwhile, which should be nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use cpu_time::ProcessTime;

use super::ledger::Ledger;
use super::timer::{Live, MILLISECOND};
use crate::machine::field;
use crate::suite::{Outcome, Task};

pub(super) const WAKES: &str = "times that one of its threads ran";
pub(super) const SPENT: &str = "processor time of the process, µs";

const HOUR: Duration = Duration::from_secs(3600);

/// How long the engine is watched, and how long its threads have to settle before that.
const WATCHED: Duration = if cfg!(test) { MILLISECOND } else { Duration::from_secs(5) };
const SETTLING: Duration = if cfg!(test) { MILLISECOND } else { Duration::from_secs(1) };

/// How often other threads than this one ran, and the processor time of all, this one's included.
pub(super) fn idle<E: Live>(_: &Task) -> Outcome {
    let engine = E::start(MILLISECOND);
    let _entered = engine.enter();
    let kept = engine.place(Instant::now() + HOUR, Ledger::leak(1).note(0));
    thread::sleep(SETTLING);
    let (before, start) = (Switches::of_other_threads(), ProcessTime::now());
    thread::sleep(WATCHED);
    let mut outcome = Outcome::default();
    outcome.figure(SPENT, start.elapsed().as_secs_f64() * 1e6);
    let wakes = before.zip(Switches::of_other_threads()).map(|(before, after)| after.since(&before));
    outcome.figure(WAKES, wakes.map(|wakes| wakes as f64));
    drop(kept);
    outcome
}

/// The context switches of each thread, voluntary or not, by its number: a thread that sleeps has
/// none. On Linux only.
struct Switches(BTreeMap<String, u64>);

impl Switches {
    fn of_other_threads() -> Option<Self> {
        let me = fs::read_link("/proc/thread-self").ok()?;
        let threads = fs::read_dir("/proc/self/task").ok()?.flatten().map(|thread| thread.path());
        let others = threads.filter(|thread| thread.file_name() != me.file_name());
        // A thread may end before its file is read.
        let count = |path: PathBuf| {
            Some((path.display().to_string(), count(&fs::read_to_string(path.join("status")).ok()?)?))
        };
        Some(Self(others.filter_map(count).collect()))
    }

    /// Returns how often threads ran since `before`. A thread that started or ended since then ran
    /// at least once.
    fn since(&self, before: &Self) -> u64 {
        let ended = before.0.keys().filter(|thread| !self.0.contains_key(*thread)).count() as u64;
        let ran = |(thread, now): (_, &u64)| before.0.get(thread).map_or(1.max(*now), |was| now - was);
        ended + self.0.iter().map(ran).sum::<u64>()
    }
}

fn count(status: &str) -> Option<u64> {
    let of = |name| field(status, name)?.parse::<u64>().ok();
    Some(of("voluntary_ctxt_switches")? + of("nonvoluntary_ctxt_switches")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_start_or_end_have_run() {
        let status = "Name:\tlive\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!((count(status), count("Name:\tlive\n")), (Some(9), None));
        let switches = |threads: &[(&str, u64)]| {
            Switches(threads.iter().map(|&(thread, count)| (thread.to_owned(), count)).collect())
        };
        let before = switches(&[("1", 10), ("2", 5), ("3", 1)]);
        assert_eq!(before.since(&before), 0);
        assert_eq!(switches(&[("1", 12), ("2", 5), ("4", 0)]).since(&before), 2 + 1 + 1);
    }
}
