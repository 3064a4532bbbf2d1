//! User code that parks, blocks, panics or ends timers where a timer calls it.

use std::cell::RefCell;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, Job, ManualClock, Timer};

use crate::support::{
    Count, HOUR, after, are_threads, by_hand, hear, in_time, is_balanced, manual, ms, on_shard, threads,
    until,
};

/// Counts its drop, and panics.
struct Bomb(Count);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.one();
        panic_any("a drop panics");
    }
}

/// A callback parks, and takes the token with which shutdown wakes its thread. Promise 7.
#[test]
fn a_callback_that_parks_does_not_delay_shutdown() {
    in_time(|| {
        for _ in 0..20 {
            let timer = threads(1);
            let (sender, receiver) = mpsc::channel();
            let stop = Arc::new(AtomicBool::new(false));
            let gate = Arc::clone(&stop);
            let parks = move || {
                sender.send(()).expect("the test waits");
                while !gate.load(Ordering::SeqCst) {
                    thread::park_timeout(ms(1));
                }
                thread::sleep(ms(3));
                thread::park_timeout(ms(0));
            };
            after(&timer, ms(1), parks);
            hear(&receiver);
            let (other, gate) = (timer.clone(), Arc::clone(&stop));
            let ender = thread::spawn(move || {
                gate.store(true, Ordering::SeqCst);
                drop(other.shutdown());
            });
            ender.join().expect("the thread does not panic");
        }
    });
}

/// A job shuts the timer down while the shard's thread waits for room in the executor's queue.
/// Promise 7.
#[test]
fn a_job_may_shut_down_while_the_executor_is_full() {
    in_time(|| {
        let (send, receive) = mpsc::sync_channel::<Job>(0);
        let timer = Timer::builder().shards(1).executor(move |job: Job| drop(send.send(job))).build();
        let timer = timer.expect("settings within their limits");
        let (sender, receiver) = mpsc::channel();
        for _ in 0..10 {
            let (inner, sender) = (timer.clone(), sender.clone());
            let ends = move || {
                thread::sleep(ms(20));
                let _ = sender.send(inner.shutdown().len());
            };
            after(&timer, ms(1), ends);
        }
        let pool = thread::spawn(move || receive.into_iter().for_each(Job::run));
        assert_eq!(hear(&receiver), 8, "one runs, one is with the executor");
        drop(timer);
        drop(receiver);
        drop(pool);
    });
}

/// Two callbacks shut each other's timer down. Promise 7.
#[test]
fn two_callbacks_may_shut_each_others_timer_down() {
    in_time(|| {
        for _ in 0..20 {
            let timers = [threads(1), threads(1)];
            let (ready, ended) = (Count::default(), Count::default());
            for (own, other) in [(0, 1), (1, 0)] {
                let (other, ready, ended) = (timers[other].clone(), ready.clone(), ended.clone());
                let ends = move || {
                    ready.one();
                    until("both callbacks run", || ready.get() == 2);
                    assert_eq!(other.shutdown().len(), 1);
                    ended.one();
                };
                // Set first, as the other callback may end this timer as soon as both run.
                after(&timers[own], HOUR, || ());
                after(&timers[own], ms(1), ends);
            }
            until("both callbacks have ended", || ended.get() == 2);
            timers.iter().for_each(is_balanced);
        }
    });
}

/// Callbacks of two manual clocks move each other's clock. Promise 7.
#[test]
fn two_manual_clocks_may_move_each_other() {
    in_time(|| {
        for _ in 0..50 {
            let sides = [manual(), manual()];
            let (ready, late) = (Count::default(), Count::default());
            for (own, other) in [(0, 1), (1, 0)] {
                let (clock, ready) = (sides[other].1.clone(), ready.clone());
                let moves = move || {
                    ready.one();
                    until("both callbacks run", || ready.get() == 2);
                    clock.advance(ms(100));
                };
                after(&sides[own].0, ms(1), moves);
                after(&sides[own].0, ms(50), late.adds());
            }
            thread::scope(|scope| {
                sides.iter().for_each(|(_, clock)| drop(scope.spawn(|| clock.advance(ms(1)))));
            });
            assert_eq!(late.get(), 2);
            sides.iter().for_each(|(_, clock)| assert_eq!(clock.elapsed(), ms(101)));
        }
    });
}

/// Thread-locals that hold a timer, or move a clock, do so when their thread ends. Promise 7.
#[test]
fn timers_may_be_used_at_a_threads_end() {
    struct Last(Timer, ManualClock, Count);
    impl Drop for Last {
        fn drop(&mut self) {
            let mine = self.2.clone();
            after(&self.0, ms(1), move || mine.one());
            self.1.advance(ms(1));
            drop(self.0.shutdown());
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
        static TIMER: RefCell<Option<Timer>> = const { RefCell::new(None) };
    }
    in_time(|| {
        let count = Count::default();
        for _ in 0..5 {
            let mine = count.clone();
            thread::spawn(move || {
                let (timer, clock) = manual();
                TIMER.set(Some(threads(2)));
                LAST.set(Some(Last(timer, clock, mine)));
                TIMER.with_borrow(|timer| {
                    let timer = timer.as_ref().expect("the value is there");
                    after(&timer, HOUR, || ());
                });
            })
            .join()
            .expect("it ends");
        }
        assert_eq!(count.get(), 5);
    });
}

/// A schedule panics, or ends, and its drop and the drop of its callback panic; so do drops of
/// callbacks at the end. Promise 7.
#[test]
fn panics_in_the_drops_of_schedules_and_callbacks_are_counted() {
    in_time(|| {
        let (timer, clock) = by_hand(Timer::builder().shards(2));
        let count = Count::default();
        for how in 0..3 {
            let (bomb, other, mut runs) = (Bomb(count.clone()), Bomb(count.clone()), 0);
            let schedule = move |at: Instant| {
                let _held = &bomb;
                runs += 1;
                match how {
                    _ if runs == 1 => Some(at + ms(5)),
                    0 => panic_any("a schedule panics"),
                    1 => None,
                    _ => Some(at + HOUR),
                }
            };
            timer.schedule_with(schedule, move || _ = &other).expect("the timer is open");
        }
        clock.advance(ms(10));
        assert_eq!((count.get(), timer.stats().pending), (4, 1));
        for _ in 0..10 {
            let bomb = Bomb(count.clone());
            after(&timer, HOUR, move || drop(bomb));
        }
        let unfired = timer.shutdown();
        assert_eq!((unfired.len(), timer.stats().handed_back, timer.stats().pending), (11, 11, 0));
        drop(unfired);
        assert_eq!((count.get(), timer.stats().panics), (16, 17));
        is_balanced(&timer);
    });
}

/// A clock that the test defines.
struct Scripted<F>(F);

impl<F: Fn() -> Instant + Send + Sync + 'static> Clock for Scripted<F> {
    fn now(&self) -> Instant {
        (self.0)()
    }
}

fn with_clock(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Timer {
    Timer::builder()
        .shards(1)
        .thread_name("unruly")
        .clock(Scripted(clock))
        .build()
        .expect("settings within their limits")
}

/// A clock is set back: a timer that is scheduled then does not fire at once. Promise 1.
#[test]
fn a_clock_that_is_set_back_makes_nothing_early() {
    let back = Arc::new(AtomicBool::new(false));
    let (set, start) = (Arc::clone(&back), Instant::now());
    let timer = with_clock(move || {
        let ahead = if set.load(Ordering::SeqCst) { ms(0) } else { ms(5_000) };
        start + start.elapsed() + ahead * u32::from(start.elapsed() > ms(1))
    });
    thread::sleep(ms(5));
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    after(&timer, ms(1), move || other.send(0).expect("the test waits"));
    assert_eq!(hear(&receiver), 0);
    back.store(true, Ordering::SeqCst);
    after(&timer, ms(50), move || sender.send(1).expect("the test waits"));
    assert!(receiver.recv_timeout(ms(300)).is_err(), "it fires five seconds early");
}

/// A clock that panics on the shard's thread is counted, and the timer works on; a clock that shuts
/// the timer down loses nothing; a clock that parks takes no wake-up. Promises 7 and 8.
#[test]
fn clocks_may_panic_park_and_shut_down() {
    in_time(|| {
        let calls = AtomicUsize::new(0);
        let is_own = || thread::current().name().is_some_and(|name| name.starts_with("unruly"));
        let timer = with_clock(move || {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            if is_own() {
                thread::park_timeout(ms(0));
                assert!(!call.is_multiple_of(3), "the clock panics");
            }
            Instant::now()
        });
        let count = Count::default();
        timer.schedule_every(ms(2), count.adds()).expect("the timer is open");
        until("the timer recurs", || count.get() > 20);
        assert!(timer.stats().panics > 0);
        assert_eq!(timer.shutdown().len(), 1);
        is_balanced(&timer);

        let place = Arc::new(Mutex::new(None::<Timer>));
        let (handed, inner) = (Count::default(), Arc::clone(&place));
        let seen = handed.clone();
        let timer = with_clock(move || {
            if is_own()
                && let Some(timer) = inner.lock().ok().and_then(|mut place| place.take())
            {
                timer.shutdown().for_each(|_| seen.one());
            }
            Instant::now()
        });
        for _ in 0..10 {
            after(&timer, HOUR, || ());
        }
        *place.lock().expect("no thread panics with the lock") = Some(timer.clone());
        // Wakes the thread, unless the timer has been shut down already.
        let _ = timer.schedule_after(ms(1), || ());
        until("the timer is shut down", || handed.get() >= 10);
        is_balanced(&timer);
    });
}

/// A clock at double speed, and one at fifty times: timers are on time by that clock. Promise 1.
#[test]
fn a_fast_clock_is_followed() {
    for speed in [2, 50] {
        let start = Instant::now();
        let timer = with_clock(move || start + speed * start.elapsed());
        let (begin, inner) = (timer.now(), timer.clone());
        let (sender, receiver) = mpsc::channel();
        let tell = move || sender.send(inner.now() - begin).expect("the test waits");
        after(&timer, ms(1_000) * speed, tell);
        let late = hear(&receiver) - ms(1_000) * speed;
        assert!(late < ms(500) * speed, "{late:?} late at speed {speed}");
    }
}

/// The executor's drop panics: what is pending comes back. Promise 8.
#[test]
fn shutdown_returns_what_is_pending_if_the_executors_drop_panics() {
    in_time(|| {
        let bomb = Bomb(Count::default());
        let execute = move |job: Job| {
            let _held = &bomb;
            job.run();
        };
        let builder = Timer::builder().shards(2).thread_name("xunruly").executor(execute);
        let timer = builder.build().expect("settings within their limits");
        let set = || after(&timer, HOUR, || ());
        let count = 1 + usize::from(on_shard(&timer, 1, set).is_some());
        set();
        assert_eq!(timer.shutdown().len(), count);
        are_threads("xunruly-", 0);
        assert_eq!(timer.stats().panics, 1);
        is_balanced(&timer);
    });
}

/// A tick of a nanosecond, with the clock at the end of time. Promise 4.
#[test]
fn scheduling_at_the_end_of_time_does_not_overflow() {
    let (timer, clock) = by_hand(Timer::builder().tick(Duration::from_nanos(1)));
    clock.jump(Duration::MAX);
    let count = Count::default();
    after(&timer, ms(1), count.adds());
    timer.schedule_at(Instant::now(), || ()).expect("the timer is open");
    clock.advance(ms(1));
    is_balanced(&timer);
}
