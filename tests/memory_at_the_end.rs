//! What the end of a timer allocates, and what members of a group leave behind. The allocator counts
//! for the whole process, so one test runs all steps in turn.

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use futures::executor::block_on_stream;
use shardwheel::{ManualClock, Timer};
use support::HOUR;
use support::allocator::{Counting, in_use, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: isize = 1 << 20;

/// Timers of which a copy would take more than 6 MiB.
const TIMERS: usize = 100_000;

/// Bytes that may be allocated however many timers there are.
const CONSTANT: isize = MIB;

fn full_timer(by_hand: bool) -> Timer {
    let builder = Timer::builder().shards(2);
    let builder = if by_hand { builder.clock(ManualClock::new()) } else { builder };
    let timer = builder.build().expect("settings within their limits");
    (0..TIMERS).for_each(|_| assert!(timer.schedule_after(HOUR, || ()).is_ok()));
    timer
}

/// A timer's end, by drop or by shutdown, copies nothing.
fn ends_without_a_copy(by_hand: bool) {
    let timer = full_timer(by_hand);
    let (peak, ()) = peak_of(|| drop(timer));
    assert!(peak <= CONSTANT, "a dropped timer allocates {peak} bytes");

    let timer = full_timer(by_hand);
    let (peak, mut unfired) = peak_of(|| timer.shutdown());
    assert!(peak <= CONSTANT, "shutdown allocates {peak} bytes");
    assert_eq!(unfired.len(), TIMERS);
    let (peak, taken) = peak_of(|| unfired.by_ref().take(TIMERS / 2).count());
    assert!(peak <= CONSTANT, "taking what has not fired allocates {peak} bytes");
    assert_eq!((taken, unfired.len()), (TIMERS / 2, TIMERS - TIMERS / 2));
    let (peak, ()) = peak_of(|| drop(unfired));
    assert!(peak <= CONSTANT, "dropping the rest allocates {peak} bytes");
    assert_eq!(timer.stats().handed_back, TIMERS as u64);
}

/// Sleeps, which shutdown wakes, are not copied either.
fn sleeps_end_without_a_copy() {
    const SLEEPS: usize = 100_000;
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    let wait = |_| {
        let mut interval = timer.interval_at(timer.now() + HOUR, HOUR);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(futures::Stream::poll_next(std::pin::Pin::new(&mut interval), &mut context).is_pending());
        interval
    };
    let mut waiting: Vec<_> = (0..SLEEPS).map(wait).collect();
    let (peak, unfired) = peak_of(|| timer.shutdown());
    assert!(unfired.is_empty());
    assert!(peak <= CONSTANT, "shutdown allocates {peak} bytes for sleeps");
    let last = waiting.pop().expect("the list is not empty");
    assert!(block_on_stream(last).next().is_some_and(|tick| tick.is_err()));
}

/// Members of a group that come and go leave nothing, however many they were, and however many were
/// pending at a time.
fn members_leave_little() {
    const AT_ONCE: usize = 100_000;
    let timer = Timer::builder().clock(ManualClock::new()).shards(1).build().expect("they are within limits");
    let group = timer.group();
    let schedule = || group.schedule_after(HOUR, || ()).expect("the timer is open");
    let mut pending: std::collections::VecDeque<_> = (0..64).map(|_| schedule()).collect();
    let (peak, ()) = peak_of(|| {
        for _ in 0..200_000 {
            pending.push_back(schedule());
            assert!(pending.pop_front().is_some_and(|key| timer.cancel(key)));
        }
    });
    assert!(peak <= CONSTANT, "200,000 members take {peak} bytes");
    assert_eq!((group.len(), group.cancel_all()), (64, 64));

    let keys: Vec<_> = (0..AT_ONCE).map(|_| schedule()).collect();
    // In another order than they came, and all but a few.
    let leave = |i: usize| keys[i * 77_777 % AT_ONCE];
    assert!((0..AT_ONCE - 50).all(|i| timer.cancel(leave(i))));
    assert_eq!(group.len(), 50);
    let with_few = in_use();
    drop(group);
    let kept = with_few - in_use();
    assert!((1..=MIB / 16).contains(&kept), "50 members of once {AT_ONCE} take {kept} bytes");
}

/// The time is asked for without a timer: none is made, and that of a scope is not kept.
fn the_time_keeps_nothing() {
    let before = in_use();
    let scope = || {
        let clock = ManualClock::new();
        let (seen, _) = clock.scope(shardwheel::now);
        assert_eq!(seen, shardwheel::Clock::now(&clock));
    };
    let (peak, _) = peak_of(shardwheel::now);
    assert_eq!(peak, 0, "the time outside of all scopes allocates {peak} bytes");
    (0..20).for_each(|_| scope());
    let kept = in_use() - before;
    assert!(kept <= MIB / 16, "20 scopes in which the time was asked for keep {kept} bytes");
}

/// All steps in turn, as the counts are those of the process; failures are listed at the end.
#[test]
fn the_end_of_a_timer_copies_nothing() {
    let steps: [(&str, fn()); 5] = [
        ("time", the_time_keeps_nothing),
        ("threads", || ends_without_a_copy(false)),
        ("by hand", || ends_without_a_copy(true)),
        ("sleeps", sleeps_end_without_a_copy),
        ("members", members_leave_little),
    ];
    let failed: Vec<_> =
        steps.into_iter().filter(|(_, step)| std::panic::catch_unwind(step).is_err()).collect();
    let names: Vec<_> = failed.into_iter().map(|(name, _)| name).collect();
    assert!(names.is_empty(), "{names:?}");
}
