//! A server's life in virtual time: years of connections, an hourly job, values of a delay queue,
//! a clock that steps, and threads that come and go.
//!
//! One manual clock drives it, minute by minute, by the choices of a seed. At the end of each day
//! every count balances: what was scheduled is what has fired, was cancelled or is pending, by the
//! timer's figures and by a ledger of that day. Each timer fires on its tick, and the memory of a
//! quiet night is bounded. (What a timer's callbacks, sleeps and suspends may do within one life
//! is for `simulation`.)
//!
//! | file | what it holds |
//! |---|---|
//! | `server.rs` | connections, the hourly job and threads, on one timer |
//! | `queue.rs` | the delay queue, on the same timer |
//! | `stepping.rs` | a driven timer whose clock is set back and forth |
//!
//! Twenty days are one of the tests. `SHARDWHEEL_LIFE_DAYS` sets another number: ten years take
//! about an hour in a release build. `SHARDWHEEL_LIFE_SEED` repeats an earlier life.

mod queue;
mod server;
mod stepping;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::time::{Duration, Instant};

use server::Server;
use stepping::Stepping;

const MINUTE: Duration = Duration::from_secs(60);
const MINUTES_OF_A_DAY: u32 = 24 * 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn every_count_balances_at_the_end_of_each_day() {
    let days = number("SHARDWHEEL_LIFE_DAYS").unwrap_or(20);
    let seed = number("SHARDWHEEL_LIFE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("{days} days; SHARDWHEEL_LIFE_SEED={seed} repeats them");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut server, mut stepping, begin) = (Server::new(), Stepping::new(), Instant::now());
    for day in 1..=days {
        for _ in 0..MINUTES_OF_A_DAY {
            server.act(&mut random);
            stepping.act(&mut random);
            server.pass(MINUTE);
            stepping.pass(MINUTE, &mut random);
        }
        server.run_threads(&mut random);
        server.end_day(day);
        stepping.check();
        if day % 365 == 0 || day == days {
            println!("day {day}, {:?}: {:?}", begin.elapsed(), server.stats());
        }
    }
    stepping.end();
    server.end();
}
