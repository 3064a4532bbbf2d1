//! Resident memory, measured in child processes of this program.
//!
//! A child does one thing, reads its own memory from `/proc/self/status` and prints it: what a process held
//! earlier cannot blur the figure. Only Linux has that file; elsewhere the section stays empty.

use std::process::ExitCode;

use shardwheel_benches::{
    Cancel, Checksum, Engine, Heap, PAIRS_PER_ADVANCE, Producer, THIRTY_MINUTES, Wheel, ask_child, peak_kib,
    resident_kib,
};

use crate::args::Args;
use crate::results::Results;

/// What `--only` calls this section.
pub(crate) const NAME: &str = "memory";

/// How many rounds of schedule and cancel the growth is measured over.
pub(crate) const PAIRS: usize = 20_000_000;

pub(crate) const BYTES: &str = "bytes a timer, beyond the payload";
pub(crate) const LEFT: &str = "left of the peak after all have fired, a second later";

const TITLE: &str = "Memory (resident, one measurement each)";
const AT_ONCE: &str = "left of the peak after all have fired, at once";
const LATER: &str = "left of the peak after all have fired, ten seconds later";
const PEAK: &str = "peak, MiB";

/// Below this many timers the pages of the program itself are too large a part of its memory.
const WORTH_MEASURING: usize = 1_000_000;

/// Ticks of a millisecond after which memory is looked at again, the advancer being called at each.
const ONE_SECOND: u64 = 1000;
const TEN_SECONDS: u64 = 10_000;

const KIB: f64 = 1024.0;
const PAYLOAD_BYTES: f64 = 8.0;

/// Names the growth over [`PAIRS`] rounds of schedule and cancel.
pub(crate) fn growth(advanced: bool) -> String {
    let advancer = if advanced { "called now and then" } else { "not called" };
    format!("growth over rounds of schedule + cancel, MiB, advancer {advancer}")
}

/// What a child process measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// `size` timers standing, then all of them fired.
    Burst { heap: bool, size: usize },
    /// [`PAIRS`] rounds of schedule and cancel on a shard that holds nothing else.
    Pairs { advanced: bool },
}

impl Probe {
    fn words(self) -> Vec<String> {
        let (name, flag, number) = match self {
            Self::Burst { heap, size } => ("burst", heap, size),
            Self::Pairs { advanced } => ("pairs", advanced, PAIRS),
        };
        vec![name.to_owned(), flag.to_string(), number.to_string()]
    }

    /// Reads what [`Probe::words`] wrote.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let [name, flag, number] = words else { return None };
        let flag = flag.parse().ok()?;
        match name.as_str() {
            "burst" => Some(Self::Burst { heap: flag, size: number.parse().ok()? }),
            "pairs" => Some(Self::Pairs { advanced: flag }),
            _ => None,
        }
    }
}

/// Measures in this process, a child, and prints the numbers in KiB.
pub(crate) fn run_child(probe: &Probe) -> ExitCode {
    let measured = match *probe {
        Probe::Burst { heap: false, size } => burst::<Wheel>(size),
        Probe::Burst { heap: true, size } => burst::<Heap>(size),
        Probe::Pairs { advanced } => churn::<Wheel>(advanced),
    };
    let Some(numbers) = measured else {
        eprintln!("/proc/self/status does not say how much memory this process has");
        return ExitCode::FAILURE;
    };
    println!("{}", numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    ExitCode::SUCCESS
}

/// Resident KiB: at the start, with all timers standing, the peak, after all have fired, and after the clock
/// has gone on for a second, then for ten.
fn burst<E: Engine>(size: usize) -> Option<Vec<u64>> {
    let start = resident_kib()?;
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let mut rng = fastrand::Rng::with_seed(1);
    for payload in 0..size as u64 {
        producer.schedule(rng.u64(1..=THIRTY_MINUTES), payload);
    }
    let standing = resident_kib()?;
    engine.advance(THIRTY_MINUTES, &mut fired);
    assert_eq!(fired.count(), size as u64, "{} lost timers", E::NAME);
    let mut numbers = vec![start, standing, peak_kib()?, resident_kib()?];
    for ticks in [1..=ONE_SECOND, ONE_SECOND + 1..=TEN_SECONDS] {
        ticks.for_each(|tick| engine.advance(THIRTY_MINUTES + tick, &mut fired));
        numbers.push(resident_kib()?);
    }
    Some(numbers)
}

/// Resident KiB at the start, and the peak over all rounds.
fn churn<E: Engine<Producer: Cancel>>(advanced: bool) -> Option<Vec<u64>> {
    let start = resident_kib()?;
    let mut engine = E::new();
    let producer = engine.producer();
    for _ in 0..PAIRS.div_ceil(PAIRS_PER_ADVANCE) {
        for payload in 0..PAIRS_PER_ADVANCE as u64 {
            let handle = producer.schedule(THIRTY_MINUTES, payload);
            assert_eq!(producer.cancel(handle), Some(payload), "a pending timer was not cancelled");
        }
        if advanced {
            engine.advance(0, &mut Checksum::default());
        }
    }
    Some(vec![start, peak_kib()?])
}

/// Runs every probe once and keeps what they say.
pub(crate) fn measure(args: &Args, results: &mut Results) {
    for &size in args.sizes.iter().filter(|size| **size >= WORTH_MEASURING) {
        keep_burst::<Wheel>(Probe::Burst { heap: false, size }, size, results);
        keep_burst::<Heap>(Probe::Burst { heap: true, size }, size, results);
    }
    for advanced in [true, false] {
        if let Some([start, peak]) = ask(Probe::Pairs { advanced }) {
            results.add::<Wheel>(TITLE, &growth(advanced), PAIRS, (peak - start) / KIB);
        }
    }
}

fn keep_burst<E: Engine>(probe: Probe, size: usize, results: &mut Results) {
    let Some([start, standing, peak, left @ ..]) = ask::<6>(probe) else { return };
    let bytes = (standing - start) * KIB / size as f64 - PAYLOAD_BYTES;
    let [at_once, second, ten_seconds] = left.map(|left| left / peak);
    for (what, figure) in
        [(BYTES, bytes), (PEAK, peak / KIB), (AT_ONCE, at_once), (LEFT, second), (LATER, ten_seconds)]
    {
        results.add::<E>(TITLE, what, size, figure);
    }
}

/// Has a child process measure; says why on the terminal and returns `None` where it could not.
fn ask<const N: usize>(probe: Probe) -> Option<[f64; N]> {
    eprintln!("memory: {probe:?}");
    let numbers = match ask_child(probe.words()) {
        Ok(line) => numbers(&line),
        Err(error) => {
            eprintln!("{error}");
            None
        }
    };
    numbers?.try_into().ok()
}

fn numbers(text: &[u8]) -> Option<Vec<f64>> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_what_its_parent_writes() {
        for probe in [Probe::Burst { heap: true, size: 5 }, Probe::Pairs { advanced: false }] {
            assert_eq!(Probe::parse(&probe.words()), Some(probe));
        }
    }

    #[test]
    fn a_burst_of_few_is_measured_where_the_system_says() {
        let measured = burst::<Wheel>(1000);
        assert_eq!(measured.map(|numbers| numbers.len()), resident_kib().map(|_| 6));
    }
}
