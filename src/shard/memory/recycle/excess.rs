//! Excess: the memory that the pending timers do not need.
//!
//! It is retired little by little, as the clock moves. A program whose million timers have ended
//! often schedules the next million soon; the system would then have to clear all that memory
//! again. While nothing is scheduled from one move to the next, memory goes back faster. The last
//! segment goes like the others when nothing is pending, but not before many timers have used it.

use super::Recycler;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::recycle::WORDS_PER_STEP;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::KEEPS_FIRST_SEGMENT;
use crate::shard::memory::slab::Slab;
use crate::size::size;

/// Moves of the clock from one release of memory to the next, at most; and steps for which
/// freed nodes that are few wait for more.
pub(crate) const MOVES_PER_RELEASE: usize = size(16, 1, 1);

/// Moves between releases of a segment: 256 / excess, clamped to 1..=16; every move while nothing
/// is scheduled.
pub(super) const MOVES_PER_SEGMENT: usize = 256;

/// [`Recycler::shed`] gives back 1 / `SHARE` of the excess in one call, on the advancer's thread
/// when it has nothing else to do.
pub(super) const SHARE: usize = 16;

/// The last segment of an idle shard goes back once 1 / `USED_SHARE` of its nodes has been used.
pub(super) const USED_SHARE: usize = 2;

/// What decides which segments go, and when.
pub(super) struct Trim {
    /// Nodes freed since the slab was last empty.
    pub(super) ended: usize,
    /// Moves of the clock since a segment was last looked for, and after how many it is.
    moves: usize,
    moves_per_segment: usize,
    /// Timers scheduled up to the last move.
    scheduled: u64,
    /// The search for an empty segment goes on below this place of the table.
    looked_above: usize,
    /// [`Slab::changes`] when that search began.
    began_at: u64,
    /// [`Slab::changes`] when the last search began that has found no empty segment. While it is
    /// the same there is none.
    none_at: Option<u64>,
}

impl Trim {
    pub(super) fn new() -> Self {
        Self {
            ended: 0,
            moves: 0,
            moves_per_segment: MOVES_PER_RELEASE,
            scheduled: 0,
            looked_above: usize::MAX,
            began_at: 0,
            none_at: None,
        }
    }

    /// Whether a search has found no empty segment, and no node has become free since.
    fn is_settled<T>(&self, slab: &Slab<T>) -> bool {
        self.none_at == Some(slab.changes())
    }
}

impl<T> Recycler<T> {
    /// Whether there may be something to give, to the system or the slab, however few timers are
    /// pending, or a batch has just been begun: then whether the next one hurries is decided anew.
    /// Otherwise [`note_move`](Self::note_move) has nothing to do.
    pub(crate) fn may_give(&self, slab: &Slab<T>) -> bool {
        self.nodes.count() > 0 || self.steps == 0 || self.excess(slab, 0) > 0
    }

    /// Notes that the clock has moved, and may retire a segment. `scheduled` timers have
    /// been scheduled so far, and `live` timers are pending.
    ///
    /// Returns true if nothing has been scheduled since the last move and memory is not needed.
    #[inline]
    pub(crate) fn note_move(
        &mut self,
        slab: &Slab<T>,
        scheduled: u64,
        live: usize,
        reclaimer: &mut Reclaimer,
    ) -> bool {
        self.trim.moves += 1;
        let excess = self.excess(slab, live);
        self.hurries = live == 0 || excess > 0 && self.steps >= MOVES_PER_RELEASE;
        let is_idle = std::mem::replace(&mut self.trim.scheduled, scheduled) == scheduled;
        if is_idle || self.trim.moves >= self.trim.moves_per_segment {
            self.trim.moves = 0;
            self.trim.moves_per_segment = (MOVES_PER_SEGMENT / excess.max(1)).clamp(1, MOVES_PER_RELEASE);
            self.give_back(slab, excess.min(1), reclaimer);
            return is_idle && excess > 0;
        }
        false
    }

    /// Gives back a share of the memory that `live` timers do not need, and does a step so that
    /// nodes freed so far count at the next call.
    pub(crate) fn shed(&mut self, slab: &Slab<T>, live: usize, reclaimer: &mut Reclaimer) {
        let excess = self.excess(slab, live);
        let share = (excess + self.leaving()).div_ceil(SHARE);
        self.hurries = true;
        self.step(WORDS_PER_STEP, slab, reclaimer);
        (0..share.max(1)).take_while(|_| self.give_memory(true, reclaimer)).for_each(drop);
        self.give_back(slab, share.min(excess), reclaimer);
    }

    /// Whether [`shed`](Self::shed) may have something to give back, with `live` timers pending.
    /// False once the slab has all freed nodes and a search since then has found no empty segment:
    /// one timer is enough to keep a segment.
    pub(crate) fn owes_memory(&self, slab: &Slab<T>, live: usize) -> bool {
        if self.leaving() > 0 {
            return true;
        }
        if self.excess(slab, live) == 0 {
            return false;
        }
        self.nodes.count() > 0 || !self.trim.is_settled(slab)
    }

    /// Whether there is more memory than `live` timers need, and some of it may be empty.
    pub(crate) fn has_excess(&self, slab: &Slab<T>, live: usize) -> bool {
        !self.trim.is_settled(slab) && self.excess(slab, live) > 0
    }

    /// The number of segments beyond those that twice `live` timers fill (rounded up) and one to
    /// spare. With none pending, all segments are excess, but an idle shard keeps its last segment
    /// for an occasional timer until a good part of it has been used.
    pub(crate) fn excess(&self, slab: &Slab<T>, live: usize) -> usize {
        let segments = slab.size();
        if live > 0 {
            return segments.saturating_sub((2 * live).div_ceil(Segment::<T>::NODES) + 1);
        }
        let is_last_kept = segments == 1 && self.trim.ended < Segment::<T>::NODES / USED_SHARE;
        segments.saturating_sub(usize::from(is_last_kept || KEEPS_FIRST_SEGMENT))
    }

    /// Retires up to `segments` empty segments, the highest first. Each attempt looks at a limited
    /// number of places; the next one continues below them.
    fn give_back(&mut self, slab: &Slab<T>, segments: usize, reclaimer: &mut Reclaimer) {
        for _ in 0..segments {
            let trim = &mut self.trim;
            if trim.looked_above == usize::MAX {
                trim.began_at = slab.changes();
            }
            match slab.retire_one(trim.looked_above, &mut self.retired, reclaimer) {
                Ok(index) => self.nodes.forget(index),
                Err(looked_above) if looked_above > usize::from(KEEPS_FIRST_SEGMENT) => {
                    trim.looked_above = looked_above
                }
                Err(_) => {
                    trim.looked_above = usize::MAX;
                    trim.none_at = Some(trim.began_at);
                    break;
                }
            }
        }
        if slab.size() == 0 {
            self.trim.ended = 0;
        }
    }
}
