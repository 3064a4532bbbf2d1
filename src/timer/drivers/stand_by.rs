//! What a driver without shards does.
//!
//! The first of them is the stand-by. It computes when a driver would hold up a shard if it did not
//! come back, sleeps until then, and looks again. If the driver is late then, the stand-by takes
//! all of its shards that are not at work. Those that are due already go to different drivers, as
//! far as there are drivers without shards: one of their callbacks may block, too. From that moment
//! the stand-by is a driver with shards. It wakes the next driver without any, which is the
//! stand-by now.

use super::Nanos;
use super::board::{Board, IDLE};
use super::crew::Crew;

/// The two earliest dues of each driver's shards, collected anew at each look. It is here so that a
/// look allocates nothing.
pub(crate) struct Watch(Box<[[Nanos; 2]]>);

impl Watch {
    pub(crate) fn new(drivers: usize) -> Self {
        Self(vec![[IDLE; 2]; drivers].into())
    }

    /// Announces when to look next, and returns it. If that is no later than `now`, some driver is
    /// late.
    pub(crate) fn next_look(&mut self, board: &Board, me: usize) -> Nanos {
        loop {
            let announced = self.look(board, me);
            board.announce(me, announced);
            // Again: a round that began before the announcement has not seen it.
            if self.look(board, me) >= announced {
                return announced;
            }
        }
    }

    fn look(&mut self, board: &Board, me: usize) -> Nanos {
        if board.spares().next() != Some(me) {
            return IDLE;
        }
        board.collect_dues(&mut self.0);
        let late_at = |(driver, &dues): (usize, &[Nanos; 2])| board.late_at(driver, dues);
        self.0.iter().enumerate().map(late_at).min().unwrap_or(IDLE)
    }

    /// Takes the shards of the drivers that are late.
    pub(crate) fn relieve<W>(&mut self, crew: &Crew<W>, me: usize, now: Nanos) {
        let board = &*crew.board;
        board.collect_dues(&mut self.0);
        for (driver, &dues) in self.0.iter().enumerate() {
            if driver != me && board.late_at(driver, dues) <= now {
                relieve_driver(crew, me, driver, now);
            }
        }
    }
}

/// Takes a driver's shards. The first that is ready stays with the stand-by; the others that are
/// ready go to the other spare drivers.
fn relieve_driver<W>(crew: &Crew<W>, me: usize, driver: usize, now: Nanos) {
    let board = &*crew.board;
    let mut takers = std::iter::once(me).chain(board.spares().filter(|&spare| spare != me));
    for shard in board.held_by(driver) {
        let taker = if board.is_ready(shard, driver, now) { takers.next() } else { None };
        let taker = taker.unwrap_or(me);
        if crew.take_over(shard, driver, taker) && taker != me {
            board.ring(shard);
        }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::sync::Arc;

    use super::super::Limits;
    use super::*;

    const MILLIS: Nanos = 1_000_000;
    const LIMITS: Limits = Limits { patience: 9 * MILLIS, slack: MILLIS };

    /// Driver 0 holds all shards, which are due at these times.
    fn crew<const N: usize>(dues: [Nanos; N]) -> Crew<usize> {
        let crew = Crew::new(Arc::new(Board::new(N, N, LIMITS, true, |_| 0)), 0..N);
        for (shard, due) in dues.into_iter().enumerate() {
            let worker = crew.take(0, shard, |_| ()).expect("driver 0 holds it");
            crew.put_back(shard, worker, due);
        }
        crew
    }

    #[test]
    fn a_resting_driver_is_late_for_its_second_shard() {
        let mut watch = Watch::new(3);
        let crew = crew([5 * MILLIS, 7 * MILLIS, IDLE]);
        assert_eq!(watch.next_look(&crew.board, 1), 16 * MILLIS);
        assert_eq!(watch.next_look(&crew.board, 2), IDLE, "the first without shards stands by");
        crew.board.ring(2);
        assert_eq!(watch.next_look(&crew.board, 1), 14 * MILLIS);
    }

    #[test]
    fn one_shard_with_timers_needs_no_stand_by() {
        let (mut watch, crew) = (Watch::new(2), crew([5 * MILLIS, IDLE]));
        assert_eq!(watch.next_look(&crew.board, 1), IDLE);
    }

    #[test]
    fn a_driver_that_does_not_come_back_keeps_what_it_is_at() {
        let (mut watch, crew) = (Watch::new(3), crew([5 * MILLIS, 7 * MILLIS, IDLE]));
        crew.board.begin_round(0, 6 * MILLIS);
        let worker = crew.take(0, 0, |_| ()).expect("it is in");
        assert_eq!(watch.next_look(&crew.board, 1), 16 * MILLIS);
        crew.board.begin_round(1, 16 * MILLIS);
        watch.relieve(&crew, 1, 16 * MILLIS);
        assert_eq!([0, 1, 2].map(|shard| crew.board.holder(shard)), [0, 1, 1]);
        assert!(crew.take(0, 1, |_| ()).is_none() && crew.take(1, 1, |_| ()).is_some());
        crew.put_back(0, worker, IDLE);
        assert!(crew.take(0, 0, |_| ()).is_some());
    }

    #[test]
    fn a_round_over_its_time_is_relieved_of_what_waits() {
        let (mut watch, crew) = (Watch::new(2), crew([0, 0]));
        crew.board.begin_round(0, MILLIS);
        watch.relieve(&crew, 1, 10 * MILLIS - 1);
        assert_eq!([0, 1].map(|shard| crew.board.holder(shard)), [0, 0]);
        let _at_work = crew.take(0, 0, |_| ());
        watch.relieve(&crew, 1, 10 * MILLIS);
        assert_eq!([0, 1].map(|shard| crew.board.holder(shard)), [0, 1]);
    }

    /// Two drivers with two shards each block one after the other. The stand-by relieves the first,
    /// and wakes its successor for the second.
    #[test]
    fn the_next_stand_by_watches_what_the_last_one_watched() {
        let crew = crew([0; 4]);
        (2..4).for_each(|shard| assert!(crew.hand_over(shard, 0, 3)));
        crew.begin_round(0, MILLIS);
        let _first = crew.take(0, 0, |_| ());
        crew.begin_round(3, 5 * MILLIS);
        let _second = crew.take(3, 2, |_| ());
        let mut watch = Watch::new(4);
        assert_eq!(watch.next_look(&crew.board, 1), 10 * MILLIS);
        watch.relieve(&crew, 1, 10 * MILLIS);
        crew.board.seat(2).parker.set_thread();
        crew.board.seat(2).parker.clear();
        crew.begin_round(1, 10 * MILLIS);
        crew.wait(2, None);
        assert_eq!(watch.next_look(&crew.board, 2), 14 * MILLIS);
    }

    #[test]
    fn shards_that_wait_go_to_a_driver_each() {
        let crew = crew([0, 0, 0, IDLE, 0]);
        crew.begin_round(0, MILLIS);
        let _at_work = crew.take(0, 0, |_| ());
        Watch::new(5).relieve(&crew, 1, 10 * MILLIS);
        assert_eq!([0, 1, 2, 3, 4].map(|shard| crew.board.holder(shard)), [0, 1, 2, 1, 3]);
    }
}
