//! Complaints about other timers that this one has to be immune to.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use shardwheel::{Clock, Timer};

use crate::support::{
    Count, Dropped, HOUR, Log, both, by_hand, hear, in_time, is_balanced, manual, ms, pass, secs, threads,
    until,
};

const DAY: Duration = secs(24 * 60 * 60);

/// Timers due in more than twelve days made the short ones beside them hang: here each of both kinds fires when it is
/// due, and the clock goes on past the far ones. Promises 1 and 4.
#[test]
fn tokio_44_far_timers_do_not_hold_up_near_ones() {
    let (timer, clock) = manual();
    let log = Log::new();
    let set = |delay| {
        let (entries, time, due) = (log.clone(), clock.clone(), clock.elapsed() + delay);
        timer.schedule_after(delay, move || entries.add(time.elapsed() == due)).expect("the timer is open");
    };
    (12..=20).for_each(|day| set(day * DAY + ms(345)));
    for round in 1..200 {
        set(ms(7));
        clock.advance(ms(10 + round % 3));
        assert_eq!(log.take(), [true]);
    }
    clock.advance(21 * DAY);
    assert_eq!(log.take(), [true; 9]);
    is_balanced(&timer);
}

/// The same in real time. Promise 1.
#[test]
fn tokio_44_in_real_time() {
    let timer = threads(2);
    for day in [12, 13, 20, 400, 4_000] {
        timer.schedule_after(day * DAY, || unreachable!("it is far off")).expect("the timer is open");
    }
    for _ in 0..10 {
        let (told, heard) = mpsc::channel();
        timer
            .schedule_after(ms(5), move || told.send(()).expect("the test waits"))
            .expect("the timer is open");
        hear(&heard);
    }
    assert_eq!(timer.stats().pending, 5);
}

/// A top wheel that wraps at 2^36 ticks fires what is further away too early, or when it comes round again; here a
/// delay may be any power of two of milliseconds that the clock can reach. Promises 1 and 4.
#[test]
fn tokio_44_no_top_wheel_wraps() {
    for size in [2, 16, 2048] {
        let (timer, clock) = by_hand(Timer::builder().wheel_size(size));
        let log = Log::new();
        let delays: Vec<_> =
            (30..=43).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]).map(ms).collect();
        for &delay in &delays {
            let (entries, time) = (log.clone(), clock.clone());
            timer.schedule_after(delay, move || entries.add(time.elapsed())).expect("the timer is open");
        }
        clock.advance(ms(1 << 44));
        assert_eq!(log.take(), delays, "in wheels of {size}");
        is_balanced(&timer);
    }
}

/// Timeouts of five minutes, each cancelled soon after, at more than a hundred thousand a second: what they hold is
/// dropped at once, and the nodes are used again, long before the first deadline. Promise 5.
#[test]
fn brpc_45_cancelled_timeouts_hold_no_memory() {
    let (timer, dropped) = (threads(2), Count::default());
    let (mut open, rounds) = (VecDeque::new(), 300_000);
    for _ in 0..rounds {
        let held = Dropped(dropped.clone());
        open.push_back(timer.schedule_after(secs(300), move || drop(held)).expect("the timer is open"));
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

/// The same where each timeout is shorter than the one before, so that no cancelled node lies where the next timer
/// could use it: the thread, which has nothing due for minutes, is woken to sweep. Promise 5.
#[test]
fn brpc_45_nor_with_ever_shorter_timeouts() {
    let timer = threads(1);
    let (rounds, batch) = (400_u64, 500);
    let mut most = 0;
    for round in 0..rounds {
        let delay = |i: u64| secs(300_000) - ms(600 * (round * batch + i));
        let keys: Vec<_> =
            (0..batch).map(|i| timer.schedule_after(delay(i), || ()).expect("the timer is open")).collect();
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
        until("it is swept", || timer.stats().cancelled < timer.stats().swept + 3 * 4_096);
        most = most.max(timer.stats().node_capacity);
    }
    let stats = timer.stats();
    assert!(stats.swept > 0 && most <= 65_536, "{stats:?}");
    is_balanced(&timer);
}

/// After a burst of cancelled timeouts, and with nothing due for long, memory goes back all the same: the thread, which
/// would sleep until then, sees to it. Promise 5.
#[test]
fn brpc_45_memory_goes_back_while_nothing_is_due() {
    let timer = threads(1);
    let keys: Vec<_> = (0..200_000)
        .map(|_| timer.schedule_after(secs(300_000), || ()).expect("the timer is open"))
        .collect();
    let peak = timer.stats().node_capacity;
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
    until("memory has gone back", || timer.stats().node_capacity <= peak / 3);
    is_balanced(&timer);
}

/// A shard sat idle and its clock fell far behind; timers set then, relative to the true time, fired early or needed
/// extra levels. Here each fires exactly, whether the clock has caught up or not. Promises 1 and 4.
#[test]
fn kafka_46_a_stale_clock_fires_nothing_early() {
    for idle in [ms(6), ms(100), secs(4), HOUR, 365 * DAY] {
        let (timer, clock) = manual();
        clock.advance(idle);
        let log = Log::new();
        for delay in [1, 2, 20, 300, 5_000].map(ms) {
            let (entries, time, due) = (log.clone(), clock.clone(), clock.elapsed() + delay);
            let callback = move || entries.add((time.elapsed(), due));
            timer.schedule_after(delay, callback).expect("the timer is open");
        }
        clock.advance(secs(5));
        let seen = log.take();
        assert!(seen.len() == 5 && seen.iter().all(|(at, due)| at == due), "after {idle:?}: {seen:?}");
    }
}

/// The same in real time, idle for a while. Promise 1.
#[test]
fn kafka_46_in_real_time() {
    let timer = threads(1);
    for _ in 0..5 {
        thread::sleep(ms(30));
        let (told, heard) = mpsc::channel();
        let begin = Instant::now();
        let tell = move || told.send(begin.elapsed()).expect("the test waits");
        timer.schedule_after(ms(10), tell).expect("the timer is open");
        let took = hear(&heard);
        assert!(took >= ms(10) && took < secs(5), "{took:?}");
    }
}

/// The clock is monotonic: a source that is set back, as a wall clock is, makes nothing early and loses nothing;
/// one that leaps ahead makes due what is due by then. Promises 1 and 4.
#[test]
fn netty_47_a_clock_that_steps() {
    struct Steps(Instant);
    impl Clock for Steps {
        /// Ten times a second it steps back by 20 ms, and forward again.
        fn now(&self) -> Instant {
            let passed = self.0.elapsed();
            let back = if passed.as_millis() % 100 > 50 { ms(20) } else { ms(0) };
            self.0 + passed.saturating_sub(back)
        }
    }
    let start = Instant::now();
    let timer = Timer::builder().clock(Steps(start)).shards(1).build().expect("settings within their limits");
    let (told, heard) = mpsc::channel();
    for delay in (0..20).map(|i| 10 * i) {
        let (told, begin) = (told.clone(), Instant::now());
        let tell = move || told.send((begin.elapsed(), ms(delay))).expect("the test waits");
        timer.schedule_after(ms(delay), tell).expect("the timer is open");
    }
    for _ in 0..20 {
        let (took, delay) = hear(&heard);
        // The source itself may have stepped forward by 20 ms in between.
        assert!(took + ms(20) >= delay, "{took:?} for {delay:?}");
    }
    is_balanced(&timer);
}

/// The system's wall clock plays no part: a moment is an `Instant`, and what is due is due by that. Promise 1.
#[test]
fn netty_47_moments_are_monotonic() {
    let (timer, begin, wall) = (threads(1), Instant::now(), SystemTime::now());
    let (told, heard) = mpsc::channel();
    let deadline = begin + ms(50);
    let tell = move || told.send(Instant::now()).expect("the test waits");
    timer.schedule_at(deadline, tell).expect("the timer is open");
    assert!(hear(&heard) >= deadline);
    assert!(timer.now() >= deadline && SystemTime::now() != wall);
}

/// How often a thread of this name has gone to sleep of its own accord; none where the system does not tell.
fn sleeps_of(name: &str) -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let mut statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let status = statuses.find(|status| status.lines().next().is_some_and(|line| line.ends_with(name)))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// Every tick woke the thread with nothing due, or spun a core: here, with the next timer an hour away, and with
/// none at all, it sleeps, though a tick is a millisecond. Promise 9.
#[test]
fn netty_48_idle_costs_nothing() {
    let timer = Timer::builder().shards(1).thread_name("idle").build().expect("settings within their limits");
    for pending in [false, true] {
        if pending {
            timer.schedule_after(HOUR, || ()).expect("the timer is open");
            let (told, heard) = mpsc::channel();
            timer
                .schedule_after(ms(1), move || told.send(()).expect("the test waits"))
                .expect("the timer is open");
            hear(&heard);
            thread::sleep(ms(100));
        }
        let Some(before) = sleeps_of("idle-0") else { return };
        thread::sleep(ms(300));
        let woken = sleeps_of("idle-0").expect("it lives") - before;
        assert!(woken <= 3, "woken {woken} times in 300 ticks");
    }
}

/// Nor does memory that cannot go back wake anybody for ever: each piece of what a burst took has a timer left. Promise 9.
#[test]
fn netty_48_nor_does_memory_that_cannot_go_back() {
    let timer = Timer::builder().shards(1).thread_name("kept").build().expect("settings within their limits");
    let keys: Vec<_> =
        (0..300_000).map(|_| timer.schedule_after(HOUR, || ()).expect("the timer is open")).collect();
    let cancelled = keys.iter().enumerate().filter(|(nth, _)| nth % 10_000 != 0);
    assert!(cancelled.into_iter().all(|(_, &key)| timer.cancel(key)));
    if sleeps_of("kept-0").is_some() {
        until("it sleeps", || {
            let before = sleeps_of("kept-0").expect("it lives");
            thread::sleep(ms(300));
            sleeps_of("kept-0").expect("it lives") - before <= 1
        });
    }
}

/// A far timer that has to be moved from wheel to wheel wakes the thread for each of these moves at most. Promise 9.
#[test]
fn netty_48_nor_for_a_far_timer() {
    let builder =
        Timer::builder().shards(1).thread_name("far").tick(Duration::from_micros(50)).wheel_size(16);
    let timer = builder.build().expect("settings within their limits");
    let Some(before) = sleeps_of("far-0") else { return };
    let (told, heard) = mpsc::channel();
    timer.schedule_after(ms(200), move || told.send(()).expect("the test waits")).expect("the timer is open");
    hear(&heard);
    let woken = sleeps_of("far-0").expect("it lives") - before;
    assert!(woken <= 20, "woken {woken} times in 4000 ticks, over four wheels");
}

/// A timer set from the callback's own thread deadlocked on the bucket that was being flushed. Here callbacks may
/// set as many as they like, for any time, also one that has passed. Promises 3 and 7.
#[test]
fn go_49_set_from_the_callback() {
    in_time(|| {
        for size in [2, 16, 256] {
            let timer =
                Timer::builder().shards(1).wheel_size(size).build().expect("settings within their limits");
            let count = Count::default();
            let (inner, mine) = (timer.clone(), count.clone());
            let outer = move || {
                for delay in 0..600 {
                    let again = mine.clone();
                    inner.schedule_after(ms(delay % 40), move || again.one()).expect("the timer is open");
                    let again = mine.clone();
                    inner.schedule_at(Instant::now(), move || again.one()).expect("the timer is open");
                }
            };
            timer.schedule_after(ms(1), outer).expect("the timer is open");
            until("all have fired", || count.get() == 1_200);
            is_balanced(&timer);
        }
    });
}

/// What a cancelled callback holds was kept until the deadline, or dropped under a lock: here it is dropped within
/// the cancel, and may use the timer while it is; so may what is dropped after a run. Promises 3, 5 and 7.
#[test]
fn tokio_50_dropped_with_nothing_held() {
    in_time(|| {
        for (timer, clock) in both() {
            let log = Log::new();
            let held = UsesTimer(timer.clone(), log.clone());
            let key = timer.schedule_after(HOUR, move || drop(held)).expect("the timer is open");
            assert!(timer.cancel(key));
            assert_eq!(log.take(), [true]);
            let held = UsesTimer(timer.clone(), log.clone());
            timer.schedule_after(ms(1), move || _ = &held).expect("the timer is open");
            pass(&clock, ms(1));
            until("it has fired", || log.len() == 1);
            assert_eq!(log.take(), [true]);
            is_balanced(&timer);
        }
    });
}

/// Uses its timer when it is dropped.
struct UsesTimer(Timer, Log<bool>);

impl Drop for UsesTimer {
    fn drop(&mut self) {
        let key = self.0.schedule_after(HOUR, || ()).expect("the timer is open");
        let moved = self.0.reschedule_after(key, ms(500)).expect("it is pending");
        self.1.add(self.0.stats().pending > 0 && self.0.cancel(moved));
    }
}
