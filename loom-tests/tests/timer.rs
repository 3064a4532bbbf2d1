//! `Timer` against its own threads: a callback that is cancelled while it fires (hazard 4), a
//! future that is polled, dropped or reset while it fires (hazard 12), callbacks that act on the
//! bucket that is being flushed (hazard 9), and the end (hazard 10). Members of a group against its
//! end (hazard 19).
//!
//! The timer has no threads here. One thread of the model drives it by a manual clock, another
//! thread is the user. (How a shard's own thread sleeps and wakes is the shard's protocol, modelled
//! as hazard 6, plus the park and unpark of the standard library.)

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shardwheel::{ManualClock, Sleep, SleepError, Timer};
use shardwheel_loom_tests::{CountingWake, model, thread};

const TICK: Duration = Duration::from_millis(1);

fn small_timer() -> (ManualClock, Timer) {
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone()).tick(TICK).wheel_size(4).shards(1);
    (clock, builder.build().expect("the settings are valid"))
}

fn poll(sleep: &mut Sleep, waker: &Waker) -> Poll<Result<(), SleepError>> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

/// A sleep of one tick, polled once.
fn sleeping(timer: &Timer) -> (Sleep, Arc<CountingWake>, Waker) {
    sleeping_for(timer, 1)
}

/// A sleep of `ticks` ticks, polled once.
fn sleeping_for(timer: &Timer, ticks: u32) -> (Sleep, Arc<CountingWake>, Waker) {
    let (woken, waker) = CountingWake::waker();
    let mut sleep = timer.sleep(ticks * TICK);
    assert!(poll(&mut sleep, &waker).is_pending());
    (sleep, woken, waker)
}

/// Moves the clock by `ticks` ticks, on another thread.
fn drive(clock: &ManualClock, ticks: u32) -> impl FnOnce() + use<> {
    let clock = clock.clone();
    let driver = thread::spawn(move || clock.advance(ticks * TICK));
    move || driver.join().expect("the driver does not panic")
}

/// If the poll is pending, the waker that it brought is woken; then the sleep is over.
fn polled_while_it_fires(another: bool) {
    model(move || {
        let (clock, timer) = small_timer();
        let (mut sleep, first, waker) = sleeping(&timer);
        let (second, other) = CountingWake::waker();
        let (waker, woken) = if another { (other, second) } else { (waker, first) };
        let driven = drive(&clock, 2);
        let polled = poll(&mut sleep, &waker);
        driven();
        // A timer that was added just after the advance fires at the next one.
        clock.advance(TICK);
        assert!(polled.is_ready() || woken.count() == 1, "told to wait, and not woken");
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    });
}

#[test]
fn hazard_12_polled_while_it_fires() {
    polled_while_it_fires(false);
}

/// The clock reaches tick `deadline` while a poll brings another waker. The poll is ready, or that
/// waker is woken, without a further advance.
fn another_waker_while_the_clock_comes_to(deadline: u32) {
    model(move || {
        let (clock, timer) = small_timer();
        let (mut sleep, _first, _) = sleeping_for(&timer, deadline);
        clock.advance((deadline - 1) * TICK);
        let (woken, waker) = CountingWake::waker();
        let driven = drive(&clock, 1);
        let polled = poll(&mut sleep, &waker);
        driven();
        assert!(polled.is_ready() || woken.count() == 1, "told to wait, and not woken");
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    });
}

#[test]
fn hazard_12_another_waker_while_the_clock_comes_to_the_deadline() {
    another_waker_while_the_clock_comes_to(1);
}

/// The advancer passes no fence to reach that tick, which it has sealed at the tick before.
#[test]
fn hazard_12_another_waker_while_the_clock_comes_to_a_sealed_deadline() {
    another_waker_while_the_clock_comes_to(3);
}

/// A poll brings another waker while another thread looks for room: the sleep keeps its room.
#[test]
fn hazard_12_another_waker_while_there_is_no_room() {
    model(|| {
        let clock = ManualClock::new();
        let builder = Timer::builder().clock(clock).tick(TICK).wheel_size(4).shards(1).max_pending(1);
        let timer = builder.build().expect("the settings are valid");
        let (mut sleep, _first, _) = sleeping(&timer);
        let other = {
            let timer = timer.clone();
            thread::spawn(move || assert!(timer.schedule_after(TICK, || ()).is_err()))
        };
        let (_woken, waker) = CountingWake::waker();
        assert!(poll(&mut sleep, &waker).is_pending(), "refused, an hour early");
        other.join().expect("it is refused");
    });
}

#[test]
fn hazard_12_the_waker_is_replaced_while_it_fires() {
    polled_while_it_fires(true);
}

#[test]
fn hazard_12_first_polled_while_its_tick_passes() {
    model(|| {
        let (clock, timer) = small_timer();
        let (woken, waker) = CountingWake::waker();
        let mut sleep = timer.sleep(TICK);
        let driven = drive(&clock, 2);
        let polled = poll(&mut sleep, &waker);
        driven();
        // As above.
        clock.advance(TICK);
        assert!(polled.is_ready() || woken.count() == 1);
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    });
}

#[test]
fn hazard_12_dropped_while_it_fires() {
    model(|| {
        let (clock, timer) = small_timer();
        let (sleep, woken, waker) = sleeping(&timer);
        drop(waker);
        let driven = drive(&clock, 2);
        drop(sleep);
        driven();
        assert_eq!(Arc::strong_count(&woken), 1, "a waker is kept");
        let stats = timer.stats();
        assert_eq!((stats.fired + stats.cancelled, stats.pending), (1, 0));
        assert_eq!(woken.count() as u64, stats.fired);
    });
}

/// The task is woken whether the reset comes before the fire or after it: by the fire, or at the
/// new deadline.
fn reset_while_it_fires(ticks: u32) {
    model(move || {
        let (clock, timer) = small_timer();
        let (mut sleep, woken, waker) = sleeping(&timer);
        let until = timer.now() + ticks * TICK;
        let driven = drive(&clock, 2);
        sleep.reset(until);
        driven();
        if woken.count() == 0 {
            clock.advance(ticks * TICK);
            assert_eq!(woken.count(), 1, "neither fired before the reset nor after");
        } else if poll(&mut sleep, &waker).is_pending() {
            clock.advance(ticks * TICK);
        }
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
        assert!(timer.now() >= until);
    });
}

#[test]
fn hazard_12_put_off_while_it_fires() {
    reset_while_it_fires(3);
}

#[test]
fn hazard_12_brought_forward_while_it_fires() {
    reset_while_it_fires(0);
}

#[test]
fn hazard_12_polled_while_the_timer_ends() {
    model(|| {
        let (_clock, timer) = small_timer();
        let (woken, waker) = CountingWake::waker();
        let mut sleep = timer.sleep(TICK);
        let ender = {
            let timer = timer.clone();
            thread::spawn(move || assert!(timer.shutdown().is_empty()))
        };
        let polled = poll(&mut sleep, &waker);
        ender.join().unwrap();
        assert!(polled.is_ready() || woken.count() == 1);
        let Poll::Ready(Err(error)) = poll(&mut sleep, &waker) else { panic!("it waits for ever") };
        assert!(error.is_shut_down());
    });
}

/// A poll that finds its timer gone because the `Timer` has shut down returns that error; the sleep
/// does not resolve early.
#[test]
fn hazard_12_polled_again_while_the_timer_ends() {
    model(|| {
        let (_clock, timer) = small_timer();
        let (mut sleep, _woken, waker) = sleeping(&timer);
        let poller = thread::spawn(move || match poll(&mut sleep, &waker) {
            Poll::Ready(Ok(())) => panic!("it is early"),
            Poll::Ready(Err(error)) => assert!(error.is_shut_down()),
            Poll::Pending => {}
        });
        assert!(timer.shutdown().is_empty());
        poller.join().unwrap();
    });
}

#[test]
fn hazard_4_a_callback_is_cancelled_while_it_fires() {
    model(|| {
        let (clock, timer) = small_timer();
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let once = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let key = timer.schedule_after(TICK, once).unwrap();
        let driven = drive(&clock, 1);
        let cancelled = timer.cancel(key);
        driven();
        assert_eq!(count.load(Ordering::Relaxed) + usize::from(cancelled), 1);
        assert_eq!(Arc::strong_count(&count), 1, "its callback is kept");
    });
}

/// A callback cancels its neighbour, as another thread does, and schedules for the tick that is
/// being drained.
#[test]
fn hazard_9_a_callback_reaches_into_its_own_bucket() {
    model(|| {
        let (clock, timer) = small_timer();
        let [fired, later] = [0; 2].map(|_| Arc::new(AtomicUsize::new(0)));
        let count = |counter: &Arc<AtomicUsize>| {
            let counter = Arc::clone(counter);
            move || {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let neighbour = timer.schedule_after(2 * TICK, count(&fired)).unwrap();
        let (own, soon) = (timer.clone(), count(&later));
        let cancelled = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cancelled);
        let callback = move || {
            counted.fetch_add(usize::from(own.cancel(neighbour)), Ordering::Relaxed);
            own.schedule_after(Duration::ZERO, soon).unwrap();
        };
        timer.schedule_after(2 * TICK, callback).unwrap();
        let driven = drive(&clock, 2);
        cancelled.fetch_add(usize::from(timer.cancel(neighbour)), Ordering::Relaxed);
        driven();
        clock.advance(TICK);
        assert_eq!(fired.load(Ordering::Relaxed) + cancelled.load(Ordering::Relaxed), 1);
        assert_eq!(later.load(Ordering::Relaxed), 1);
        assert_eq!(timer.stats().pending, 0);
    });
}

/// A recurring timer is cancelled while its callback may be running: the callback does not start
/// again.
#[test]
fn hazard_9_a_recurring_timer_is_cancelled_while_it_runs() {
    model(|| {
        let (clock, timer) = small_timer();
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let every = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let key = timer.schedule_every(TICK, every).unwrap();
        let driven = drive(&clock, 1);
        assert!(timer.cancel(key));
        driven();
        let before = count.load(Ordering::Relaxed);
        clock.advance(3 * TICK);
        assert_eq!(count.load(Ordering::Relaxed), before, "it fired after it was cancelled");
        assert_eq!(Arc::strong_count(&count), 1, "its callback is kept");
        let stats = timer.stats();
        assert_eq!((stats.scheduled, stats.cancelled, stats.pending), (1, 1, 0));
    });
}

#[test]
fn hazard_10_the_timer_ends_while_one_schedules() {
    model(|| {
        let (_clock, timer) = small_timer();
        let ender = {
            let timer = timer.clone();
            thread::spawn(move || timer.shutdown().len())
        };
        let refused = timer.schedule_after(TICK, || ()).is_err();
        let unfired = ender.join().unwrap();
        assert_eq!(unfired + usize::from(refused), 1);
    });
}

/// A group's member: what became of its callback.
fn member(fate: &Arc<AtomicUsize>) -> impl FnOnce() + Send + use<> {
    let fate = Arc::clone(fate);
    move || assert_eq!(fate.fetch_add(1, Ordering::Relaxed), 0, "it fires once")
}

/// A member is being scheduled while its group is cancelled: it is counted, or comes back as an
/// error, or stays. A handle that is dropped afterwards leaves nothing pending.
#[test]
fn hazard_19_a_member_is_scheduled_while_its_group_is_cancelled() {
    model(|| {
        let (_clock, timer) = small_timer();
        let (group, fate) = (timer.group(), Arc::new(AtomicUsize::new(0)));
        let canceller = {
            let group = group.clone();
            thread::spawn(move || group.cancel_all())
        };
        let scheduled = group.schedule_after(TICK, member(&fate));
        let counted = canceller.join().expect("it does not panic");
        let stays = group.len();
        assert_eq!(usize::from(scheduled.is_err()) + counted + stays, 1);
        assert_eq!(timer.stats().pending, stays);
        drop(group);
        drop(scheduled);
        assert_eq!((timer.stats().pending, Arc::strong_count(&fate)), (0, 1), "a callback is kept");
    });
}

/// A member fires while its group is cancelled: it fires, or is counted.
#[test]
fn hazard_19_a_member_fires_while_its_group_is_cancelled() {
    model(|| {
        let (clock, timer) = small_timer();
        let (group, fate) = (timer.group(), Arc::new(AtomicUsize::new(0)));
        group.schedule_after(TICK, member(&fate)).expect("the timer is open");
        let driven = drive(&clock, 2);
        let counted = group.cancel_all();
        driven();
        clock.advance(TICK);
        assert_eq!(counted + fate.load(Ordering::Relaxed), 1);
        assert_eq!((group.len(), Arc::strong_count(&fate)), (0, 1));
    });
}

/// A member is moved to another node while its group is cancelled: it ends, and is counted or was
/// not to be moved any more.
#[test]
fn hazard_19_a_member_is_moved_while_its_group_is_cancelled() {
    model(|| {
        let (_clock, timer) = small_timer();
        let (group, fate) = (timer.group(), Arc::new(AtomicUsize::new(0)));
        let key = group.schedule_after(3 * TICK, member(&fate)).expect("the timer is open");
        let canceller = {
            let group = group.clone();
            thread::spawn(move || group.cancel_all())
        };
        let moved = timer.reschedule_after(key, TICK);
        let counted = canceller.join().expect("it does not panic");
        assert!(counted == 1 || moved.is_none());
        assert_eq!((timer.stats().pending, group.len(), Arc::strong_count(&fate)), (0, 0, 1));
    });
}

/// A sleep is polled, for the first time or with another waker, while its group is cancelled: the
/// poll is ready, or its waker is woken.
#[test]
fn hazard_19_a_sleep_is_polled_while_its_group_is_cancelled() {
    for is_first in [true, false] {
        model(move || {
            let (_clock, timer) = small_timer();
            let group = timer.group();
            let mut sleep = group.sleep(TICK);
            let (_former, former) = CountingWake::waker();
            assert!(is_first || poll(&mut sleep, &former).is_pending());
            let canceller = thread::spawn(move || group.cancel_all());
            let (woken, waker) = CountingWake::waker();
            let polled = poll(&mut sleep, &waker);
            canceller.join().expect("it does not panic");
            assert!(polled.is_ready() || woken.count() >= 1, "told to wait, and not woken");
            assert!(matches!(poll(&mut sleep, &waker), Poll::Ready(Err(_))));
            assert_eq!(timer.stats().pending, 0);
        });
    }
}
