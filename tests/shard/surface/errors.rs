//! Errors: what they say, and what they give back.

use std::error::Error;

use shardwheel::{ScheduleErrorKind, Tick};

use super::halves;

/// A shard without its advancer refuses timers and returns their payloads. Nothing is pending in
/// it, and its keys name nothing. Promise 8.
#[test]
fn a_shard_without_advancer_refuses_and_returns_the_payload() {
    let (scheduler, advancer) = halves();
    let key = scheduler.schedule(5, String::from("dropped")).expect("the shard is open");
    drop(advancer);
    let refused = scheduler.schedule(10, String::from("late")).expect_err("the shard is shut down");
    assert_eq!((refused.kind(), refused.is_shut_down()), (ScheduleErrorKind::ShutDown, true));
    assert!(refused.to_string().contains("shut down"));
    assert_eq!(refused.into_payload(), "late");
    let refused =
        scheduler.schedule_within(10..=20, String::from("late")).expect_err("the shard is shut down");
    assert_eq!((refused.is_shut_down(), refused.into_payload()), (true, String::from("late")));
    assert_eq!(
        (scheduler.cancel(key), scheduler.reschedule(key, 50), scheduler.is_empty()),
        (None, None, true)
    );
}

/// A window that holds no tick is refused; the error names its bounds, and the timer takes no room.
#[test]
fn an_empty_window_is_refused_with_its_bounds() {
    let (scheduler, _advancer) = halves();
    for (start, end) in [(290, 281), (1, 0), (Tick::MAX, 0)] {
        let refused =
            scheduler.schedule_within(start..=end, "windowed").expect_err("the window holds no tick");
        assert_eq!(refused.kind(), ScheduleErrorKind::EmptyWindow { start, end });
        assert!(!refused.is_full() && !refused.is_shut_down());
        let text = refused.to_string();
        assert!(text.contains(&start.to_string()) && text.contains(&end.to_string()), "{text}");
        assert_eq!(refused.into_payload(), "windowed");
    }
    assert!(scheduler.is_empty());
}

/// An error prints although its payload cannot, and converts into a boxed error.
#[test]
fn errors_print_without_their_payload() {
    struct Mute;
    let (scheduler, advancer) = halves::<Mute>();
    drop(advancer);
    let refused = scheduler.schedule(1, Mute).expect_err("the shard is shut down");
    assert!(format!("{refused:?}").contains("ShutDown"));
    let boxed: Box<dyn Error> = refused.into();
    assert!(boxed.source().is_none());
}
