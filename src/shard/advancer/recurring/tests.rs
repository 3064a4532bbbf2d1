//! Timers that recur, on one thread.

use super::*;
use crate::shard::shared::counts::DEAD_FLOOR;
use crate::shard::support::{Shard, small};
use crate::shard::{Bound, ShardId, shard_within};
use crate::shard::{Scheduler, Stopped};
use crate::{Config, ScheduleErrorKind, shard};

/// Payloads from this value on recur.
const RECURS: u32 = 100;

/// What fires up to `now`, as (deadline, payload); recurring timers are passed to `run`, with their
/// deadlines.
fn advance(
    advancer: &mut Advancer<u32>,
    now: Tick,
    mut run: impl FnMut(&mut Advancer<u32>, RearmTicket, (Tick, u32)),
) -> Vec<(Tick, u32)> {
    let mut seen = Vec::new();
    advancer.move_to(now);
    while let Some(due) = advancer.take_due(|&payload| payload >= RECURS) {
        seen.push((due.deadline, due.payload));
        if let Some(ticket) = due.ticket {
            run(advancer, ticket, (due.deadline, due.payload));
        }
        advancer.check_invariants();
    }
    advancer.end_drain();
    advancer.check_invariants();
    seen
}

/// The one occurrence that is due by `now`.
fn run_one(advancer: &mut Advancer<u32>, now: Tick) -> (RearmTicket, u32) {
    let mut out = None;
    advance(advancer, now, |_, running, (_, payload)| out = Some((running, payload)));
    out.expect("one is due")
}

/// (scheduled, fired, recurred, cancelled, handed back, pending, dead nodes)
fn counts(scheduler: &Scheduler<u32>) -> (u64, u64, u64, u64, u64, usize, usize) {
    let stats = scheduler.stats();
    let ended = stats.fired + stats.cancelled + stats.handed_back;
    assert_eq!(stats.scheduled, ended + stats.pending as u64);
    assert_eq!(stats.pending, scheduler.len());
    let recurred = stats.recurred;
    (
        stats.scheduled,
        stats.fired,
        recurred,
        stats.cancelled,
        stats.handed_back,
        stats.pending,
        stats.dead_nodes,
    )
}

#[test]
fn a_timer_recurs_under_its_key_until_it_ends() {
    let (scheduler, mut advancer) = small();
    let key = scheduler.schedule(3, RECURS).unwrap();
    scheduler.schedule(7, 1).unwrap();
    let again = |advancer: &mut Advancer<u32>, running: RearmTicket, (deadline, payload)| {
        assert!(running.key == key && !scheduler.is_pending(key));
        assert_eq!(scheduler.len(), if deadline < 7 { 2 } else { 1 });
        let next = deadline + 5;
        if next > 20 {
            advancer.end_running(running)
        } else {
            advancer.rearm(running, next, payload).unwrap()
        }
    };
    assert_eq!(advance(&mut advancer, 10, again), [(3, RECURS), (7, 1), (8, RECURS)]);
    assert!(scheduler.is_pending(key));
    assert_eq!(counts(&scheduler), (2, 1, 2, 0, 0, 1, 0));
    assert_eq!(advancer.next_expiration(), Some(13));
    assert_eq!(advance(&mut advancer, 30, again), [(13, RECURS), (18, RECURS)]);
    assert_eq!(counts(&scheduler), (2, 2, 3, 0, 0, 0, 0));
    assert!(!scheduler.is_pending(key));
    assert_eq!(scheduler.stop(key), Stopped::Gone);
    assert_eq!(advancer.next_expiration(), None);
}

#[test]
fn a_running_timer_is_stopped_once_and_not_armed_anew() {
    let (scheduler, mut advancer) = small();
    let key = scheduler.schedule(3, RECURS).unwrap();
    let (running, payload) = run_one(&mut advancer, 3);
    assert_eq!(scheduler.cancel(key), None);
    assert_eq!(scheduler.relocate(key, 9, |_| (), |moved| moved), None);
    assert_eq!(scheduler.stop(key), Stopped::Running);
    assert_eq!(scheduler.stop(key), Stopped::Gone);
    assert_eq!(counts(&scheduler), (1, 0, 0, 1, 0, 0, 0));
    advancer.check_invariants();
    scheduler.schedule(9, 1).unwrap();
    assert_eq!(scheduler.stats().reused, 0);
    assert_eq!(advancer.rearm(running, 5, payload), Err(RECURS));
    assert_eq!(counts(&scheduler), (2, 0, 0, 1, 0, 1, 0));
    assert_eq!(advance(&mut advancer, 20, |_, _, _| ()), [(9, 1)]);
}

#[test]
fn a_deadline_in_the_past_is_due_at_the_next_advance() {
    let (scheduler, mut advancer) = small();
    let key = scheduler.schedule(3, RECURS).unwrap();
    for late in [0, 3, 9, 10] {
        let (running, payload) = run_one(&mut advancer, 10);
        advancer.rearm(running, late, payload).unwrap();
        advancer.check_invariants();
        assert_eq!(advancer.next_expiration(), Some(late));
        assert!(scheduler.is_pending(key));
    }
    // Not in the same drain, which would not come to an end.
    let mut times = 0;
    let again = |advancer: &mut Advancer<u32>, running, (_, payload)| {
        times += 1;
        assert_eq!(times, 1);
        advancer.rearm(running, 3, payload).unwrap();
    };
    assert_eq!(advance(&mut advancer, 10, again), [(10, RECURS)]);
    assert_eq!(scheduler.stop(key), Stopped::Pending(RECURS));
    assert_eq!(advance(&mut advancer, 10, |_, _, _| ()), []);
}

/// They ask for a sweep as the nodes of cancelled timers do.
#[test]
fn the_dead_nodes_of_stopped_timers_are_swept() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let keys: Vec<_> = (0..2 * DEAD_FLOOR).map(|_| scheduler.schedule(1 << 40, RECURS).unwrap()).collect();
    keys.iter().for_each(|&key| assert_eq!(scheduler.stop(key), Stopped::Pending(RECURS)));
    (1..=100).for_each(|now| assert_eq!(advancer.advance(now).count(), 0));
    let dead = scheduler.stats().dead_nodes as u64;
    assert!(dead <= DEAD_FLOOR, "{dead} dead nodes");
}

#[test]
fn at_the_end_a_running_timer_has_fired_and_a_pending_one_is_handed_back() {
    let (scheduler, mut advancer) = small();
    let keys = [3, 3, 9].map(|deadline| scheduler.schedule(deadline, RECURS + deadline as u32).unwrap());
    let mut out = Vec::new();
    advance(&mut advancer, 3, |_, running, (_, payload)| out.push((running, payload)));
    assert_eq!(scheduler.stop(keys[0]), Stopped::Running);
    assert_eq!(advancer.into_pending().collect::<Vec<_>>(), [(9, RECURS + 9)]);
    assert_eq!(counts(&scheduler), (3, 1, 0, 1, 1, 0, 0));
    assert_eq!(scheduler.stop(keys[1]), Stopped::Gone);
}

#[test]
#[should_panic(expected = "another shard")]
fn a_running_timer_belongs_to_its_shard() {
    let ((scheduler, mut advancer), (_, mut other)) = (small(), small());
    scheduler.schedule(1, RECURS).unwrap();
    let (running, _) = run_one(&mut advancer, 1);
    other.end_running(running);
}

#[test]
fn shards_share_a_bound_in_which_a_running_timer_counts() {
    let bound = Bound::new(2);
    let shards: [Shard; 2] = std::array::from_fn(|_| {
        shard_within(&Config::default(), &bound, ShardId::block(1)).expect("there is memory")
    });
    let [(first, mut advancer), (second, _other)] = shards;
    let key = first.schedule(1, RECURS).unwrap();
    let standing = second.schedule(5, 1).unwrap();
    let full = |scheduler: &Scheduler<u32>| scheduler.schedule(5, 2).unwrap_err().kind();
    assert_eq!(full(&first), ScheduleErrorKind::Full { limit: 2 });
    let (running, payload) = run_one(&mut advancer, 1);
    assert_eq!(full(&second), ScheduleErrorKind::Full { limit: 2 });
    advancer.rearm(running, 2, payload).unwrap();
    let (running, payload) = run_one(&mut advancer, 2);
    assert_eq!(first.stop(key), Stopped::Running);
    first.schedule(5, 2).unwrap();
    assert_eq!(advancer.rearm(running, 3, payload), Err(RECURS));
    assert_eq!(full(&second), ScheduleErrorKind::Full { limit: 2 });
    assert_eq!(second.cancel(standing), Some(1));
    second.schedule(5, 3).unwrap();
    drop(advancer);
    second.schedule(5, 4).unwrap();
}

/// Fewer dead nodes are tolerated when timers are stopped while their payloads are out.
#[test]
fn dead_nodes_are_swept_when_running_timers_were_stopped() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let running: Vec<_> = (0..20_000).map(|_| scheduler.schedule(10, RECURS).expect("open")).collect();
    let dead: Vec<_> = (0..14_000).map(|_| scheduler.schedule(1_000_000, 0).expect("open")).collect();
    dead.into_iter().for_each(|key| assert!(scheduler.cancel(key).is_some()));
    let mut out = Vec::new();
    advancer.move_to(10);
    while let Some(due) = advancer.take_due(|_| true) {
        out.push((due.ticket.expect("it recurs"), due.payload));
    }
    advancer.end_drain();
    running.into_iter().for_each(|key| assert_eq!(scheduler.stop(key), Stopped::Running));
    out.into_iter().for_each(|(ticket, payload)| assert!(advancer.rearm(ticket, 500, payload).is_err()));
    (11..100).for_each(|tick| assert_eq!(advancer.advance(tick).count(), 0));
    let stats = scheduler.stats();
    assert!(stats.pending == 0 && stats.dead_nodes <= 4096, "{stats:?}");
}

#[test]
fn a_running_timer_that_was_stopped_ends_as_cancelled() {
    let (scheduler, mut advancer) = small();
    let key = scheduler.schedule(3, RECURS).unwrap();
    let (running, _) = run_one(&mut advancer, 3);
    assert_eq!(scheduler.stop(key), Stopped::Running);
    advancer.end_running(running);
    advancer.check_invariants();
    assert_eq!(counts(&scheduler), (1, 0, 0, 1, 0, 0, 0));
}
