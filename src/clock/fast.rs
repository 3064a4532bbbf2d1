//! The monotonic clock, read in half the time: by the processor's counter, from an anchor that is never old.
//!
//! [`Instant::now`] takes some 25 ns, the processor's counter 10. A thread keeps an anchor: one reading of both.
//! While the counter has moved by less than [`WINDOW`] since, the time is the anchor's and what the counter says has
//! passed; after that the thread reads both anew. So the counter's rate matters for a millisecond only: the
//! error of its calibration, and the adjustments that the system makes to its clock, are far below [`MARGIN`] in
//! that time. The anchor's counter is read first, which makes all that is told from it later, never earlier.
//!
//! What comes out is therefore *at least* what `Instant::now` would have said, and at most about two [`MARGIN`]s
//! more: right for a deadline, which may be late by that and must not be early. It is not for telling what is due.
//!
//! The counter is used where the system itself uses it for its monotonic clock: then it runs at one rate, and
//! all cores agree.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use quanta::Clock;

/// For how long an anchor is good.
const WINDOW: Duration = Duration::from_millis(1);

/// Nanoseconds that are added for what may be wrong within a window: a thousandth of it.
const MARGIN: u64 = 1_000;

/// The longest that reading both may take for them to be one moment.
const SAME_MOMENT: Duration = Duration::from_nanos(MARGIN);

struct Counter {
    clock: Clock,
    /// Anchors' nanoseconds count from here.
    base: Instant,
    /// The counter's steps in a window, and in a moment.
    window: u64,
    same_moment: u64,
    /// Nanoseconds in a step, times 2^32.
    rate: u64,
}

#[derive(Clone, Copy)]
struct Anchor {
    raw: u64,
    nanos: u64,
}

/// None where the counter is not to be trusted.
static COUNTER: LazyLock<Option<Counter>> = LazyLock::new(|| is_trusted().then(Counter::new));

thread_local! {
    static ANCHOR: Cell<Option<Anchor>> = const { Cell::new(None) };
}

/// A moment from which fast readings count.
#[derive(Clone, Copy)]
pub(crate) struct FastClock {
    counter: &'static Counter,
    /// Nanoseconds since the counter's base.
    start: u64,
}

impl FastClock {
    /// Counts from now on, if there is a counter to be trusted; and what time it is.
    pub(crate) fn start() -> Option<(Self, Instant)> {
        let counter = COUNTER.as_ref()?;
        let now = Instant::now();
        let start = u64::try_from(now.duration_since(counter.base).as_nanos()).ok()?;
        Some((Self { counter, start }, now))
    }

    /// Nanoseconds since the start: the present, or a little after it.
    #[inline(always)]
    pub(crate) fn now_or_later(self) -> u64 {
        let counter = self.counter;
        let raw = counter.clock.raw();
        let nanos = match ANCHOR.get() {
            Some(anchor) if raw.wrapping_sub(anchor.raw) < counter.window => {
                // No overflow: what comes out is at most a window's nanoseconds, of 20 bits.
                anchor.nanos + (((raw - anchor.raw) * counter.rate) >> 32)
            }
            _ => counter.weigh_anchor(raw),
        };
        (nanos + MARGIN).saturating_sub(self.start)
    }
}

impl Counter {
    fn new() -> Self {
        let clock = Clock::new();
        let steps = |wanted: Duration| steps_within(&clock, wanted);
        let rate = clock.delta_as_nanos(0, 1 << 32);
        Self { base: Instant::now(), window: steps(WINDOW), same_moment: steps(SAME_MOMENT), rate, clock }
    }

    /// Takes a new anchor, `raw` having been read just now; returns the time.
    #[cold]
    fn weigh_anchor(&self, raw: u64) -> u64 {
        let nanos = self.base.elapsed().as_nanos() as u64;
        let is_one_moment = self.clock.raw().wrapping_sub(raw) < self.same_moment;
        ANCHOR.set(is_one_moment.then_some(Anchor { raw, nanos }));
        nanos
    }
}

/// The most steps of the counter that take no longer than `wanted`.
fn steps_within(clock: &Clock, wanted: Duration) -> u64 {
    let fits = |steps: u64| u128::from(clock.delta_as_nanos(0, steps)) <= wanted.as_nanos();
    let (mut few, mut many) = (0, 1 << 40);
    while many - few > 1 {
        let half = few + (many - few) / 2;
        if fits(half) { few = half } else { many = half }
    }
    few
}

/// Whether the system keeps its time by the counter.
fn is_trusted() -> bool {
    if !cfg!(target_arch = "x86_64") {
        // Elsewhere the counter is one for all cores, where there is one at all.
        return cfg!(target_arch = "aarch64");
    }
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_behind_and_hardly_ahead() {
        let Some((clock, start)) = FastClock::start() else { return };
        let mut ahead = Vec::new();
        for _ in 0..1_000_000 {
            let before = start.elapsed().as_nanos() as u64;
            let told = clock.now_or_later();
            assert!(told >= before, "{told} told, {before} before");
            let after = start.elapsed().as_nanos() as u64;
            ahead.push(told.saturating_sub(after));
        }
        ahead.sort_unstable();
        // Where the thread is interrupted in between, the reading after is the later by it.
        let most = ahead[ahead.len() * 999 / 1000];
        assert!(most <= 3 * MARGIN, "{most} ns ahead");
    }

    #[test]
    fn steps_are_as_many_as_fit() {
        let Some(counter) = &*COUNTER else { return };
        let took = counter.clock.delta_as_nanos(0, counter.window);
        assert!((999_000..=1_000_000).contains(&took), "{took}");
    }
}
