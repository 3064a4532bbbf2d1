//! Effects in a game: poison that hurts every three seconds for thirty seconds.
//!
//! An effect is one recurring timer, so one node: it is armed anew after each hit, not stored once
//! for every hit to come. The game's own clock moves the timer, frame by frame.
//!
//! `cargo run --example buffs`

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shardwheel::{ManualClock, Timer, TimerKey};

const CREATURES: usize = 100_000;
const FRAME: Duration = Duration::from_millis(50);

/// Poison on one creature.
struct Poison {
    key: TimerKey,
    state: Arc<State>,
}

/// What the effect and the game share.
#[derive(Default)]
struct State {
    hits: AtomicU64,
    hits_left: AtomicU64,
}

impl Poison {
    /// Hits every three seconds, ten times.
    fn cast(timer: &Timer) -> Result<Self, Box<dyn Error>> {
        let state = Arc::new(State { hits_left: AtomicU64::new(10), ..State::default() });
        let shared = Arc::clone(&state);
        // Ordering: Relaxed everywhere here, because one thread moves the clock and plays the game.
        let hit = move |_| {
            shared.hits.fetch_add(1, Ordering::Relaxed);
            match shared.hits_left.fetch_sub(1, Ordering::Relaxed) {
                1 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let key = timer.schedule_repeating(Duration::from_secs(3), hit)?;
        Ok(Self { key, state })
    }

    fn hits(&self) -> u64 {
        self.state.hits.load(Ordering::Relaxed)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build()?;
    let play = |seconds: u64| (0..seconds * 20).for_each(|_frame| clock.advance(FRAME));
    let begin = Instant::now();

    let all = (0..CREATURES).map(|_| Poison::cast(&timer)).collect::<Result<Vec<_>, _>>()?;
    let [extended, dispelled, plain] = [&all[0], &all[1], &all[2]];
    println!("{CREATURES} creatures are poisoned: {} timers pending", timer.stats().pending);

    play(10);
    println!("after 10 s: {} hits each, {} timers pending", plain.hits(), timer.stats().pending);

    extended.state.hits_left.fetch_add(5, Ordering::Relaxed);
    println!("one effect is extended by five hits; one is dispelled: {}", timer.cancel(dispelled.key));

    play(40);
    println!("plain: {} hits, extended: {}, dispelled: {}", plain.hits(), extended.hits(), dispelled.hits());

    let stats = timer.stats();
    assert_eq!(all.iter().map(Poison::hits).sum::<u64>(), stats.fired);
    println!("{} hits by {} timers, {} left", stats.fired, stats.scheduled, stats.pending);
    println!("50 s, 1000 frames, took {} ms", begin.elapsed().as_millis());
    Ok(())
}
