//! When a driver hands shards over because of how much it works.
//!
//! A driver measures its load over windows of [`WINDOW`]: the part of the time that its rounds
//! take. At the end of a window it may hand shards to a driver that holds none, or all of its
//! shards to one with a lower number. Only the lower number receives, so two drivers never exchange
//! theirs.

use super::Nanos;
use super::board::Board;
use super::crew::Crew;

/// The time over which a load is measured.
const WINDOW: Nanos = 100_000_000;
/// For how long a shard that has held its driver up has a driver of its own.
pub(crate) const APART: Nanos = 100 * WINDOW;
/// Loads, in thousandths. A driver with more than this hands half of its shards over.
const MUCH: u64 = 500;
/// Two drivers with no more than this together become one.
const LITTLE: u64 = 250;

/// A driver's present window.
#[derive(Default)]
pub(crate) struct Window {
    since: Nanos,
    busy: Nanos,
}

impl Window {
    /// Notes a round. Returns the load at the end of a window.
    pub(crate) fn note(&mut self, begin: Nanos, end: Nanos) -> Option<u64> {
        self.busy += end.saturating_sub(begin);
        let length = end.saturating_sub(self.since);
        if length < WINDOW {
            return None;
        }
        let load = self.busy.min(length).saturating_mul(1000) / length;
        *self = Self { since: end, busy: 0 };
        Some(load)
    }
}

/// Hands shards over after a round, as the load asks for it. `load` is `None` within a window.
pub(crate) fn balance<W>(crew: &Crew<W>, driver: usize, load: Option<u64>, now: Nanos) {
    let board = &*crew.board;
    if !board.is_shared {
        return;
    }
    let shards = board.held_by(driver).count();
    if shards > 1 {
        // A shard that holds its driver up goes first, at once.
        let apart = board.held_by(driver).find(|&shard| board.is_apart(shard, now));
        if let Some(shard) = apart {
            return give(crew, driver, [shard]);
        }
    }
    let Some(load) = load else { return };
    board.note_load(driver, load, now);
    if load > MUCH && shards > 1 {
        give(crew, driver, board.held_by(driver).skip(shards / 2));
    } else if let Some(to) = receiver(board, driver, load, now) {
        give_to(crew, driver, to, board.held_by(driver));
    }
}

/// A driver that can take all shards of this one.
fn receiver(board: &Board, driver: usize, load: u64, now: Nanos) -> Option<usize> {
    let has_apart = |driver| board.held_by(driver).any(|shard| board.is_apart(shard, now));
    if load > LITTLE || has_apart(driver) {
        return None;
    }
    let can_take = |&to: &usize| {
        let is_little = board.load(to, now, WINDOW).is_some_and(|other| load + other <= LITTLE);
        is_little && board.held_by(to).next().is_some() && !has_apart(to)
    };
    (0..driver).find(can_take)
}

/// Hands shards to the last driver that holds none; the first one stays the stand-by.
fn give<W>(crew: &Crew<W>, driver: usize, shards: impl IntoIterator<Item = usize>) {
    if let Some(to) = crew.board.spares().next_back() {
        give_to(crew, driver, to, shards);
    }
}

fn give_to<W>(crew: &Crew<W>, driver: usize, to: usize, shards: impl IntoIterator<Item = usize>) {
    for shard in shards {
        if crew.hand_over(shard, driver, to) {
            crew.board.ring(shard);
        }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::sync::Arc;

    use super::super::Limits;
    use super::*;

    const MILLIS: Nanos = 1_000_000;

    fn crew(holders: &[usize]) -> Crew<()> {
        let board =
            Board::new(holders.len(), holders.len(), Limits::for_tick(MILLIS), true, |shard| holders[shard]);
        Crew::new(Arc::new(board), holders.iter().map(|_| ()))
    }

    fn holders(crew: &Crew<()>, shards: usize) -> Vec<usize> {
        (0..shards).map(|shard| crew.board.holder(shard)).collect()
    }

    #[test]
    fn a_window_is_measured_once() {
        let mut window = Window::default();
        assert_eq!(window.note(0, 30 * MILLIS), None);
        assert_eq!(window.note(90 * MILLIS, 100 * MILLIS), Some(400));
        assert_eq!(window.note(100 * MILLIS, 150 * MILLIS), None);
        assert_eq!(window.note(190 * MILLIS, 300 * MILLIS), Some(800));
    }

    #[test]
    fn a_busy_driver_hands_half_of_its_shards_over() {
        let crew = crew(&[0; 4]);
        balance(&crew, 0, Some(MUCH), 0);
        assert_eq!(holders(&crew, 4), [0; 4]);
        balance(&crew, 0, Some(MUCH + 1), 0);
        assert_eq!(holders(&crew, 4), [0, 0, 3, 3]);
        balance(&crew, 0, Some(MUCH + 1), 0);
        balance(&crew, 3, Some(MUCH + 1), 0);
        assert_eq!(holders(&crew, 4), [0, 2, 3, 1]);
        balance(&crew, 0, Some(1000), 0);
        assert_eq!(holders(&crew, 4), [0, 2, 3, 1], "it holds one");
    }

    #[test]
    fn drivers_with_little_work_become_one() {
        let crew = crew(&[0, 1, 2]);
        balance(&crew, 0, Some(200), 0);
        balance(&crew, 1, Some(51), 0);
        assert_eq!(holders(&crew, 3), [0, 1, 2], "the first gives nothing back, and both have too much");
        balance(&crew, 1, Some(50), 0);
        assert_eq!(holders(&crew, 3), [0, 0, 2]);
        balance(&crew, 0, Some(10), 0);
        balance(&crew, 2, Some(0), 0);
        assert_eq!(holders(&crew, 3), [0; 3]);
    }

    #[test]
    fn a_driver_that_sleeps_has_no_load_and_one_that_is_blocked_takes_none() {
        let crew = crew(&[0, 1]);
        balance(&crew, 0, Some(1000), WINDOW);
        balance(&crew, 1, Some(0), 3 * WINDOW);
        assert_eq!(holders(&crew, 2), [0, 1], "it has been busy until now");
        crew.board.begin_round(0, 3 * WINDOW);
        balance(&crew, 1, Some(0), 3 * WINDOW + 10 * MILLIS);
        assert_eq!(holders(&crew, 2), [0, 1], "it is blocked");
        crew.board.end_round(0);
        balance(&crew, 1, Some(0), 3 * WINDOW + 1);
        assert_eq!(holders(&crew, 2), [0, 0]);
    }

    #[test]
    fn drivers_of_one_shard_each_keep_it() {
        let board = Board::new(2, 2, Limits::for_tick(MILLIS), false, |shard| shard);
        let crew = Crew::new(Arc::new(board), [(); 2]);
        balance(&crew, 1, Some(0), WINDOW);
        assert_eq!(holders(&crew, 2), [0, 1]);
    }

    #[test]
    fn a_shard_that_holds_up_stays_alone() {
        let crew = crew(&[0, 0, 0]);
        crew.board.set_apart(1, APART);
        balance(&crew, 0, None, 0);
        assert_eq!(holders(&crew, 3), [0, 2, 0]);
        balance(&crew, 2, Some(0), APART - 1);
        assert_eq!(holders(&crew, 3), [0, 2, 0]);
        balance(&crew, 2, Some(0), APART);
        assert_eq!(holders(&crew, 3), [0; 3]);
    }
}
