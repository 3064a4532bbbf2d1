//! Timers are made, used and dropped, a thousand times: no thread, no mapping and no byte is left.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use shardwheel::{ManualClock, Timer};

use crate::support::allocator::in_use;
use crate::support::{HOUR, number_of_mappings, number_of_threads};

const TIMES: usize = 1_000;

/// Rounds before the first measurement; by then everything exists that is kept for good.
const WARM_UP: usize = 200;

/// Mappings that the system's allocator may create or split by itself.
const OWN_MAPPINGS: usize = 8;

/// Uses a timer in every way, briefly: some timers fire, and some are pending when it is dropped.
fn use_it(timer: &Timer) {
    timer.schedule_after(Duration::ZERO, || ()).expect("the timer is open");
    timer.schedule_after(HOUR, || ()).expect("the timer is open");
    let key = timer.schedule_after(24 * HOUR, || ()).expect("the timer is open");
    assert!(timer.cancel(key));
    timer.schedule_every(HOUR, || ()).expect("the timer is open");
    let mut sleep = timer.sleep(HOUR);
    assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// The numbers of threads, mappings and bytes.
fn counts() -> (usize, usize, isize) {
    (number_of_threads(), number_of_mappings(), in_use())
}

fn nothing_is_left_of(mut one: impl FnMut()) {
    (0..WARM_UP).for_each(|_| one());
    let (threads, mappings, held) = counts();
    (0..TIMES).for_each(|_| one());
    let after = counts();
    assert_eq!(after.0, threads, "threads");
    assert!(after.1 <= mappings + OWN_MAPPINGS, "mappings: {mappings}, then {}", after.1);
    assert!(after.2 <= held, "bytes: {held}, then {}", after.2);
}

fn on_threads() {
    use_it(&Timer::builder().shards(1).build().expect("settings within their limits"));
}

/// All timers use the same clock, which is not dropped.
fn on_a_clock(clock: &ManualClock) {
    let builder = Timer::builder().shards(1).clock(clock.clone());
    let timer = builder.build().expect("settings within their limits");
    use_it(&timer);
    clock.advance(Duration::from_millis(2));
}

/// The timer is also used by a thread of its own, which ends before the timer or after it.
fn with_a_thread(ends_before: bool) {
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    use_it(&timer);
    let kept = ends_before.then(|| timer.clone());
    std::thread::spawn(move || use_it(&timer)).join().expect("the thread does not panic");
    drop(kept);
}

alone! {
    timers_on_threads_leave_nothing: nothing_is_left_of(on_threads);
    timers_on_a_clock_leave_nothing: {
        let clock = ManualClock::new();
        nothing_is_left_of(|| on_a_clock(&clock));
    };
    timers_and_the_threads_that_used_them_leave_nothing: {
        let mut ends_before = false;
        nothing_is_left_of(|| {
            ends_before = !ends_before;
            with_a_thread(ends_before);
        });
    };
}
