//! A job for every night, by the wall clock, which is set forward and back meanwhile.
//!
//! A `ManualClock` moves the `Timer` and the wall clock, so three days take no time. A program
//! leaves both out, and goes by the system's clocks.
//!
//! `cargo run --example nightly`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shardwheel::{ManualClock, Timer, WallSchedule};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The first three o'clock, of UTC, after that time. (For time zones and cron expressions, see `Cron`
/// in `shardwheel-compat`.)
fn three_o_clock(after: SystemTime) -> Option<SystemTime> {
    let since = after.duration_since(UNIX_EPOCH).ok()?;
    let days = (since + DAY - 3 * HOUR).as_secs() / DAY.as_secs();
    Some(UNIX_EPOCH + Duration::from_secs(days * DAY.as_secs()) + 3 * HOUR)
}

/// The day and the time of it, for the example's few days.
fn show(time: SystemTime) -> String {
    let minutes = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
    format!("day {}, {:02}:{:02}", minutes / 1_440, minutes / 60 % 24, minutes % 60)
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build()?;

    // The wall clock begins at noon of the first day, and can be set.
    let hours_ahead = Arc::new(AtomicU64::new(12));
    let (source, set_to) = (clock.clone(), Arc::clone(&hours_ahead));
    // Ordering: Relaxed, one thread runs all of this.
    let wall = move || UNIX_EPOCH + source.elapsed() + HOUR * set_to.load(Ordering::Relaxed) as u32;

    let now = wall.clone();
    let nightly = WallSchedule::new(three_o_clock).clock(wall.clone());
    timer.schedule_with(nightly, move || println!("{}: backup", show(now())))?;

    clock.advance(16 * HOUR);
    println!("{}: set forward by a day, over the next backup", show(wall()));
    hours_ahead.fetch_add(24, Ordering::Relaxed);
    clock.advance(HOUR);
    println!("{}: set back by three hours, over the last backup", show(wall()));
    hours_ahead.fetch_sub(3, Ordering::Relaxed);
    clock.advance(DAY + 2 * HOUR);
    println!("{}: {} looks at the clock", show(wall()), timer.stats().fired - 3);
    Ok(())
}
