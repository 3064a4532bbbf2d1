//! Driven timers with what else a program uses. `tests/README.md` has the table of pairs.

use std::future::pending;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::time::Duration;

#[cfg(target_os = "linux")]
use shardwheel::Timer;
use shardwheel::{Deadline, ScheduleErrorKind, TimeoutError};

use crate::by_hand;
use crate::support::poll;
#[cfg(target_os = "linux")]
use crate::support::{alone, number_of_threads};

const SECOND: Duration = Duration::from_secs(1);

/// The loop's deadlines lie in the windows.
#[test]
fn windows_on_a_driven_timer() {
    let (clock, timer, mut driver) = by_hand();
    let start = timer.now();
    let (sender, receiver) = mpsc::channel();
    timer.schedule_within(50 * SECOND..=60 * SECOND, move || sender.send(()).unwrap()).unwrap();
    let mut sleep = timer.sleep_within(45 * SECOND..=59 * SECOND);
    let mut limit = Box::pin(timer.timeout_within(30 * SECOND..=58 * SECOND, pending::<()>()));
    assert!(poll(&mut sleep, Waker::noop()).is_pending() && poll(&mut limit, Waker::noop()).is_pending());
    let mut ended = Vec::new();
    while timer.stats().pending > 0 {
        let next = driver.next_deadline().expect("something is pending");
        clock.advance(next.saturating_duration_since(timer.now()));
        if driver.turn() > 0 {
            ended.push((timer.now() - start).as_secs());
        }
    }
    assert!(receiver.try_recv().is_ok());
    assert!(poll(&mut sleep, Waker::noop()).is_ready() && poll(&mut limit, Waker::noop()).is_ready());
    let [30..58, 45..59, 50..60] = ended[..] else { panic!("not in their windows: {ended:?}") };
}

/// A time limit that ends at an inherited deadline looks at the clock itself; one that ends by itself
/// waits for a turn.
#[test]
fn an_inherited_deadline_needs_no_turn() {
    let (clock, timer, mut driver) = by_hand();
    let mut own = pin!(timer.timeout(SECOND, pending::<()>()));
    let deadline = Deadline { at: timer.now() + SECOND };
    let mut inherited = pin!(deadline.sync_scope_by(&timer, || timer.timeout(60 * SECOND, pending::<()>())));
    let elapsed = Poll::Ready(Err(TimeoutError::Elapsed));
    assert!(poll(&mut own, Waker::noop()).is_pending() && poll(&mut inherited, Waker::noop()).is_pending());
    clock.advance(SECOND);
    assert_eq!(poll(&mut inherited, Waker::noop()), elapsed);
    assert!(poll(&mut own, Waker::noop()).is_pending());
    driver.turn();
    assert_eq!(poll(&mut own, Waker::noop()), elapsed);
}

/// A group ends its members on the loop; the driver goes on until the timer ends.
#[test]
fn groups_on_a_driven_timer() {
    let (clock, timer, mut driver) = by_hand();
    let (group, other) = (timer.group(), timer.group());
    let (sender, receiver) = mpsc::channel();
    let note = sender.clone();
    group.schedule_every(SECOND, move || note.send("group").unwrap()).unwrap();
    other.schedule_after(3 * SECOND, move || sender.send("other").unwrap()).unwrap();
    let mut sleep = group.sleep(2 * SECOND);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    clock.advance(SECOND);
    assert_eq!((driver.turn(), receiver.try_recv()), (1, Ok("group")));

    // By its handle, the group alone is shut down: it gives its callback back, and wakes its sleep.
    let unfired: Vec<_> = group.shutdown().collect();
    assert_eq!((unfired.len(), group.len(), other.len(), driver.has_ended()), (1, 0, 1, false));
    drop(unfired);
    driver.turn();
    assert!(poll(&mut sleep, Waker::noop()).is_ready(), "it is cancelled");
    let refused = group.schedule_after(SECOND, || ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Cancelled);
    clock.advance(SECOND * 2);
    assert_eq!((driver.turn(), receiver.try_recv()), (1, Ok("other")));

    // The last handle of a group is the last one of the timer.
    drop((group, timer));
    assert!(!driver.has_ended());
    drop(other);
    assert!(driver.has_ended() && driver.turn() == 0);
}

/// The settings of threads have no effect: no thread starts, and the loop's own is not pinned.
#[cfg(target_os = "linux")]
#[test]
fn settings_of_threads_on_a_driven_timer() {
    fn cores() -> libc::cpu_set_t {
        // SAFETY: a set of bits, for which zeros are valid.
        let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is that large.
        let got = unsafe { libc::sched_getaffinity(0, size_of_val(&cores), &raw mut cores) };
        assert_eq!(got, 0);
        cores
    }
    alone(|| {
        let (before, own) = (number_of_threads(), cores());
        let hook = || unreachable!("there are no threads");
        let builder = Timer::builder().pin_to_cores(true).shards(2).thread_name("unused");
        let (timer, mut driver) = builder.on_thread_start(hook).on_thread_stop(hook).build_driven().unwrap();
        let (sender, receiver) = mpsc::channel();
        timer.schedule_after(Duration::from_millis(1), move || sender.send(()).unwrap()).unwrap();
        while receiver.try_recv().is_err() {
            driver.turn();
        }
        drop(driver);
        assert_eq!(number_of_threads(), before);
        // SAFETY: both were filled by the system.
        assert!(unsafe { libc::CPU_EQUAL(&own, &cores()) }, "the loop's thread was pinned");
    });
}
