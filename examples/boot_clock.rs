//! Sessions that end after an hour of real time, also if the machine sleeps meanwhile.
//!
//! Suspend the machine while it runs: what is left is less by the time for which it slept, and the
//! session ends within a second after its deadline or after the machine has woken.
//!
//! `cargo run --example boot_clock -- [SECONDS]`

use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use shardwheel::{BootClock, Clock, Timer};

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(1), |seconds| seconds.parse())?;
    let clock = BootClock::new()?;
    let timer = Timer::builder().clock(clock).build()?;
    let (sender, receiver) = mpsc::channel();
    let (begin, running) = (clock.now(), Instant::now());
    timer.schedule_after(Duration::from_secs(seconds), move || _ = sender.send(()))?;

    receiver.recv()?;
    let (total, running) = (clock.now().saturating_duration_since(begin), running.elapsed());
    assert!(total >= Duration::from_secs(seconds), "not early");
    println!("the session has ended after {total:.1?}");
    println!("the machine was suspended for {:.1?} of them", total.saturating_sub(running));
    Ok(())
}
