//! A `Timer` whose requests for memory are refused. A manual clock drives it on the thread that is
//! refused.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shardwheel::{ManualClock, ScheduleErrorKind, Timer};

use crate::at_every_request;
use crate::support::allocator::short;
use crate::support::{Bell, HOUR};

fn timer() -> (Timer, ManualClock) {
    timer_of(1)
}

fn timer_of(shards: usize) -> (Timer, ManualClock) {
    let clock = ManualClock::new();
    let builder = Timer::builder().shards(shards).wheel_size(16).clock(clock.clone());
    (builder.build().expect("settings within their limits"), clock)
}

fn is_no_memory(kind: ScheduleErrorKind) -> bool {
    matches!(kind, ScheduleErrorKind::OutOfMemory { .. })
}

fn add(runs: &AtomicUsize, more: usize) {
    runs.fetch_add(more, Ordering::Relaxed);
}

/// Callbacks that fit into a node: each is accepted or comes back.
#[test]
fn callbacks_are_accepted_or_come_back() {
    at_every_request(|| {
        let ((timer, clock), runs) = (timer(), Arc::new(AtomicUsize::new(0)));
        let mut set = 0;
        for i in 0..20 {
            let counted = Arc::clone(&runs);
            let run = move || add(&counted, 1);
            match short(|| timer.schedule_after(Duration::from_millis(1 << i), run)) {
                Ok(_) => set += 1,
                Err(refused) => {
                    assert!(is_no_memory(refused.kind()));
                    // The refused callback can be called.
                    refused.into_payload()();
                    set += 1;
                }
            }
        }
        clock.advance(HOUR);
        assert_eq!(runs.load(Ordering::Relaxed), set);
        assert_eq!(Arc::strong_count(&runs), 1);
    });
}

/// A thread's first call of a timer, with several shards, after it has used many others.
#[test]
fn a_first_call_is_accepted_or_comes_back() {
    at_every_request(|| {
        let timers: Vec<_> = (0..9).map(|_| timer_of(4)).collect();
        for (timer, clock) in &timers {
            let runs = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&runs);
            let run = move || add(&counted, 1);
            match short(|| timer.schedule_after(HOUR, run)) {
                Ok(_) => assert_eq!(timer.stats().pending, 1),
                Err(refused) => {
                    assert!(is_no_memory(refused.kind()));
                    refused.into_payload()();
                }
            }
            clock.advance(HOUR);
            assert_eq!(runs.load(Ordering::Relaxed), 1);
        }
    });
}

/// A sleep is pending, or its poll returns the refusal.
#[test]
fn a_sleep_is_pending_or_refused() {
    at_every_request(|| {
        let (timer, clock) = timer();
        let mut context = Context::from_waker(Waker::noop());
        let mut refused = 0;
        for bits in 0..20 {
            let mut sleep = short(|| timer.sleep(Duration::from_millis(1 << bits)));
            match short(|| Pin::new(&mut sleep).poll(&mut context)) {
                Poll::Pending => sleep.reset(timer.now() + HOUR),
                Poll::Ready(Err(error)) if is_no_memory(error.kind()) => refused += 1,
                Poll::Ready(result) => panic!("{result:?}"),
            }
            short(|| drop(sleep));
        }
        assert!(refused <= 20);
        assert_eq!(timer.stats().pending, 0);
        clock.advance(HOUR);
    });
}

/// A sleep on the global timer has no error: if it is refused, its task is woken and polls again.
#[test]
fn a_global_sleep_tries_again() {
    at_every_request(|| {
        let timer = Timer::global();
        let (bell, waker) = Bell::new();
        let mut context = Context::from_waker(&waker);
        let mut sleep = shardwheel::sleep(HOUR);
        let polled = short(|| Pin::new(&mut sleep).poll(&mut context));
        assert!(polled.is_pending());
        let was_refused = timer.stats().pending == 0;
        assert_eq!(bell.has_rung(), was_refused);
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
        assert_eq!((timer.stats().pending, bell.has_rung()), (1, was_refused));
        drop(sleep);
        assert_eq!(timer.stats().pending, 0);
    });
}

/// What has not fired comes back, or is dropped.
#[test]
fn shutdown_returns_all_callbacks() {
    at_every_request(|| {
        let held = Arc::new(());
        let (timer, _clock) = timer();
        for i in 0..50 {
            let held = Arc::clone(&held);
            timer
                .schedule_after(Duration::from_millis(1 << (i % 30)), move || drop(held))
                .expect("there is memory");
        }
        let unfired = short(|| timer.shutdown());
        assert_eq!(short(|| unfired.count()), 50);
        assert_eq!(Arc::strong_count(&held), 1);
    });
}
