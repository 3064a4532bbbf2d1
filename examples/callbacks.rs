//! Callbacks: once, at a fixed rate, by a schedule of your own; cancelled, put off, and handed back.
//!
//! `cargo run --example callbacks`

use std::error::Error;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::Timer;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Recurring timers: each is one node, armed anew after each occurrence.
fn recurring(timer: &Timer, say: impl Fn(&str) + Copy + Send + 'static) -> Result<(), Box<dyn Error>> {
    // At a fixed rate, for ever.
    timer.schedule_every(ms(100), move || say("heartbeat"))?;

    // At a fixed rate, until the callback returns `Break`. It learns how late it is.
    let mut left = 3;
    timer.schedule_repeating(ms(30), move |occurrence| {
        left -= 1;
        say(&format!("attempt, {left} left, {} µs late", occurrence.late.as_micros()));
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;

    // By any schedule: here with longer and longer gaps.
    let mut gaps = [40, 80, 160].map(ms).into_iter();
    let backoff = move |previous: Instant| gaps.next().map(|gap| previous + gap);
    timer.schedule_with(backoff, move || say("backoff"))?;
    Ok(())
}

fn once(timer: &Timer, say: impl Fn(&str) + Copy + Send + 'static) -> Result<(), Box<dyn Error>> {
    // A small callback is stored in the timer's own node: no allocation, no lock.
    timer.schedule_after(ms(50), move || say("once"))?;

    // The answer of a cancel is final at once: true means that the callback will not run.
    let release = timer.schedule_after(ms(1_000), move || say("NOT PAID, the order is released"))?;
    thread::sleep(ms(60));
    println!("the order was paid; is its release cancelled? {}", timer.cancel(release));

    // An idle timeout that each packet puts off. To a later time it is one compare-and-swap.
    let mut idle = timer.schedule_after(ms(200), move || say("idle: the connection is closed"))?;
    for _packet in 0..3 {
        thread::sleep(ms(40));
        idle = timer.reschedule_after(idle, ms(200)).ok_or("it has fired")?;
    }
    say("the last packet");

    // A guard cancels its timer when it is dropped, as at the end of a request.
    drop(timer.guard(timer.schedule_after(ms(1_000), move || say("NEVER"))?));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (timer, begin) = (Timer::new()?, Instant::now());
    let say = move |what: &str| println!("{:>4} ms  {what}", begin.elapsed().as_millis());
    recurring(&timer, say)?;
    once(&timer, say)?;
    thread::sleep(ms(300));

    // What has not fired comes back at the end, and may still run.
    timer.schedule_after(ms(3_600_000), move || say("what was due in an hour, run at the end"))?;
    let unfired = timer.shutdown();
    unfired.for_each(|task| task.run());
    let stats = timer.stats();
    println!("{} fired, {} cancelled, {} pending", stats.fired, stats.cancelled, stats.pending);
    Ok(())
}
