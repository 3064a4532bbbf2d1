//! Timers for tests, and checks of their statistics.

use std::cell::Cell;
use std::sync::mpsc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use shardwheel::{Clock, Figures, ManualClock, Timer, TimerBuilder, TimerKey};

use super::waiting::{HOUR, PATIENCE, hear, ms};
use super::wakers::poll;

/// Builds a timer whose settings are within their limits.
pub(crate) trait Built {
    fn built(self) -> Timer;
}

impl Built for TimerBuilder {
    fn built(self) -> Timer {
        self.build().expect("settings within their limits")
    }
}

/// A timer on a manual clock, and the clock.
pub(crate) fn manual() -> (Timer, ManualClock) {
    by_hand(Timer::builder())
}

/// The same with other settings.
pub(crate) fn by_hand(builder: TimerBuilder) -> (Timer, ManualClock) {
    let clock = ManualClock::new();
    (builder.clock(clock.clone()).build().expect("settings within their limits"), clock)
}

/// A timer in real time with that number of shards.
pub(crate) fn threads(shards: usize) -> Timer {
    Timer::builder().shards(shards).build().expect("settings within their limits")
}

/// A timer on a manual clock, with the clock, and a timer with two threads, for behaviour that both
/// must have.
pub(crate) fn both() -> [(Timer, Option<ManualClock>); 2] {
    let (timer, clock) = manual();
    [(timer, Some(clock)), (threads(2), None)]
}

/// Lets time pass: moves the clock, or sleeps.
pub(crate) fn pass(clock: &Option<ManualClock>, time: Duration) {
    match clock {
        Some(clock) => clock.advance(time),
        None => thread::sleep(time),
    }
}

/// Schedules on a timer that is open and has room.
pub(crate) fn after(timer: &Timer, delay: Duration, callback: impl FnOnce() + Send + 'static) -> TimerKey {
    timer.schedule_after(delay, callback).expect("the timer is open")
}

/// Waits until a timer of real time, set now, has fired.
pub(crate) fn fires(timer: &Timer, delay: Duration) {
    let (sender, receiver) = mpsc::channel();
    after(timer, delay, move || sender.send(()).expect("the test waits"));
    hear(&receiver);
}

/// Checks that each timer that was accepted has one outcome or is pending. No other thread may use
/// the timer meanwhile.
pub(crate) fn is_balanced(timer: &Timer) {
    let holds = |figures: &Figures| {
        let ended = figures.fired + figures.cancelled + figures.handed_back;
        figures.scheduled + figures.recurred == ended + figures.pending as u64
    };
    let mut stats = timer.stats();
    // A callback can signal its end to the test shortly before its shard counts it.
    let begin = Instant::now();
    while !(holds(&stats) && stats.shards.iter().all(holds)) {
        assert!(begin.elapsed() < PATIENCE, "{stats:?}");
        thread::sleep(ms(1));
        stats = timer.stats();
    }
}

/// Runs `work`, which schedules, on a thread that uses that shard. Returns none if there is no such
/// thread: on a machine with one core all threads use the same shard.
pub(crate) fn on_shard<R: Send>(timer: &Timer, shard: usize, work: impl Fn() -> R + Sync) -> Option<R> {
    let attempt = || {
        // A pinned thread uses its core's shard. Where threads cannot be pinned, they get shards in
        // turn.
        core_affinity::set_for_current(CoreId { id: shard });
        let before = timer.stats().shards[shard].scheduled;
        timer.cancel(after(timer, HOUR, || ()));
        (timer.stats().shards[shard].scheduled > before).then(&work)
    };
    (0..64)
        .find_map(|_| thread::scope(|scope| scope.spawn(attempt).join().expect("work that does not panic")))
}

/// The system's clock or a manual clock, which runs user code before each reading.
pub(crate) struct Tampered<F> {
    pub(crate) before: F,
    pub(crate) manual: Option<ManualClock>,
}

impl<F: Fn() + Send + Sync + 'static> Clock for Tampered<F> {
    fn now(&self) -> Instant {
        (self.before)();
        self.manual.as_ref().map_or_else(Instant::now, Clock::now)
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        self.manual.as_ref()
    }
}

/// Whether the calling thread belongs to a shard of a timer with that thread name.
pub(crate) fn is_on_shard_of(name: &str) -> bool {
    thread::current().name().is_some_and(|thread| thread.starts_with(name))
}

/// For a test that counts wakes, before each of its polls: the poll need not give way to other
/// tasks, because another one has.
pub(crate) fn before_poll() {
    /// No poll has more than eight answers that are ready at once, so this many polls do not use the
    /// budget up.
    const OFTEN: usize = 16;
    thread_local!(static POLLS: Cell<usize> = const { Cell::new(0) });
    POLLS.set(POLLS.get() + 1);
    if POLLS.get().is_multiple_of(OFTEN) {
        while poll(&mut shardwheel::sleep(Duration::ZERO), Waker::noop()).is_ready() {}
    }
}
