//! Arguments and results: the first and the last tick, windows, a new shard, a fired timer.

use shardwheel::{Fired, Tick};

use super::halves;

/// A fired timer can be destructured into its key, its deadline and its payload.
#[test]
fn a_fired_timer_can_be_destructured() {
    let (scheduler, mut advancer) = halves();
    let scheduled = scheduler.schedule(7, String::from("seven")).expect("the shard is open");
    for fired in advancer.advance(9) {
        assert!(format!("{fired:?}").contains("seven"));
        let Fired { key, deadline, payload } = fired;
        assert_eq!((key, deadline, payload.as_str()), (scheduled, 7, "seven"));
    }
}

/// The first and the last tick are deadlines like any other, also together. Promise 4.
#[test]
fn the_first_and_the_last_tick_are_valid_deadlines() {
    let (scheduler, mut advancer) = halves();
    let last = scheduler.schedule(Tick::MAX, "last").expect("the shard is open");
    scheduler.schedule(0, "first").expect("the shard is open");
    assert_eq!(advancer.advance(0).map(|fired| fired.payload).collect::<Vec<_>>(), ["first"]);
    let later = scheduler.reschedule(last, 0).and_then(|key| scheduler.reschedule(key, Tick::MAX));
    assert!(later.is_some());
    assert_eq!(advancer.advance(Tick::MAX - 1).count(), 0);
    assert_eq!(advancer.advance(Tick::MAX).map(|fired| fired.payload).collect::<Vec<_>>(), ["last"]);
    assert_eq!(scheduler.now(), Tick::MAX);
}

/// The tick that is chosen for a window lies within it, however wide it is; for a window of one
/// tick it is that tick.
#[test]
fn a_window_of_any_width_holds_the_chosen_tick() {
    for window in [0..=0, 9..=9, 281..=290, 5_000..=9_000_000, 1..=Tick::MAX, Tick::MAX..=Tick::MAX] {
        let (scheduler, advancer) = halves();
        scheduler.schedule_within(window.clone(), ()).expect("the list is not empty");
        assert!(advancer.into_pending().all(|(deadline, ())| window.contains(&deadline)), "{window:?}");
    }
}
