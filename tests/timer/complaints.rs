//! Complaints about other timers, which this one must not deserve.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, Timer};

use crate::support::{
    Built, Count, Dropped, HOUR, Log, after, both, fires, hear, in_time, is_balanced, ms, pass, secs,
    threads, until,
};

/// Timeouts of five minutes, each cancelled soon after, at more than a hundred thousand a second: a
/// cancel drops what the callback holds, and nodes are reused long before the first deadline.
/// Promise 5.
#[test]
fn cancelled_timeouts_hold_no_memory() {
    let (timer, dropped) = (threads(2), Count::default());
    let (mut open, rounds) = (VecDeque::new(), 300_000);
    for _ in 0..rounds {
        let held = Dropped(dropped.clone());
        open.push_back(after(&timer, secs(300), move || drop(held)));
        if open.len() > 1_000 {
            assert!(open.pop_front().is_some_and(|key| timer.cancel(key)));
        }
    }
    assert_eq!(dropped.get(), rounds - open.len());
    assert_eq!(timer.stats().pending, open.len());
    assert!(timer.stats().node_capacity <= 65_536, "{:?}", timer.stats());
    assert!(open.into_iter().all(|key| timer.cancel(key)));
    is_balanced(&timer);
}

/// After a burst of cancelled timeouts, with nothing due for a long time, the thread wakes and
/// frees memory. Promise 5.
#[test]
fn memory_goes_back_while_nothing_is_due() {
    let timer = threads(1);
    let keys: Vec<_> = (0..200_000).map(|_| after(&timer, secs(300_000), || ())).collect();
    let peak = timer.stats().node_capacity;
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
    until("memory has gone back", || timer.stats().node_capacity <= peak / 3);
    is_balanced(&timer);
}

/// A few timers of a burst are cancelled when all others have fired and the thread sleeps. There is
/// one in each part of the memory, and they are too few for a sweep of their own. Promise 5.
#[test]
fn a_few_cancelled_timers_of_a_burst_keep_no_memory() {
    let timer = threads(1);
    let schedule = |i| {
        let delay = if i % 500 == 0 { secs(300_000) } else { ms(100) };
        after(&timer, delay, || ())
    };
    let far: Vec<_> = (0..200_000).map(|i| (i, schedule(i))).filter(|(i, _)| i % 500 == 0).collect();
    until("the others have fired", || timer.stats().pending == far.len());
    // The thread falls asleep when it has found that there is no memory to give back.
    std::thread::sleep(ms(500));
    assert!(far.into_iter().all(|(_, key)| timer.cancel(key)));
    until("memory has gone back", || timer.stats().node_capacity <= 65_536);
    is_balanced(&timer);
}

/// A clock that is set back, as a wall clock is, makes no timer early and loses none; a clock that
/// jumps ahead makes due what is due by then. Promises 1 and 4.
#[test]
fn a_clock_that_steps_back_and_forth_makes_nothing_early() {
    struct Steps(Instant);
    impl Clock for Steps {
        /// Steps back by 20 ms ten times a second, and forward again.
        fn now(&self) -> Instant {
            let passed = self.0.elapsed();
            let back = if passed.as_millis() % 100 > 50 { ms(20) } else { ms(0) };
            self.0 + passed.saturating_sub(back)
        }
    }
    let start = Instant::now();
    let timer = Timer::builder().clock(Steps(start)).shards(1).built();
    let (sender, receiver) = mpsc::channel();
    for delay in (0..20).map(|i| 10 * i) {
        let (sender, begin) = (sender.clone(), Instant::now());
        let tell = move || sender.send((begin.elapsed(), ms(delay))).expect("the test waits");
        after(&timer, ms(delay), tell);
    }
    for _ in 0..20 {
        let (took, delay) = hear(&receiver);
        // The clock may have stepped forward by 20 ms in between.
        assert!(took + ms(20) >= delay, "{took:?} for {delay:?}");
    }
    is_balanced(&timer);
}

/// How often the thread of this name has gone to sleep; none where the system does not say.
fn sleeps_of(name: &str) -> Option<u64> {
    let tasks = cfg!(target_os = "linux").then(|| std::fs::read_dir("/proc/self/task").ok())??;
    let mut statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let status = statuses.find(|status| status.lines().next().is_some_and(|line| line.ends_with(name)))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// In other timers every tick woke the thread with nothing due, or the thread spun. Here the thread
/// sleeps, with the next timer an hour away and with no timer, although a tick is a millisecond.
/// Promise 9.
#[test]
fn an_idle_thread_sleeps() {
    let timer = Timer::builder().shards(1).thread_name("idle").built();
    for pending in [false, true] {
        if pending {
            after(&timer, HOUR, || ());
            fires(&timer, ms(1));
            thread::sleep(ms(100));
        }
        let Some(before) = sleeps_of("idle-0") else { return };
        thread::sleep(ms(300));
        let woken = sleeps_of("idle-0").expect("the thread exists") - before;
        assert!(woken <= 3, "woken {woken} times in 300 ticks");
    }
}

/// Memory that cannot be freed does not keep the thread awake: a timer is left in each segment of a
/// burst. Promise 9.
#[test]
fn memory_that_cannot_go_back_does_not_keep_a_thread_awake() {
    let timer = Timer::builder().shards(1).thread_name("kept").built();
    let keys: Vec<_> = (0..300_000).map(|_| after(&timer, HOUR, || ())).collect();
    let cancelled = keys.iter().enumerate().filter(|(nth, _)| nth % 10_000 != 0);
    assert!(cancelled.into_iter().all(|(_, &key)| timer.cancel(key)));
    if sleeps_of("kept-0").is_some() {
        until("the thread sleeps", || {
            let before = sleeps_of("kept-0").expect("the thread exists");
            thread::sleep(ms(300));
            sleeps_of("kept-0").expect("the thread exists") - before <= 1
        });
    }
}

/// A far timer wakes the thread at most for each move to a lower wheel. Promise 9.
#[test]
fn a_far_timer_wakes_the_thread_once_per_level() {
    let timer =
        Timer::builder().shards(1).thread_name("far").tick(Duration::from_micros(50)).wheel_size(16).built();
    let Some(before) = sleeps_of("far-0") else { return };
    fires(&timer, ms(200));
    let woken = sleeps_of("far-0").expect("the thread exists") - before;
    assert!(woken <= 20, "woken {woken} times in 4000 ticks, over four wheels");
}

/// In another timer a callback that scheduled deadlocked on the bucket that was being flushed. Here
/// a callback may schedule any number of timers, for any time, also a past one. Promises 3 and 7.
#[test]
fn a_callback_may_schedule_any_number_of_timers() {
    in_time(|| {
        for size in [2, 16, 256] {
            let timer = Timer::builder().shards(1).wheel_size(size).built();
            let count = Count::default();
            let (inner, mine) = (timer.clone(), count.clone());
            let outer = move || {
                for delay in 0..600 {
                    after(&inner, ms(delay % 40), mine.adds());
                    inner.schedule_at(Instant::now(), mine.adds()).expect("the timer is open");
                }
            };
            after(&timer, ms(1), outer);
            until("all timers have fired", || count.get() == 1_200);
            is_balanced(&timer);
        }
    });
}

/// Other timers kept what a cancelled callback holds until the deadline, or dropped it under a
/// lock. Here `cancel` drops it, and its drop may use the timer; so may the drop of what a callback
/// holds after it has run. Promises 3, 5 and 7.
#[test]
fn callbacks_are_dropped_while_no_lock_is_held() {
    in_time(|| {
        for (timer, clock) in both() {
            let log = Log::new();
            let held = UsesTimer(timer.clone(), log.clone());
            let key = after(&timer, HOUR, move || drop(held));
            assert!(timer.cancel(key));
            assert_eq!(log.take(), [true]);
            let held = UsesTimer(timer.clone(), log.clone());
            after(&timer, ms(1), move || _ = &held);
            pass(&clock, ms(1));
            until("the timer has fired", || log.len() == 1);
            assert_eq!(log.take(), [true]);
            is_balanced(&timer);
        }
    });
}

/// Uses its timer in its drop.
struct UsesTimer(Timer, Log<bool>);

impl Drop for UsesTimer {
    fn drop(&mut self) {
        let key = after(&self.0, HOUR, || ());
        let moved = self.0.reschedule_after(key, ms(500)).expect("the timer is pending");
        self.1.add(self.0.stats().pending > 0 && self.0.cancel(moved));
    }
}
