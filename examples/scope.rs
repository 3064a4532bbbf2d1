//! A test of code that knows nothing of clocks: it calls `sleep`, `timeout` and `interval`, and the
//! scope of a `ManualClock` makes them go by virtual time.
//!
//! `cargo run --example scope`

use std::error::Error;
use std::future::pending;
use std::time::{Duration, Instant};

use shardwheel::{Elapsed, ManualClock, Timer, interval, sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);

/// What is tested. It tries each hour to reach a server that answers from the third attempt on.
async fn connect() -> Result<u32, Elapsed> {
    let mut hours = interval(HOUR);
    let attempts = async {
        for attempt in 1.. {
            hours.tick().await;
            let answers = async { if attempt < 3 { pending().await } else { sleep(HOUR / 60).await } };
            if timeout(HOUR / 2, answers).await.is_ok() {
                return attempt;
            }
        }
        unreachable!("attempts do not end")
    };
    timeout(24 * HOUR, attempts).await
}

fn main() -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let clock = ManualClock::new();
    // The clock moves to the next deadline whenever all waits.
    let (attempts, waiting) = clock.scope(|| clock.run_until_stalled(connect()));
    println!("connected at attempt {:?}, after {:?}", attempts, clock.elapsed());
    println!("{waiting}");

    // A callback that a program forgets is reported.
    let clock = ManualClock::new();
    let (scheduled, waiting) = clock.scope(|| {
        let key = Timer::global().schedule_every(HOUR, || println!("an hour has passed"));
        clock.advance(2 * HOUR);
        key.map(drop)
    });
    scheduled?;
    println!("{waiting}");
    println!("these hours took less than a minute: {}", begin.elapsed() < HOUR / 60);
    Ok(())
}
