//! What programs do with an engine, as passes for the criterion benchmarks.

use std::time::Duration;

use crate::args::label;
use crate::engines::{Cancel, Heap, Next, Wheel};
use crate::machine::{back_memory, pin};
use crate::measure::clock::{fire_placed, idle};
use crate::measure::one_thread::pairs_over;
use crate::measure::two_threads::BYTES;
use crate::names::MILLION;
use crate::passes::round_trip;
use crate::rhythm::{ByLoop, ByTicks};
use crate::workload::{Spread, Workload};

const SIZES: [usize; 2] = [10_000, MILLION];
const SEED: u64 = 11;

/// A pass over a workload in a new engine; returns the time of what is measured.
type Pass = fn(&Workload) -> Duration;

/// Something that programs do with an engine.
pub struct Program {
    /// The program, the number of timers and the engine.
    pub id: String,
    /// The number of timers, and of the operations of a pass.
    pub timers: usize,
    spread: Spread,
    pass: Pass,
}

impl Program {
    /// Makes `passes` over the same timers and returns the time of what is measured; panics if an
    /// engine does not fire what it has to.
    #[must_use]
    pub fn time(&self, passes: u64) -> Duration {
        pin(0);
        back_memory(self.timers * BYTES);
        let work = Workload::new(self.spread, self.timers, SEED);
        (0..passes).map(|_| (self.pass)(&work)).sum()
    }
}

/// Returns each program at each number of timers, with `shardwheel` and then with the heap.
pub fn programs() -> impl Iterator<Item = Program> {
    let both = |timers| of::<Wheel>(timers).into_iter().zip(of::<Heap>(timers));
    SIZES.into_iter().flat_map(both).flat_map(<[_; 2]>::from)
}

fn of<E: Next<Producer: Cancel>>(timers: usize) -> [Program; 6] {
    let used_before = |work: &Workload| {
        let mut engine = E::new();
        round_trip(&mut engine, 0, work);
        round_trip(&mut engine, work.span, work)[0]
    };
    let programs: [(_, _, Pass); 6] = [
        ("idle ticks", Spread::ThirtyMinutes, |work| idle::<E>(work, work.delays.len() as u64)),
        ("fire, tick by tick", Spread::ThirtyMinutes, fire_placed::<E, ByTicks>),
        ("fire, event loop", Spread::ThirtyMinutes, fire_placed::<E, ByLoop>),
        ("fire a burst, tick by tick", Spread::PlacedInOneSecond, fire_placed::<E, ByTicks>),
        ("schedule", Spread::ThirtyMinutes, used_before),
        ("schedule + cancel", Spread::ThirtyMinutes, |work| pairs_over::<E>([work; 2])),
    ];
    let name = |what| format!("{what}/{}/{}", label(timers), E::NAME);
    programs.map(|(what, spread, pass)| Program { id: name(what), timers, spread, pass })
}
