//! A leak of timers, found by the calls that have set them.
//!
//! Each connection has a limit on its idle time. The limit of a connection that is closed should be
//! cancelled; here it is not.
//!
//! `cargo run --example introspect --features introspect`

use std::error::Error;
use std::time::Duration;

use shardwheel::{ManualClock, Timer, TimerKey};

const MINUTE: Duration = Duration::from_secs(60);

/// `open` is called in many places: its caller is the place that has set the timer.
#[track_caller]
fn open(timer: &Timer, name: &str) -> Result<TimerKey, Box<dyn Error>> {
    let name = name.to_owned();
    Ok(timer.schedule_after(60 * MINUTE, move || println!("{name} is idle"))?)
}

fn close(timer: &Timer, limit: TimerKey) {
    timer.cancel(limit);
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build()?;
    timer.schedule_every(MINUTE, || ())?;
    let mut forgotten = Vec::new();
    for _ in 0..1_000 {
        forgotten.push(open(&timer, "upload")?);
    }
    clock.advance(10 * MINUTE);
    for _ in 0..1_000 {
        let download = open(&timer, "download")?;
        close(&timer, download);
    }
    open(&timer, "chat")?;

    let pending = timer.pending();
    println!("{pending}");
    for place in pending.places.iter().filter(|place| place.count > 100) {
        let (count, minutes) = (place.count, (pending.at - place.oldest).as_secs() / 60);
        let place = place.place.map_or("other places".into(), |place| place.to_string());
        println!("{place}: {count} timers, the oldest {minutes} minutes ago");
    }
    forgotten.into_iter().for_each(|limit| close(&timer, limit));
    println!("after the limits have been cancelled:\n{}", timer.pending());
    Ok(())
}
