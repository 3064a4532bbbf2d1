//! Recurring timers against threads that stop and move them: hazard 9, and their part of hazard 10.
//!
//! A runner has the advancer: it takes occurrences out and rearms the timer. Each model asserts
//! that the timer ends once, that the counters agree with how it ended, that no occurrence begins
//! after a stop has answered, and that no node is left behind.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use shardwheel::testing::{
    RunningTimer, StopAnswer, end_drain, end_running, is_pending, is_stopped, move_to, next_due, rearm,
    relocate_recurring, stop,
};
use shardwheel::{Advancer, Key, Scheduler, Tick};
use shardwheel_loom_tests::{Ledger, Payload, model, small_shard, thread};

type Occurrence = (RunningTimer, Payload);

/// The advancer, and the occurrences of the model's timer 0, which recurs.
struct Runner {
    advancer: Advancer<Payload>,
    ledger: Ledger,
    /// The deadlines of the occurrences so far.
    seen: Vec<Tick>,
    /// How many occurrences the model wants; the runner ends the timer after the last.
    last: usize,
}

/// A shard and its timer, first due at 1.
fn begin(last: usize, timers: usize) -> (Scheduler<Payload>, Runner, Key) {
    let ledger = Ledger::new(timers);
    let (scheduler, advancer) = small_shard();
    let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
    (scheduler, Runner { advancer, ledger, seen: Vec::new(), last }, key)
}

impl Runner {
    /// Runs what is due by `now`; rearms the timer for one tick later each time.
    fn run(&mut self, now: Tick) {
        move_to(&mut self.advancer, now);
        while let Some(due) = self.take_out() {
            self.give_back(due);
        }
        end_drain(&mut self.advancer);
    }

    /// Takes the first occurrence out.
    fn begin(&mut self) -> Occurrence {
        move_to(&mut self.advancer, 1);
        self.take_out().expect("it is due")
    }

    /// The next occurrence; it must not begin after a stop has answered.
    fn take_out(&mut self) -> Option<Occurrence> {
        let is_stopped = self.ledger.is_stopped(0);
        let due = next_due(&mut self.advancer, |payload| payload.number() == 0)?;
        let Some(running) = due.running else {
            self.ledger.fired(due.payload.number());
            return self.take_out();
        };
        assert!(!is_stopped, "an occurrence at {} of a timer that was stopped", due.deadline);
        self.seen.push(due.deadline);
        Some((running, due.payload))
    }

    fn give_back(&mut self, (running, payload): Occurrence) {
        let next = self.seen.last().expect("it was taken out") + 1;
        if self.seen.len() < self.last {
            drop(rearm(&mut self.advancer, running, next, payload));
        } else {
            end_running(&mut self.advancer, running);
        }
    }

    /// Runs what remains, and checks that nothing is left.
    fn end(mut self, scheduler: Scheduler<Payload>) -> Vec<Tick> {
        self.run(20);
        self.advancer.check_invariants();
        let stats = scheduler.stats();
        assert_eq!((stats.pending, stats.dead_nodes), (0, 0));
        assert_eq!(stats.scheduled, stats.fired + stats.cancelled);
        if !self.ledger.is_stopped(0) {
            assert_eq!(self.seen.len(), self.last);
            self.ledger.fired(0);
        }
        drop((scheduler, self.advancer));
        self.ledger.balance();
        self.seen
    }
}

/// Stops the timer. Whatever the answer, the timer is not pending afterwards.
fn stopper(scheduler: &Scheduler<Payload>, ledger: &Ledger, key: Key) -> thread::JoinHandle<()> {
    let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
    thread::spawn(move || {
        let answer = stop(&scheduler, key);
        ledger.stopped(0, answer);
        assert!(!is_pending(&scheduler, key));
        assert!(matches!(stop(&scheduler, key), StopAnswer::Gone));
    })
}

fn mover(scheduler: &Scheduler<Payload>, key: Key, deadline: Tick) -> thread::JoinHandle<bool> {
    let scheduler = scheduler.clone();
    thread::spawn(move || {
        relocate_recurring(&scheduler, key, deadline).inspect(|&moved| assert!(moved != key)).is_some()
    })
}

/// `stops` threads stop the timer while its first occurrence is out and is rearmed.
fn stop_while_it_runs(last: usize, stops: usize) {
    model(move || {
        let (scheduler, mut runner, key) = begin(last, 1);
        let first = runner.begin();
        let stoppers = (0..stops).map(|_| stopper(&scheduler, &runner.ledger, key)).collect::<Vec<_>>();
        runner.give_back(first);
        runner.run(2);
        stoppers.into_iter().for_each(|stopper| stopper.join().unwrap());
        runner.end(scheduler);
    });
}

#[test]
fn hazard_9_stop_against_rearm() {
    stop_while_it_runs(2, 1);
}

#[test]
fn hazard_9_stop_against_the_last_occurrence() {
    stop_while_it_runs(1, 1);
}

#[test]
fn hazard_9_two_stops() {
    stop_while_it_runs(2, 2);
}

#[test]
fn hazard_9_stop_against_fire_of_a_recurring_timer() {
    model(|| {
        let (scheduler, mut runner, key) = begin(3, 1);
        let stopper = stopper(&scheduler, &runner.ledger, key);
        runner.run(1);
        runner.run(2);
        stopper.join().unwrap();
        runner.end(scheduler);
    });
}

/// A timer that does not recur is stopped while the advancer takes it out to see whether it recurs.
/// If the stop got the payload, the timer does not fire. Otherwise it fires once. The counters
/// record one end.
#[test]
fn hazard_9_stop_against_fire_of_a_timer_that_does_not_recur() {
    model(|| {
        let ledger = Ledger::new(1);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let stopper = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || match stop(&scheduler, key) {
                StopAnswer::Pending(payload) => !ledger.cancelled(Some(payload)),
                StopAnswer::Running | StopAnswer::Gone => true,
            })
        };
        move_to(&mut advancer, 1);
        let fired = next_due(&mut advancer, |_| false).inspect(|_| ledger.fired(0));
        let is_to_fire = stopper.join().unwrap();
        assert_eq!(fired.is_some(), is_to_fire);
        drop(fired);
        end_drain(&mut advancer);
        ledger.advance(&mut advancer, 20);
        advancer.check_invariants();
        let stats = scheduler.stats();
        assert_eq!((stats.fired + stats.cancelled, stats.dead_nodes), (1, 0));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The timer is moved while it fires and is rearmed. A move that won holds for the occurrence that
/// it met.
#[test]
fn hazard_9_relocate_against_fire_and_rearm() {
    model(|| {
        let (scheduler, mut runner, key) = begin(2, 1);
        let mover = mover(&scheduler, key, 5);
        runner.run(1);
        runner.run(2);
        let moved = mover.join().unwrap();
        let seen = runner.end(scheduler);
        let expected: &[&[Tick]] = if moved { &[&[5, 6], &[1, 5]] } else { &[&[1, 2]] };
        assert!(expected.contains(&seen.as_slice()), "moved: {moved}, occurrences: {seen:?}");
    });
}

/// As above, to an earlier tick.
#[test]
fn hazard_9_relocate_to_the_past_against_rearm() {
    model(|| {
        let (scheduler, mut runner, key) = begin(2, 1);
        let first = runner.begin();
        let mover = mover(&scheduler, key, 0);
        runner.give_back(first);
        runner.run(2);
        let moved = mover.join().unwrap();
        let seen = runner.end(scheduler);
        assert_eq!(seen, if moved { [1, 0] } else { [1, 2] });
    });
}

#[test]
fn hazard_9_relocate_against_stop() {
    model(|| {
        let (scheduler, mut runner, key) = begin(2, 1);
        let mover = mover(&scheduler, key, 3);
        let stopper = stopper(&scheduler, &runner.ledger, key);
        runner.run(1);
        let moved = mover.join().unwrap();
        stopper.join().unwrap();
        let is_stopped = runner.ledger.is_stopped(0);
        let seen = runner.end(scheduler);
        assert!(moved || is_stopped || seen == [1, 2]);
    });
}

/// The node is stopped and reused in place while the advancer is about to place it.
#[test]
fn hazard_9_reuse_of_a_node_that_is_armed_anew() {
    model(|| {
        let (scheduler, mut runner, key) = begin(2, 2);
        let first = runner.begin();
        let reuser = {
            let (scheduler, ledger) = (scheduler.clone(), runner.ledger.clone());
            thread::spawn(move || {
                ledger.stopped(0, stop(&scheduler, key));
                scheduler.schedule(3, ledger.payload(1)).unwrap();
            })
        };
        runner.give_back(first);
        runner.run(2);
        reuser.join().unwrap();
        runner.run(3);
        assert!(runner.ledger.has_fired(1));
        runner.end(scheduler);
    });
}

/// The node of a timer that was stopped while it ran is used again, while another thread has the
/// old key.
#[test]
fn hazard_9_a_node_handed_out_again_against_a_stale_stop() {
    model(|| {
        let (scheduler, mut runner, key) = begin(1, 5);
        let first = runner.begin();
        let stopper = stopper(&scheduler, &runner.ledger, key);
        runner.give_back(first);
        (0..3).for_each(|_| runner.run(1));
        // More timers than the first segment has nodes, so the freed node is used again.
        for number in 1..5 {
            scheduler.schedule(2, runner.ledger.payload(number)).unwrap();
        }
        stopper.join().unwrap();
        runner.run(2);
        assert!((1..5).all(|number| runner.ledger.has_fired(number)));
        runner.end(scheduler);
    });
}

/// The advancer ends while an occurrence is out: the timer has fired, or it was stopped. A job that
/// begins after the stop has answered finds it.
#[test]
fn hazard_10_shutdown_against_a_stop() {
    model(|| {
        let (scheduler, mut runner, key) = begin(1, 1);
        let (running, payload) = runner.begin();
        let Runner { advancer, ledger, .. } = runner;
        let stopper = stopper(&scheduler, &ledger, key);
        assert_eq!(advancer.into_pending().count(), 0);
        let has_answered = ledger.is_stopped(0);
        assert!(is_stopped(&scheduler, key) || !has_answered, "a job begins after the stop");
        stopper.join().unwrap();
        assert_eq!(is_stopped(&scheduler, key), ledger.is_stopped(0));
        let stats = scheduler.stats();
        assert_eq!((stats.fired, stats.cancelled), if ledger.is_stopped(0) { (0, 1) } else { (1, 0) });
        assert_eq!(stats.pending, 0);
        if !ledger.is_stopped(0) {
            ledger.fired(0);
        }
        drop((scheduler, running, payload));
        ledger.balance();
    });
}

/// A timer that waits for its next occurrence is handed back, or it was stopped.
#[test]
fn hazard_10_shutdown_of_a_timer_that_recurs_against_a_stop() {
    model(|| {
        let (scheduler, mut runner, key) = begin(2, 1);
        let first = runner.begin();
        let stopper = stopper(&scheduler, &runner.ledger, key);
        runner.give_back(first);
        let Runner { advancer, ledger, .. } = runner;
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        stopper.join().unwrap();
        assert!(scheduler.is_empty());
        drop(scheduler);
        ledger.balance();
    });
}
