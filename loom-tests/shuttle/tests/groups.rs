//! A group on a whole timer.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use shardwheel::{Placement, ScheduleErrorKind};
use shardwheel_shuttle_tests::{Ledger, explore_both, millis, timer};
use shuttle::{future, thread};

/// The group is cancelled while its members are due, one is being moved, one is being scheduled and
/// a sleep waits. Each member runs or was cancelled, the count is right, and the sleep ends.
#[test]
fn a_group_is_cancelled_while_its_members_are_due() {
    explore_both("a group is cancelled while its members are due", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let (group, ledger) = (timer.group(), Ledger::of(3));
        let callback = |number, delay| {
            let token = ledger.token(number, millis(delay));
            move || token.run()
        };
        group.schedule_after(millis(1), callback(0, 1)).expect("it is open");
        let moved = group.schedule_after(millis(9), callback(1, 1)).expect("it is open");
        let sleep = group.sleep(millis(2));
        let sleeper = thread::spawn(move || future::block_on(sleep));
        let (own, third) = (group.clone(), callback(2, 1));
        let producer = thread::spawn(move || own.schedule_after(millis(1), third).is_err());
        let own = timer.clone();
        let mover = thread::spawn(move || own.reschedule_after(moved, millis(1)).is_some());
        let counted = group.cancel_all();
        let refused = producer.join().expect("it does not panic");
        mover.join().expect("it does not panic");
        let slept = sleeper.join().expect("it does not panic");
        let stayed = group.cancel_all();
        drop(timer.shutdown());
        ledger.check();
        // The mover's is not counted if it was on its way, nor the sleep before its first poll.
        let ended = counted + stayed + usize::from(refused);
        let ran: usize = (0..3).map(|number| ledger.ran(number)).sum();
        assert!((2..=4).contains(&(ran + ended)), "{ran} ran, {counted} + {stayed} were cancelled");
        if let Err(error) = slept {
            assert_eq!(error.kind(), ScheduleErrorKind::Cancelled);
        }
        assert!(group.is_empty());
        ran > 0
    });
}
