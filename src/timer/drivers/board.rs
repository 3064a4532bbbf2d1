//! What the drivers of a timer, and the threads that wake them, read of each other: for each shard,
//! which driver holds it and when it is due; for each driver, what it does. All of it is atomic, so
//! a thread that stops for ever holds nothing up.
//!
//! Who writes what:
//!
//! | field | written by |
//! |---|---|
//! | `holder` | the thread that has the lock of the shard's slot (see [`crew`](super::crew)) |
//! | `due` | the thread that takes the worker out of its slot, or puts it back |
//! | `rung` | set by every thread, cleared by the thread that takes the worker out |
//! | `round`, `looks_at`, `load`, `measured_at`, `is_spare`, `thread` | the driver |
//! | `apart_until` | the driver that the shard has held up |
//! | `left_alone` | the shutdown |
//!
//! # Why no wake-up is lost
//!
//! Each side writes its own word, passes a SeqCst fence, and reads the other side's word. So of
//! each pair at least one sees what the other has written.
//!
//! | one side | the other side |
//! |---|---|
//! | [`ring`](Board::ring): writes `rung`, reads `holder` | a hand-over writes `holder`; the new holder's next round reads `rung` |
//! | [`ring`](Board::ring): writes `rung`, reads `round` | the holder writes `round`, reads `rung` |
//! | a round: writes `round`, reads the `looks_at` of the stand-by | the stand-by writes `looks_at`, reads `round` |
//! | [`ring`](Board::ring): writes `rung`, reads `looks_at` | the stand-by writes `looks_at`, reads `rung` |
//!
//! A driver clears its parker before it reads anything, and a ring notifies the parker after it has
//! written `rung`. So a ring that the driver has not seen ends the sleep that follows.

use crossbeam_utils::CachePadded;

use super::Nanos;
use super::parker::Parker;
use crate::clock::{ThreadNumber, this_thread};
use crate::sync::plain;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use crate::timer::phase::Progress;

/// The `due` of a shard whose worker is out of its slot.
const OUT: Nanos = Nanos::MAX;
/// The `due` of a shard in which nothing is pending.
pub(crate) const IDLE: Nanos = Nanos::MAX - 1;
/// The `round` of a driver that is not in a round.
const RESTING: Nanos = 0;
/// The most drivers of a timer.
pub(crate) const MAX_DRIVERS: usize = 1024;

pub(crate) struct Board {
    shards: Box<[CachePadded<Entry>]>,
    seats: Box<[CachePadded<Seat>]>,
    pub(crate) limits: Limits,
    /// Whether shards change hands.
    pub(crate) is_shared: bool,
}

/// How long a driver may be in a round before the stand-by takes its other shards.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) patience: Nanos,
    /// How much later than that the stand-by may look.
    pub(crate) slack: Nanos,
}

struct Entry {
    holder: AtomicUsize,
    rung: AtomicBool,
    due: AtomicU64,
    /// Until then the shard has a driver of its own, because it has held a driver up.
    apart_until: AtomicU64,
}

/// What others read of a driver.
pub(crate) struct Seat {
    pub(crate) parker: Parker,
    /// How far the driver is; for a shutdown.
    pub(crate) progress: Progress,
    /// Written by the driver once it runs.
    thread: plain::AtomicU64,
    /// The shutdown does not wait for the user code that the driver runs. Written by the shutdown.
    left_alone: plain::AtomicBool,
    /// When its round began, or [`RESTING`].
    round: AtomicU64,
    /// When it looks at the other drivers next; for the stand-by.
    looks_at: AtomicU64,
    /// Its load over its last window, in thousandths, and the end of that window.
    load: AtomicU64,
    measured_at: AtomicU64,
    /// Whether it held no shard when it last looked.
    is_spare: plain::AtomicBool,
}

/// What a driver sees at the beginning of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether the driver holds a shard.
    pub(crate) holds_any: bool,
    /// When the first and the second of them are due; 0 for a shard that was rung.
    pub(crate) dues: [Nanos; 2],
}

/// A set of drivers.
struct Set([u64; MAX_DRIVERS / 64]);

impl Board {
    /// Makes a board on which each shard belongs to the driver that `holder` returns for it.
    pub(crate) fn new(
        shards: usize,
        drivers: usize,
        limits: Limits,
        is_shared: bool,
        holder: impl Fn(usize) -> usize,
    ) -> Self {
        let entry = |shard| CachePadded::new(Entry::new(holder(shard)));
        let seat = |_| CachePadded::new(Seat::new(Parker::for_thread()));
        let (shards, seats) = ((0..shards).map(entry).collect(), (0..drivers).map(seat).collect());
        Self { shards, seats, limits, is_shared }
    }

    /// Makes a board with one driver, which has no thread and holds all shards.
    pub(crate) fn without_threads(shards: usize, limits: Limits) -> Self {
        let shards = (0..shards).map(|_| CachePadded::new(Entry::new(0))).collect();
        let seat = CachePadded::new(Seat::new(Parker::for_task()));
        Self { shards, seats: [seat].into(), limits, is_shared: false }
    }

    pub(crate) fn seat(&self, driver: usize) -> &Seat {
        &self.seats[driver]
    }

    pub(crate) fn drivers(&self) -> usize {
        self.seats.len()
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Notes that the shutdown does not wait for the user code that the thread runs.
    pub(crate) fn leave_alone(&self, thread: ThreadNumber) {
        self.seats.iter().filter(|seat| seat.thread() == thread).for_each(|seat| seat.leave_alone());
    }

    /// The shards that the driver holds.
    pub(crate) fn held_by(&self, driver: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.shards.len()).filter(move |&shard| self.holder(shard) == driver)
    }

    pub(crate) fn holder(&self, shard: usize) -> usize {
        // Ordering: Acquire, pairs with `set_holder`.
        self.shards[shard].holder.load(Ordering::Acquire)
    }

    /// Hands the shard over; for the thread that has the lock of its slot.
    pub(crate) fn set_holder(&self, shard: usize, driver: usize) {
        // Ordering: Release, pairs with `holder`. The new holder's fence orders it before the look
        // at `rung`, see the module docs.
        self.shards[shard].holder.store(driver, Ordering::Release);
    }

    /// Makes the shard's holder visit it. If the holder is in a round, the stand-by watches that
    /// round.
    pub(crate) fn ring(&self, shard: usize) {
        let entry = &self.shards[shard];
        // Ordering: AcqRel. The Release half pairs with `take`: what the ring is about is visible.
        // A read-modify-write continues the release sequences of earlier rings.
        entry.rung.swap(true, Ordering::AcqRel);
        // Ordering: SeqCst, see the module docs.
        fence(Ordering::SeqCst);
        let seat = &self.seats[self.holder(shard)];
        seat.parker.notify();
        // Ordering: Relaxed, the fence orders it.
        let round = seat.round.load(Ordering::Relaxed);
        if round != RESTING && self.is_shared {
            self.ensure_watch(round.saturating_add(self.limits.patience));
        }
    }

    /// Notes that the shard's worker is out, and clears its bell.
    pub(crate) fn take(&self, shard: usize) {
        let entry = &self.shards[shard];
        // Ordering: AcqRel. The Acquire half pairs with `ring`: what the rings are about is
        // visible.
        entry.rung.swap(false, Ordering::AcqRel);
        // Ordering: Release, pairs with `due_of`: a stand-by that finds this worker out also finds
        // in their slots the workers that the driver has put back before.
        entry.due.store(OUT, Ordering::Release);
    }

    /// Notes that the shard's worker is in its slot, and when it is due.
    pub(crate) fn put_back(&self, shard: usize, due: Nanos) {
        // Ordering: Release, pairs with `due_of`: the thread that reads it may take the worker.
        self.shards[shard].due.store(due.min(IDLE), Ordering::Release);
    }

    /// When the shard is due: 0 if it was rung, [`OUT`] if its worker is out.
    fn due_of(&self, shard: usize) -> Nanos {
        let entry = &self.shards[shard];
        // Ordering: Acquire, pairs with `put_back`.
        let due = entry.due.load(Ordering::Acquire);
        // Ordering: Relaxed, the fence of the caller orders it; `take` acquires.
        if due != OUT && entry.rung.load(Ordering::Relaxed) { 0 } else { due }
    }

    /// Whether the driver's visit to the shard is due.
    pub(crate) fn is_ready(&self, shard: usize, driver: usize, now: Nanos) -> bool {
        self.holder(shard) == driver && self.due_of(shard) <= now
    }

    /// Begins a driver's round, and looks at what the driver has to do. The caller has cleared its
    /// parker.
    pub(crate) fn begin_round(&self, driver: usize, now: Nanos) -> Look {
        // Ordering: Relaxed, the fence orders it.
        self.seats[driver].round.store(now.max(RESTING + 1), Ordering::Relaxed);
        // Ordering: SeqCst, see the module docs.
        fence(Ordering::SeqCst);
        let mut look = Look { holds_any: false, dues: [IDLE; 2] };
        for shard in self.held_by(driver) {
            look.holds_any = true;
            note(&mut look.dues, self.due_of(shard));
        }
        look
    }

    /// Notes whether the driver holds no shard. True if it has held none up to now, and holds one.
    pub(crate) fn has_got_shards(&self, driver: usize, is_spare: bool) -> bool {
        // Ordering: Relaxed, the driver reads what it has written.
        self.seats[driver].is_spare.swap(is_spare, Ordering::Relaxed) && !is_spare
    }

    /// Makes the stand-by look at the other drivers.
    pub(crate) fn wake_stand_by(&self) {
        self.spares().next().into_iter().for_each(|driver| self.seats[driver].parker.notify());
    }

    pub(crate) fn end_round(&self, driver: usize) {
        // Ordering: Release, so it comes after the dues that the round has put back. A stand-by
        // that still reads the round as under way does no harm.
        self.seats[driver].round.store(RESTING, Ordering::Release);
    }

    /// Wakes the stand-by if it would look later than `by`.
    pub(crate) fn ensure_watch(&self, by: Nanos) {
        let Some(seat) = self.spares().next().map(|driver| &self.seats[driver]) else { return };
        // Ordering: Relaxed, the fence of the caller orders it.
        if seat.looks_at.load(Ordering::Relaxed) > by.saturating_add(self.limits.slack) {
            seat.parker.notify();
        }
    }

    /// The drivers that hold no shard. The first is the *stand-by*.
    pub(crate) fn spares(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let mut busy = Set::new();
        (0..self.shards.len()).for_each(|shard| busy.insert(self.holder(shard)));
        busy.rest(self.seats.len())
    }

    /// Announces when the stand-by looks next.
    pub(crate) fn announce(&self, driver: usize, looks_at: Nanos) {
        // Ordering: Relaxed, the fence orders it.
        self.seats[driver].looks_at.store(looks_at, Ordering::Relaxed);
        // Ordering: SeqCst, see the module docs.
        fence(Ordering::SeqCst);
    }

    /// The time from which the driver holds a shard up, if it does not come back. `dues` are the
    /// first two dues of the driver's shards whose workers are in their slots.
    pub(crate) fn late_at(&self, driver: usize, dues: [Nanos; 2]) -> Nanos {
        // Ordering: Relaxed, the fence in `announce` orders it.
        let round = self.seats[driver].round.load(Ordering::Relaxed);
        // A driver that rests wakes for the first due; only the second shard can be held up.
        let due = if round == RESTING { dues[1] } else { dues[0].max(round) };
        if due >= IDLE { IDLE } else { due.saturating_add(self.limits.patience) }
    }

    /// Collects the first two dues of each driver's shards.
    pub(crate) fn collect_dues(&self, dues: &mut [[Nanos; 2]]) {
        dues.fill([IDLE; 2]);
        (0..self.shards.len()).for_each(|shard| note(&mut dues[self.holder(shard)], self.due_of(shard)));
    }

    // ---- load --------------------------------------------------------------------------------

    pub(crate) fn note_load(&self, driver: usize, load: u64, now: Nanos) {
        let seat = &self.seats[driver];
        // Ordering: Relaxed, a figure.
        seat.load.store(load, Ordering::Relaxed);
        // Ordering: Relaxed, a figure.
        seat.measured_at.store(now, Ordering::Relaxed);
    }

    /// The driver's load. It is 0 if the driver has slept for more than two windows, and `None` if
    /// the driver holds its shards up.
    pub(crate) fn load(&self, driver: usize, now: Nanos, window: Nanos) -> Option<u64> {
        let seat = &self.seats[driver];
        // Ordering: Relaxed, a hint.
        let round = seat.round.load(Ordering::Relaxed);
        if round != RESTING && now.saturating_sub(round) > self.limits.patience {
            return None;
        }
        // Ordering: Relaxed, a figure.
        let age = now.saturating_sub(seat.measured_at.load(Ordering::Relaxed));
        // Ordering: Relaxed, a figure.
        Some(if age <= 2 * window { seat.load.load(Ordering::Relaxed) } else { 0 })
    }

    /// Notes that the shard has held its driver up, and that it has a driver of its own up to
    /// `until`.
    pub(crate) fn set_apart(&self, shard: usize, until: Nanos) {
        // Ordering: Relaxed, a hint.
        self.shards[shard].apart_until.store(until, Ordering::Relaxed);
    }

    pub(crate) fn is_apart(&self, shard: usize, now: Nanos) -> bool {
        // Ordering: Relaxed, a hint.
        self.shards[shard].apart_until.load(Ordering::Relaxed) > now
    }
}

/// Keeps the two earliest dues.
fn note(dues: &mut [Nanos; 2], due: Nanos) {
    let [first, second] = *dues;
    *dues = [first.min(due), second.min(due.max(first))];
}

impl Entry {
    fn new(holder: usize) -> Self {
        Self {
            holder: AtomicUsize::new(holder),
            rung: AtomicBool::new(false),
            due: AtomicU64::new(0),
            apart_until: AtomicU64::new(0),
        }
    }
}

impl Seat {
    fn new(parker: Parker) -> Self {
        Self {
            parker,
            progress: Progress::new(),
            thread: plain::AtomicU64::new(0),
            left_alone: plain::AtomicBool::new(false),
            round: AtomicU64::new(RESTING),
            looks_at: AtomicU64::new(IDLE),
            load: AtomicU64::new(0),
            measured_at: AtomicU64::new(0),
            is_spare: plain::AtomicBool::new(true),
        }
    }

    /// Makes the calling thread this driver's.
    pub(crate) fn set_thread(&self) {
        self.parker.set_thread();
        // Ordering: Relaxed. `build` waits until each driver has started, so readers come after
        // this.
        self.thread.store(this_thread(), Ordering::Relaxed);
    }

    pub(crate) fn thread(&self) -> ThreadNumber {
        // Ordering: Relaxed, see `set_thread`.
        self.thread.load(Ordering::Relaxed)
    }

    pub(crate) fn is_left_alone(&self) -> bool {
        // Ordering: Relaxed, the shutdown reads what it has written.
        self.left_alone.load(Ordering::Relaxed)
    }

    pub(crate) fn leave_alone(&self) {
        // Ordering: Relaxed, see `is_left_alone`.
        self.left_alone.store(true, Ordering::Relaxed);
    }
}

impl Set {
    fn new() -> Self {
        Self([0; MAX_DRIVERS / 64])
    }

    fn insert(&mut self, driver: usize) {
        self.0[driver / 64] |= 1 << (driver % 64);
    }

    /// Those of `drivers` that are not in the set.
    fn rest(self, drivers: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        (0..drivers).filter(move |&driver| self.0[driver / 64] & 1 << (driver % 64) == 0)
    }
}
