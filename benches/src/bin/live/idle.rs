//! One timer, an hour away: what the engine does meanwhile, which should be nothing.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use crate::engine::Live;
use crate::ledger::Ledger;
use crate::sections::{Figures, MILLISECOND};
use crate::switches::Switches;

pub(crate) const WAKES: &str = "times that one of its threads ran";
pub(crate) const SPENT: &str = "processor time of the process, µs";

const HOUR: Duration = Duration::from_secs(3600);

/// How long it is watched, and how long its threads have before that to come to rest.
const WATCHED: Duration = Duration::from_secs(5);
const SETTLING: Duration = Duration::from_secs(1);

/// Times that a thread other than this one was switched to, and the processor time of all, this one's included.
pub(crate) fn figures<E: Live>() -> Figures {
    watch::<E>(SETTLING, WATCHED)
}

fn watch<E: Live>(settling: Duration, watched: Duration) -> Figures {
    let engine = E::start(MILLISECOND);
    let _entered = engine.enter();
    let kept = engine.place(Instant::now() + HOUR, Ledger::leak(1).note(0));
    thread::sleep(settling);
    let before = Switches::of_other_threads();
    let start = ProcessTime::now();
    thread::sleep(watched);
    let spent = start.elapsed();
    let wakes = before.zip(Switches::of_other_threads()).map(|(before, after)| after.since(&before));
    drop(kept);
    let mut figures = vec![(SPENT.to_owned(), spent.as_secs_f64() * 1e6)];
    figures.extend(wakes.map(|wakes| (WAKES.to_owned(), wakes as f64)));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::async_io::AsyncIo;
    use crate::futures_timer::FuturesTimer;
    use crate::heap_thread::Exact;
    use crate::pingora::Pingora;
    #[cfg(tokio_unstable)]
    use crate::tokio_time::TokioAlternative;
    use crate::tokio_time::TokioTime;
    use crate::wheel::Wheel;

    /// Other tests run in the same process, so the numbers say nothing here.
    fn can_be_watched<E: Live>() {
        let figures = watch::<E>(Duration::ZERO, MILLISECOND);
        assert_eq!(figures.len(), if Switches::of_other_threads().is_some() { 2 } else { 1 }, "{}", E::NAME);
    }

    #[test]
    fn every_engine_can_be_watched() {
        can_be_watched::<Wheel>();
        can_be_watched::<TokioTime>();
        can_be_watched::<Exact>();
        #[cfg(tokio_unstable)]
        can_be_watched::<TokioAlternative>();
        can_be_watched::<Pingora>();
        can_be_watched::<AsyncIo>();
        can_be_watched::<FuturesTimer>();
    }
}
