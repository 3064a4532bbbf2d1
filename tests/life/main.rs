//! A server's life in virtual time: years of connections, retries, cron jobs, values of a delay
//! queue, sleeps, suspends, clocks that step, and threads that come and go.
//!
//! One manual clock drives it, minute by minute, by the choices of a seed. At the end of each day
//! every count balances: what was scheduled is what has fired, was cancelled or is pending, by the
//! timer's figures and by books of its own. No timer fires early, none is late by more than a tick
//! but for a suspend, and the memory of a quiet night is bounded.
//!
//! | file | what it holds |
//! |---|---|
//! | `books.rs` | the outcome of each timer, and the sums |
//! | `server.rs` | connections, retries, cron jobs, sleeps and threads, on one timer |
//! | `queue.rs` | the delay queue, on the same timer |
//! | `stepping.rs` | a driven timer whose clock is set back and forth |
//!
//! Twenty days are one of the tests. `SHARDWHEEL_LIFE_DAYS` sets another number: ten years take
//! about an hour in a release build. `SHARDWHEEL_LIFE_SEED` repeats an earlier life.

mod books;
mod queue;
mod server;
mod stepping;

use std::time::{Duration, Instant};

use shardwheel::{ManualClock, Timer};

use server::Server;
use stepping::Stepping;

const MINUTE: Duration = Duration::from_secs(60);
const MINUTES_OF_A_DAY: u32 = 24 * 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// The next part of a day: usually a minute; now and then the machine is suspended for hours.
fn next_part(random: &mut fastrand::Rng, left: u32) -> (u32, bool) {
    if left > 1 && random.u32(..2 * MINUTES_OF_A_DAY) == 0 {
        return (random.u32(1..left.min(8 * 60) + 1), true);
    }
    (1, false)
}

#[test]
fn every_count_balances_at_the_end_of_each_day() {
    let days = number("SHARDWHEEL_LIFE_DAYS").unwrap_or(20);
    let seed = number("SHARDWHEEL_LIFE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("{days} days; SHARDWHEEL_LIFE_SEED={seed} repeats them");
    let mut random = fastrand::Rng::with_seed(seed);
    let clock = ManualClock::new();
    let timer =
        Timer::builder().clock(clock.clone()).shards(2).build().expect("settings within their limits");
    let mut server = Server::new(&timer, &clock);
    let mut stepping = Stepping::new();
    let (begin, mut suspends) = (Instant::now(), 0);
    for day in 1..=days {
        let mut left = MINUTES_OF_A_DAY;
        while left > 0 {
            server.act(&mut random);
            stepping.act(&mut random);
            let (minutes, is_suspend) = next_part(&mut random, left);
            left -= minutes;
            if is_suspend {
                suspends += 1;
                server.suspend(minutes * MINUTE);
            } else {
                clock.advance(MINUTE);
            }
            stepping.pass(minutes * MINUTE, &mut random);
        }
        server.run_threads(&mut random);
        server.check_day(day);
        stepping.check();
        if day % 365 == 0 || day == days {
            println!("day {day}, {:?}, {suspends} suspends: {}", begin.elapsed(), server.line());
        }
    }
    stepping.end();
    server.end();
}
