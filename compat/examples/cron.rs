//! Jobs by cron expressions, in the time zones of their users: `cargo run -p shardwheel-compat
//! --features cron --example cron`.

use std::error::Error;
use std::sync::mpsc;
use std::time::SystemTime;

use shardwheel::Timer;
use shardwheel_compat::{Cron, TimeZone};

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new()?;
    let (sender, receiver) = mpsc::channel();
    for (expression, zone) in [("0 3 * * *", "Europe/Berlin"), ("30 9 * * MON-FRI", "Asia/Kolkata")] {
        let zone = TimeZone::get(zone)?;
        let report = Cron::new(expression, zone.clone())?;
        let first = report.date_after(SystemTime::now()).ok_or("there is no such date")?;
        println!("{expression} is next at {}", jiff::Timestamp::try_from(first)?.to_zoned(zone));
        timer.schedule_with(report, || println!("the report of the day"))?;
    }

    // With the seconds in front: every second.
    timer.schedule_with(Cron::new("* * * * * *", TimeZone::UTC)?, move || _ = sender.send(()))?;
    for second in 1..=3 {
        receiver.recv()?;
        println!("second {second}: {}", jiff::Timestamp::now());
    }
    Ok(())
}
