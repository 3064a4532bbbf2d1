//! Clocks that are set back, are at the end of time, or run at another speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use shardwheel::{Clock, ManualClock, Timer};

use crate::support::{
    Built, Count, Fuse, HOUR, Tampered, after, hear, is_balanced, ms, secs, until, watched,
};

/// The system's clock plus a number of milliseconds.
#[derive(Clone, Default)]
struct Set(Arc<AtomicU64>);

impl Set {
    /// Sets the clock, and has the timer's shard read it twice: the shard has reached that time
    /// when the turn is over.
    fn to(&self, ahead: Duration, timer: &Timer) {
        self.0.store(ahead.as_millis() as u64, Ordering::SeqCst);
        for _ in 0..2 {
            let (sender, receiver) = std::sync::mpsc::channel();
            after(timer, ms(0), move || sender.send(()).expect("the test waits"));
            hear(&receiver);
        }
    }
}

impl Clock for Set {
    fn now(&self) -> Instant {
        Instant::now() + ms(self.0.load(Ordering::SeqCst))
    }
}

/// Sets a timer for five seconds from now, and counts when it fires.
type InFiveSeconds = fn(&Timer, Count);

/// Those by instants count from the timer's own time.
const WAYS: [(&str, InFiveSeconds); 8] = [
    ("schedule_after", |timer, count| _ = after(timer, secs(5), move || count.one())),
    ("schedule_every", |timer, count| {
        timer.schedule_every(secs(5), move || count.one()).expect("the timer is open");
    }),
    ("reschedule_after", |timer, count| {
        let key = after(timer, HOUR, move || count.one());
        timer.reschedule_after(key, secs(5)).expect("the timer is pending");
    }),
    ("sleep", |timer, count| wait(count, timer.sleep(secs(5)))),
    ("timeout", |timer, count| wait(count, timer.timeout(secs(5), std::future::pending::<()>()))),
    ("interval", |timer, count| {
        let mut interval = timer.interval(secs(5));
        wait(count, async move {
            interval.tick().await?;
            interval.tick().await
        });
    }),
    ("schedule_at", |timer, count| {
        timer.schedule_at(timer.now() + secs(5), move || count.one()).expect("the timer is open");
    }),
    ("sleep_until", |timer, count| wait(count, timer.sleep_until(timer.now() + secs(5)))),
];

/// Counts when the future is ready.
fn wait<F: Future<Output: Send> + Send + 'static>(count: Count, future: F) {
    thread::spawn(move || {
        drop(block_on(future));
        count.one();
    });
}

/// A timer for five seconds from now does not fire at once.
fn comes_in_five_seconds((way, set_for): (&'static str, InFiveSeconds)) {
    watched(move || {
        let clock = Set::default();
        let timer = Timer::builder().shards(1).clock(clock.clone()).built();
        clock.to(secs(10), &timer);
        clock.0.store(0, Ordering::SeqCst);
        let count = Count::default();
        set_for(&timer, count.clone());
        thread::sleep(ms(100));
        assert_eq!(count.get(), 0, "{way}: five seconds early");
        clock.to(secs(20), &timer);
        until(way, || count.get() >= 1);
    });
}

/// After the clock was set back, each way to set a delay of five seconds takes five seconds, also by
/// `Timer::now`, which returns the time that the timer uses. All ways are tried at the same time,
/// because most of the time is waiting. Promise 1.
#[test]
fn a_clock_that_is_set_back_makes_no_delay_short() {
    thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || comes_in_five_seconds(way));
        }
    });
}

/// Ticks of a nanosecond, of which 64 bits hold 584 years, with the clock at its end. Promise 4.
#[test]
fn scheduling_at_the_end_of_time_does_not_overflow() {
    watched(|| {
        let clock = ManualClock::new();
        let timer = Timer::builder().shards(1).tick(Duration::from_nanos(1)).clock(clock.clone()).built();
        clock.advance(Duration::MAX);
        let key = after(&timer, ms(1), || ());
        after(&timer, ms(0), || ());
        timer.schedule_at(timer.now(), || ()).expect("the timer is open");
        assert!(timer.reschedule_after(key, ms(2)).is_some());
        drop((timer.sleep(ms(1)), timer.interval(ms(1))));
        clock.advance(ms(1));
        let stats = timer.stats();
        assert_eq!(timer.shutdown().len(), stats.pending);
        assert_eq!(timer.stats().pending, 0);
    });
}

/// A shard with more due than one turn runs goes on at once, although its clock is ahead of the
/// system's, by which its thread sleeps. Promise 1.
#[test]
fn a_shard_that_is_behind_goes_on_by_a_clock_that_is_ahead() {
    watched(|| {
        let clock = Set::default();
        let timer = Timer::builder().shards(1).clock(clock.clone()).built();
        clock.to(HOUR, &timer);
        let (count, repeated) = (Count::default(), Count::default());
        for _ in 0..5_000 {
            after(&timer, ms(20), count.adds());
        }
        until("all have fired", || count.get() == 5_000);

        timer.schedule_every(ms(100), repeated.adds()).expect("the timer is open");
        clock.to(2 * HOUR, &timer);
        until("an hour is made up for", || repeated.get() >= 36_000);
    });
}

/// A clock that is `times` as fast as the system's.
struct Fast {
    start: Instant,
    times: u32,
}

impl Clock for Fast {
    fn now(&self) -> Instant {
        self.start + self.times * self.start.elapsed()
    }
}

/// How long eight seconds by that clock take.
fn eight_seconds(times: u32) -> Duration {
    let start = Instant::now();
    let timer = Timer::builder().shards(1).clock(Fast { start, times }).built();
    let (sender, receiver) = std::sync::mpsc::channel();
    let begin = Instant::now();
    after(&timer, secs(8), move || sender.send(begin.elapsed()).expect("the test waits"));
    hear(&receiver)
}

/// The documented clock at double speed, and one at eight times. Promise 1.
#[test]
fn a_fast_clock_is_followed() {
    watched(|| {
        let took = [2, 8].map(|times| thread::spawn(move || eight_seconds(times)));
        let [double, eightfold] = took.map(|thread| thread.join().expect("the thread does not panic"));
        assert!((secs(4)..ms(6_500)).contains(&double), "{double:?}");
        assert!((secs(1)..ms(3_500)).contains(&eightfold), "{eightfold:?}");
    });
}

/// A clock around a manual one that panics, or stands, while the manual clock is moved.
struct Around {
    manual: ManualClock,
    /// 0: it goes with the manual clock; 1: it panics; 2: it stands at the start.
    mood: Arc<AtomicU64>,
    start: Instant,
}

impl Clock for Around {
    fn now(&self) -> Instant {
        match self.mood.load(Ordering::SeqCst) {
            0 => self.manual.now(),
            1 => panic!("the clock panics"),
            _ => self.start,
        }
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        Some(&self.manual)
    }
}

/// A manual clock can be moved although the clock around it panics or stands. What is due fires
/// when that clock shows the time again. Promise 7.
#[test]
fn a_manual_clock_moves_although_the_clock_around_it_lags() {
    for mood in [1, 2] {
        for is_jump in [false, true] {
            watched(move || {
                let (manual, moods) = (ManualClock::new(), Arc::new(AtomicU64::new(0)));
                let start = manual.now();
                let clock = Around { manual: manual.clone(), mood: Arc::clone(&moods), start };
                let timer = Timer::builder().shards(2).clock(clock).built();
                let count = Count::default();
                after(&timer, ms(5), count.adds());
                moods.store(mood, Ordering::SeqCst);
                for _ in 0..2 {
                    if is_jump {
                        manual.jump(ms(10))
                    } else {
                        manual.advance(ms(10))
                    }
                    assert_eq!(count.get(), 0);
                }
                moods.store(0, Ordering::SeqCst);
                manual.advance(ms(1));
                assert_eq!(count.get(), 1);
            });
        }
    }
}

/// A clock that panics once does not keep what is due from the same move of the clock. Promise 1.
#[test]
fn what_is_due_fires_in_the_same_move_although_the_clock_panics_once() {
    for reading in 1..=12 {
        watched(move || {
            let (manual, fuse) = (ManualClock::new(), Fuse::default());
            let lit = fuse.clone();
            let before = move || assert!(!lit.goes_off(), "the clock panics once");
            let clock = Tampered { before, manual: Some(manual.clone()) };
            let timer = Timer::builder().shards(1).clock(clock).built();
            let count = Count::default();
            for due in [5, 7] {
                after(&timer, ms(due), count.adds());
            }
            fuse.set(reading);
            manual.advance(ms(10));
            assert_eq!(count.get(), 2, "it panics at reading {reading}");
            fuse.set(0);
            assert!(timer.shutdown().is_empty());
            is_balanced(&timer);
        });
    }
}

/// With a tick of a nanosecond the clock comes to the end of time. What never ends does not end
/// there, and what is begun there does not end at once. Promises 1 and 4.
#[test]
fn nothing_that_never_ends_ends_at_the_end_of_time() {
    for is_jump in [false, true] {
        watched(move || {
            let clock = ManualClock::new();
            let timer = Timer::builder().tick(Duration::from_nanos(1)).shards(1).clock(clock.clone()).built();
            let (never, recurring, late) = (Count::default(), Count::default(), Count::default());
            let (mine, often, begun) = (never.clone(), recurring.clone(), late.clone());
            let century = HOUR * 24 * 365 * 100;
            after(&timer, Duration::MAX, move || mine.one());
            timer.schedule_every(century, move || often.one()).expect("the timer is open");
            if is_jump {
                clock.jump(Duration::MAX)
            } else {
                clock.advance(Duration::MAX)
            }
            assert_eq!((never.get(), recurring.get()), (0, 5));
            after(&timer, century, move || begun.one());
            clock.advance(ms(1));
            assert_eq!((never.get(), recurring.get(), late.get()), (0, 5, 0));
            // After a jump the clock has come to its end when the last occurrence has run, so the
            // recurring timer has ended. Otherwise its next occurrence is one that never comes.
            assert_eq!(timer.shutdown().len(), if is_jump { 2 } else { 3 });
        });
    }
}
