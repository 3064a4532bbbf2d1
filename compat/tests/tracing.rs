//! Warnings of a timer, as a subscriber of tracing gets them.

mod common;

use std::io::{self, Write};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

use common::{eventually, run};
use shardwheel::{Job, Timer};
use shardwheel_compat::{SmithySleep, TimerTracing, WarnRefused};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Callbacks run on other threads, so the subscriber is the process's own.
fn subscribe() {
    static ONCE: Once = Once::new();
    let subscriber = || tracing_subscriber::fmt().with_writer(|| ToLog).finish();
    ONCE.call_once(|| tracing::subscriber::set_global_default(subscriber()).unwrap());
}

/// The lines that have all of these in them.
fn lines(parts: &[&str]) -> usize {
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    log.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}

fn expect(parts: &[&str]) {
    eventually(&format!("a line with {parts:?}"), || lines(parts) > 0);
    assert_eq!(lines(parts), 1, "{parts:?}");
}

#[test]
fn a_slow_callback_is_warned_of_and_a_quick_one_is_not() {
    subscribe();
    let strict = TimerTracing::new(Duration::from_millis(21)).install(Timer::builder()).build().unwrap();
    strict.schedule_after(Duration::ZERO, || thread::sleep(Duration::from_millis(30))).unwrap();
    let patient = TimerTracing::new(Duration::from_secs(3_600)).install(Timer::builder()).build().unwrap();
    patient.schedule_after(Duration::ZERO, || thread::sleep(Duration::from_millis(30))).unwrap();

    expect(&["WARN", "shardwheel", "a callback was slow", "took=", "threshold=21ms"]);
    eventually("the other has run", || patient.stats().longest_callback >= Duration::from_millis(30));
    drop(patient);
    assert_eq!(lines(&["threshold=3600s"]), 0);
}

#[test]
fn a_slow_job_of_an_executor_is_warned_of() {
    subscribe();
    let tracing = TimerTracing::new(Duration::from_millis(22));
    let spawn = move |job: Job| drop(thread::spawn(move || tracing.run(job)));
    let timer = Timer::builder().executor(spawn).on_panic(TimerTracing::panicked).build().unwrap();
    timer.schedule_after(Duration::ZERO, || thread::sleep(Duration::from_millis(30))).unwrap();
    expect(&["WARN", "a callback was slow", "threshold=22ms"]);
    timer.schedule_after(Duration::ZERO, || panic!("on an executor")).unwrap();
    expect(&["WARN", "a callback panicked", "on an executor"]);
}

#[test]
fn a_panic_is_warned_of_with_its_key() {
    subscribe();
    let timer = TimerTracing::new(Duration::MAX).install(Timer::builder()).build().unwrap();
    let key = timer.schedule_after(Duration::ZERO, || panic!("boom {}", 17)).unwrap();
    expect(&["WARN", "a callback panicked", "panic=\"boom 17\"", &format!("key={key:?}")]);
}

#[test]
fn a_refusal_is_warned_of() {
    subscribe();
    let timer = Timer::builder().max_pending(1).build().unwrap();
    let hour = Duration::from_secs(3_600);
    timer.schedule_after(hour, || ()).warn_refused("the first").unwrap();
    timer.schedule_after(hour, || ()).warn_refused("the second").unwrap_err();
    run(async { timer.sleep(hour).await }).warn_refused("the third").unwrap_err();
    let never = std::future::pending::<()>();
    run(async { timer.timeout(hour, never).await }).warn_refused("the fourth").unwrap_err();
    assert_eq!(lines(&["the first"]), 0);
    for what in ["the second", "the third", "the fourth"] {
        expect(&["WARN", "the timer refused", what, "1 timers are pending"]);
    }
}

#[test]
fn a_time_limit_that_has_passed_is_no_refusal() {
    subscribe();
    let timer = Timer::new().unwrap();
    let never = std::future::pending::<()>();
    run(async { timer.timeout(Duration::ZERO, never).await }).warn_refused("the fifth").unwrap_err();
    assert_eq!(lines(&["the fifth"]), 0);
}

#[test]
fn a_sleep_that_goes_on_elsewhere_is_warned_of() {
    subscribe();
    let timer = Timer::new().unwrap();
    drop(timer.shutdown());
    let sleeps = SmithySleep::new(timer);
    run(async { aws_smithy_async::rt::sleep::AsyncSleep::sleep(&sleeps, Duration::from_millis(5)).await });
    expect(&["WARN", "the timer refused", "continues on the global timer", "shut down"]);
}
