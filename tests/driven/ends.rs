//! How a driven timer ends: by its driver, by a shutdown, within a turn or beside one.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use shardwheel::ScheduleErrorKind;

use crate::by_hand;
use crate::support::{Bell, HOUR};

#[test]
fn the_drop_of_the_driver_ends_the_timer() {
    let (_, timer, driver) = by_hand();
    let (sender, receiver) = mpsc::channel::<()>();
    timer.schedule_after(HOUR, move || drop(sender)).unwrap();
    let sleep = timer.sleep(HOUR);
    drop(driver);
    assert!(block_on(sleep).is_err());
    assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    let refused = timer.schedule_after(HOUR, || ()).unwrap_err();
    assert!(matches!(refused.kind(), ScheduleErrorKind::ShutDown), "{refused:?}");
}

#[test]
fn a_shutdown_wakes_the_loop_and_gives_back_what_is_pending() {
    let (_, timer, mut driver) = by_hand();
    timer.schedule_after(HOUR, || ()).unwrap();
    let (wakes, waker) = Bell::new();
    driver.register_waker(&waker);
    driver.next_deadline();
    let unfired = thread::scope(|scope| scope.spawn(|| timer.shutdown().count()).join().unwrap());
    assert_eq!(unfired, 1);
    assert_eq!(wakes.rings(), 1);
    assert_eq!((driver.turn(), driver.next_deadline(), driver.has_ended()), (0, None, true));
}

/// Without a pending timer, and at the end, there is no deadline: the driver says which it is.
#[test]
fn the_last_handle_ends_the_timer() {
    let (_, timer, mut driver) = by_hand();
    assert_eq!((driver.next_deadline(), driver.has_ended()), (None, false));
    timer.schedule_after(HOUR, || ()).unwrap();
    assert!(driver.next_deadline().is_some() && !driver.has_ended());
    drop(timer);
    assert_eq!((driver.turn(), driver.next_deadline(), driver.has_ended()), (0, None, true));
}

#[test]
fn a_callback_may_shut_its_timer_down() {
    let (clock, timer, mut driver) = by_hand();
    let (sender, receiver) = mpsc::channel();
    let own = timer.clone();
    timer
        .schedule_after(Duration::from_millis(1), move || sender.send(own.shutdown().count()).unwrap())
        .unwrap();
    timer.schedule_after(Duration::from_millis(2), || unreachable!("it is shut down")).unwrap();
    clock.advance(Duration::from_millis(2));
    assert!(!driver.has_ended());
    assert_eq!((driver.turn(), driver.turn(), driver.next_deadline()), (1, 0, None));
    assert!(driver.has_ended());
    assert_eq!(receiver.try_recv(), Ok(1));
}

/// The shutdown waits for the callback that a turn runs on another thread.
#[test]
fn a_shutdown_beside_a_turn_waits_for_its_callback() {
    let (clock, timer, mut driver) = by_hand();
    let ((is_in, inside), (go_on, continues)) = (mpsc::channel(), mpsc::channel::<()>());
    let (ended, end) = mpsc::channel();
    let order = ended.clone();
    let callback = move || {
        is_in.send(()).unwrap();
        continues.recv().unwrap();
        order.send("callback").unwrap();
    };
    timer.schedule_after(Duration::from_millis(1), callback).unwrap();
    clock.advance(Duration::from_millis(1));
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!((driver.turn(), driver.next_deadline()), (1, None)));
        inside.recv().unwrap();
        let shutdown = scope.spawn(move || {
            drop(timer.shutdown());
            ended.send("shutdown").unwrap();
        });
        // The shutdown has begun, or begins soon: it waits either way.
        thread::sleep(Duration::from_millis(20));
        assert!(!shutdown.is_finished());
        go_on.send(()).unwrap();
    });
    assert_eq!(end.iter().collect::<Vec<_>>(), ["callback", "shutdown"]);
}
