//! Timeouts, sleeps and intervals in a tokio program, on shardwheel's global `Timer`.
//!
//! The functions have the names and the results of `tokio::time`. They need nothing of a runtime,
//! so they work on any executor: this program does not enable tokio's time driver.
//!
//! `cargo run --example timeouts`

use std::error::Error;
use std::io;
use std::time::Duration;

use shardwheel::{Timer, interval, now, sleep, timeout};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A request that takes so long; the caller does not want to wait for more than 100 ms.
async fn request(name: &str, takes: Duration) -> io::Result<String> {
    let answer = async {
        sleep(takes).await;
        format!("the answer to {name}")
    };
    // `Elapsed` becomes an `io::Error` of kind `TimedOut`.
    Ok(timeout(ms(100), answer).await?)
}

/// A connection: it is closed when no packet has come for 300 ms. One sleep serves all packets.
async fn connection(mut packets: u32) -> u32 {
    let (mut idle, mut seen) = (sleep(ms(300)), 0);
    let mut packet = interval(ms(15));
    loop {
        tokio::select! {
            _ = packet.tick(), if packets > 0 => {
                (packets, seen) = (packets - 1, seen + 1);
                idle.reset_after(ms(300)); // unlike tokio's, a sleep need not be pinned
            }
            () = &mut idle => return seen,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("fast: {:?}", request("fast", ms(5)).await?);
    let slow = request("slow", ms(60_000)).await;
    println!("slow: {:?}", slow.map_err(|error| error.kind()));

    println!("a connection of five packets, then silence: closed after {}", connection(5).await);

    // Many tasks, each with a deadline that its work meets: the timer forgets the rest at once.
    let begin = now();
    let task = |nth: u64| timeout(ms(30_000), async move { sleep(ms(nth % 100)).await });
    let tasks: Vec<_> = (0..10_000).map(|nth| tokio::spawn(task(nth))).collect();
    let mut in_time = 0;
    for task in tasks {
        in_time += u32::from(task.await?.is_ok());
    }
    println!("{in_time} of 10000 tasks were in time, after {} ms", (now() - begin).as_millis());

    let stats = Timer::global().stats();
    println!("the timer: {} scheduled, {} pending", stats.scheduled, stats.pending);
    println!("late, 99 % of them at most: {} ms", stats.lateness.p99().as_millis());
    Ok(())
}
