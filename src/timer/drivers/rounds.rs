//! The steps of a driver's rounds that other threads depend on. The models run these, too.
//!
//! The order matters. The driver clears its parker, then looks whether the timer is stopping,
//! announces the round, and looks at its shards: see [`board`](super::board).

use std::time::Duration;

use super::Nanos;
use super::board::IDLE;
use super::crew::Crew;
use crate::timer::phase::Phase;

/// What a driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It visits the shards that are ready, and then ends its round.
    Visit,
    /// It sleeps until that time, or until it is notified.
    Sleep(Nanos),
    /// It holds no shard.
    StandBy,
    /// It leaves: the timer is stopping.
    Leave,
}

impl<W> Crew<W> {
    /// Begins a round of a driver. If it has shards to visit, the stand-by watches over that.
    pub(crate) fn begin_round(&self, driver: usize, now: Nanos) -> Step {
        let board = &*self.board;
        board.seat(driver).parker.clear();
        // After the clear, which may have erased the notification of the stop.
        if self.is_stopping() {
            return Step::Leave;
        }
        let look = board.begin_round(driver, now);
        if board.has_got_shards(driver, !look.holds_any) {
            // A round may count on this driver to stand by. It does so no more.
            board.wake_stand_by();
        }
        let [first, second] = look.dues;
        if first > now {
            board.end_round(driver);
            return if look.holds_any { Step::Sleep(first) } else { Step::StandBy };
        }
        if second < IDLE && board.is_shared {
            // The second shard is held up if the visit to the first does not end.
            let late_at = now.max(second).saturating_add(board.limits.patience);
            board.ensure_watch(late_at);
        }
        Step::Visit
    }

    /// Waits until the driver is notified, or until `limit` has passed.
    pub(crate) fn wait(&self, driver: usize, limit: Option<Duration>) {
        self.board.seat(driver).parker.wait(limit);
    }

    /// Ends the workers of a driver's shards, by `end`, after `note` under the slot's lock. The
    /// timer is stopping. If a worker is out, the shutdown has it, puts it back and notifies this
    /// driver. When this returns, the driver has left; it ends when its last user code has
    /// returned.
    pub(crate) fn leave(&self, driver: usize, note: impl Fn(&W), end: impl Fn(W)) {
        let seat = self.board.seat(driver);
        seat.progress.enter(Phase::Left);
        loop {
            seat.parker.clear();
            let ended = (0..self.board.shards()).map(|shard| self.end((driver, shard), &note, &end));
            if ended.filter(|&has_ended| !has_ended).count() == 0 {
                break;
            }
            seat.parker.wait(None);
        }
    }

    /// Ends a worker if the driver holds its shard. False if another thread has the worker.
    fn end(&self, (driver, shard): (usize, usize), note: impl Fn(&W), end: impl Fn(W)) -> bool {
        self.take_to_end(driver, shard, note).map(|worker| worker.into_iter().for_each(end)).is_ok()
    }
}
