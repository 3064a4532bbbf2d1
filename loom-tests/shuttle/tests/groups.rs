//! Groups on whole timers: callbacks, a recurring one, sleeps, and their ends.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{Placement, ScheduleErrorKind};
use shardwheel_shuttle_tests::{Ledger, VirtualClock, explore_both, millis, timer};
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

/// A member that recurs drops the group's last handle, or the other thread does. Nothing of the group
/// runs afterwards, and nothing of it is kept.
#[test]
fn the_last_handle_is_dropped_by_a_member_or_by_a_thread() {
    explore_both("the last handle is dropped by a member or by a thread", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let (group, kept, runs) = (timer.group(), Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let (held, counts, mut own) = (Arc::clone(&kept), Arc::clone(&runs), Some(group.clone()));
        group
            .schedule_every(millis(1), move || {
                drop(own.take());
                counts.fetch_add(usize::from(Arc::strong_count(&held) > 0), Ordering::SeqCst);
            })
            .expect("it is open");
        let held = Arc::clone(&kept);
        group.schedule_after(millis(3), move || drop(held)).expect("it is open");
        thread::spawn(move || drop(group)).join().expect("it does not panic");
        while Arc::strong_count(&kept) > 1 {
            VirtualClock::sleep(millis(1));
        }
        let before = runs.load(Ordering::SeqCst);
        VirtualClock::sleep(millis(4));
        assert_eq!(runs.load(Ordering::SeqCst), before, "it runs on");
        assert_eq!((timer.stats().pending, timer.shutdown().count()), (0, 0));
        before > 1
    });
}

/// The timer is shut down, by a thread, while its group is cancelled by a member.
#[test]
fn a_shutdown_against_a_member_that_cancels_its_group() {
    explore_both("a shutdown against a member that cancels its group", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let (group, ledger) = (timer.group(), Ledger::of(2));
        let (cancels, other) = (ledger.token(0, millis(1)), ledger.token(1, millis(1)));
        let weak = group.downgrade();
        let own = group.clone();
        let first = move || {
            cancels.run();
            own.cancel_all();
            // The timer may have ended by then.
            drop(weak.upgrade());
        };
        group.schedule_after(millis(1), first).expect("it is open");
        // Refused if the first has run by then.
        drop(group.schedule_after(millis(1), move || other.run()));
        let ender = timer.clone();
        let ends = thread::spawn(move || ender.shutdown().count());
        let slept = future::block_on(group.sleep(millis(2)));
        let unfired = ends.join().expect("it does not panic");
        ledger.check();
        assert!(ledger.ran(0) + ledger.ran(1) + unfired <= 2);
        if let Err(error) = slept {
            assert!(matches!(error.kind(), ScheduleErrorKind::ShutDown | ScheduleErrorKind::Cancelled));
        }
        ledger.ran(0) == 1
    });
}
