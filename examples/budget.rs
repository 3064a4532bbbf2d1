//! A main loop that gives its timers two milliseconds a turn, and carries on where it stopped.
//!
//! A game, a user interface or a device must not miss its next turn because many timers are due at
//! once. What an advance yields is lazy: a timer that the loop does not take stays due, and comes
//! first in the next turn. Nothing is lost, and the order stays the same.
//!
//! `cargo run --example budget`

use std::error::Error;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, shard};

const TIMERS: u64 = 20_000;
const BUDGET: Duration = Duration::from_millis(2);
const TURN: Duration = Duration::from_millis(10);

/// What a timer does: a few microseconds of work.
fn handle(order: u64) -> u64 {
    (0..300).fold(order, |sum, i| black_box(sum.rotate_left(7) ^ i))
}

/// Runs what is due, in order, until the time is up; returns how many timers that were.
fn run_due(advancer: &mut Advancer<u64>, now: u64, seen: &mut Vec<u64>) -> usize {
    let (begin, before) = (Instant::now(), seen.len());
    // Not `take_while`: that would take one timer more, and lose it.
    let mut due = advancer.advance(now);
    while begin.elapsed() < BUDGET {
        let Some(fired) = due.next() else { break };
        black_box(handle(fired.payload));
        seen.push(fired.deadline);
    }
    seen.len() - before
}

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::default(); // ticks of 1 ms
    let (scheduler, mut advancer) = shard(&config);

    // A burst: all are due within the first twenty milliseconds.
    for order in 0..TIMERS {
        scheduler.schedule(1 + order % 20, order)?;
    }
    println!("{TIMERS} timers are due within 20 ms; a turn has {} ms for them", BUDGET.as_millis());

    let (start, mut seen) = (Instant::now(), Vec::new());
    for turn in 1.. {
        thread::sleep(TURN - BUDGET); // the rest of the turn: input, physics, drawing
        let fired = run_due(&mut advancer, config.ticks_floor(start.elapsed()), &mut seen);
        // A timer that is due and was not taken still counts as pending.
        if turn <= 5 || scheduler.is_empty() {
            println!("turn {turn:>3}: {fired:>5} fired, {:>5} wait", scheduler.len());
        }
        if scheduler.is_empty() {
            break;
        }
    }
    assert!(seen.len() as u64 == TIMERS && seen.is_sorted(), "all, in the order of their deadlines");
    println!("all {TIMERS} fired, in the order of their deadlines");
    Ok(())
}
