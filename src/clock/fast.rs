//! The monotonic clock, read at half the cost: the processor's counter plus a recent anchor.
//!
//! [`Instant::now`] takes about 25 ns, the processor's counter about 10 ns. Each thread keeps an
//! anchor: one reading of both clocks. While the counter has advanced by less than [`WINDOW`] since
//! then, the time is the anchor's time plus the counter's advance. After that the thread reads both
//! clocks again and makes a new anchor. So the counter's rate matters for 1 ms only. In that time
//! the error of the measured rate, and the adjustments that the system makes to its clock, are far
//! below [`MARGIN`]. The anchor's counter is read before the anchor's time, so a time computed from
//! the anchor can only be late, never early.
//!
//! The result is therefore *at least* what `Instant::now` would return, and at most about two
//! [`MARGIN`]s more. That is right for a deadline, which may be late by that much and must not be
//! early. Do not use it to decide what is due.
//!
//! The rate is measured here, over [`SPAN`], because an interruption between the two readings of
//! quanta's own calibration spoils it: on a busy machine, under ThreadSanitizer, it was once wrong
//! by a thousandth, which is more than [`MARGIN`] covers. Both calibrations take up to 205 ms.
//! Until another thread has made them, there is no fast clock.
//!
//! The counter is used only where the system itself uses it for its monotonic clock: there it runs
//! at one rate, and all cores agree.

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use quanta::Clock;

/// An anchor is valid for this long.
const WINDOW: Duration = Duration::from_millis(1);

/// Nanoseconds added to cover the error within a window: a thousandth of [`WINDOW`].
const MARGIN: u64 = 1_000;

/// The rate is measured over this time.
const SPAN: Duration = Duration::from_millis(5);

/// Readings of both clocks at each end of [`SPAN`], of which the quickest counts. On an idle
/// machine it takes less than 0.1 us, so the rate's error is below 1 / 20,000.
const TRIES: usize = 100;

/// If reading both clocks takes longer than this, the two readings make no anchor.
const SAME_MOMENT: Duration = Duration::from_nanos(MARGIN);

struct CycleCounter {
    clock: Clock,
    /// The counter's steps in [`WINDOW`], and in [`SAME_MOMENT`].
    window: u64,
    same_moment: u64,
    /// Nanoseconds in a step, times 2^[`FRACTION`].
    rate: u64,
}

const FRACTION: u32 = 32;

#[derive(Clone, Copy)]
struct Anchor {
    raw: u64,
    nanos: u64,
}

/// `None` where the counter cannot be trusted.
static COUNTER: OnceLock<Option<CycleCounter>> = OnceLock::new();

/// The nanoseconds of an anchor count from here.
static BASE: OnceLock<Instant> = OnceLock::new();

thread_local! {
    static ANCHOR: Cell<Option<Anchor>> = const { Cell::new(None) };
}

/// The moment from which fast readings count.
#[derive(Clone, Copy)]
pub(crate) struct FastClock {
    /// Nanoseconds since [`BASE`].
    start: u64,
}

impl FastClock {
    /// Calibrates the counter, if no other thread has.
    pub(crate) fn calibrate() {
        COUNTER.get_or_init(|| if is_trusted() { CycleCounter::calibrate() } else { None });
    }

    /// Starts counting now, and returns the time of the start.
    pub(crate) fn start() -> Option<(Self, Instant)> {
        // Before `now`, so that the start is not before the base.
        let base = base();
        let now = Instant::now();
        let start = u64::try_from(now.saturating_duration_since(base).as_nanos()).ok()?;
        Some((Self { start }, now))
    }

    /// Nanoseconds since the start: the present, or a little later. `None` if the counter is not
    /// calibrated yet, or cannot be trusted.
    #[inline(always)]
    pub(crate) fn now_or_later(self) -> Option<u64> {
        let counter = COUNTER.get()?.as_ref()?;
        let raw = counter.clock.raw();
        let nanos = match ANCHOR.get() {
            Some(anchor) if raw.wrapping_sub(anchor.raw) < counter.window => {
                // No overflow: the difference is below a window's steps, so the product is at most
                // a window's nanoseconds (20 bits) times 2^FRACTION.
                anchor.nanos + (((raw - anchor.raw) * counter.rate) >> FRACTION)
            }
            _ => counter.weigh_anchor(raw),
        };
        Some((nanos + MARGIN).saturating_sub(self.start))
    }
}

impl CycleCounter {
    /// `None` if a clock stands still or goes back.
    fn calibrate() -> Option<Self> {
        let clock = Clock::new();
        let first = quickest_reading(&clock)?;
        thread::sleep(SPAN);
        let last = quickest_reading(&clock)?;
        let steps = u128::from(last.raw.checked_sub(first.raw)?);
        let nanos = u128::from(last.nanos.checked_sub(first.nanos)?);
        // Rounded up by 2^-14, so that neither its error nor the system's adjustments make a time
        // too early.
        let rate = u64::try_from((nanos << FRACTION).checked_div(steps)?).ok()?;
        let rate = rate + (rate >> 14) + 1;
        let steps = |wanted: Duration| ((wanted.as_nanos() << FRACTION) / u128::from(rate)) as u64;
        Some(Self { window: steps(WINDOW), same_moment: steps(SAME_MOMENT), rate, clock })
    }

    /// Takes a new anchor and returns the time. The caller has read `raw` just before.
    #[cold]
    fn weigh_anchor(&self, raw: u64) -> u64 {
        let nanos = base().elapsed().as_nanos() as u64;
        let is_one_moment = self.clock.raw().wrapping_sub(raw) < self.same_moment;
        ANCHOR.set(is_one_moment.then_some(Anchor { raw, nanos }));
        nanos
    }
}

fn base() -> Instant {
    *BASE.get_or_init(Instant::now)
}

/// Reads the counter, then the time, several times, and returns the pair that took the least.
fn quickest_reading(clock: &Clock) -> Option<Anchor> {
    let read = |_| {
        let anchor = Anchor { raw: clock.raw(), nanos: base().elapsed().as_nanos() as u64 };
        (clock.raw().wrapping_sub(anchor.raw), anchor)
    };
    (0..TRIES).map(read).min_by_key(|(took, _)| *took).map(|(_, anchor)| anchor)
}

/// Whether the system derives its own time from the counter.
fn is_trusted() -> bool {
    if !cfg!(target_arch = "x86_64") {
        // On aarch64 all cores share one counter. On other architectures it is not used.
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
        FastClock::calibrate();
        let (clock, start) = FastClock::start().expect("it starts");
        if clock.now_or_later().is_none() {
            return;
        }
        let mut ahead = Vec::new();
        for _ in 0..1_000_000 {
            let before = start.elapsed().as_nanos() as u64;
            let told = clock.now_or_later().expect("it is calibrated");
            assert!(told >= before, "{told} told, {before} before");
            let after = start.elapsed().as_nanos() as u64;
            ahead.push(told.saturating_sub(after));
        }
        ahead.sort_unstable();
        // An interruption while the clock is set leaves it ahead until it is set again. The median
        // is not affected.
        let most = ahead[ahead.len() / 2];
        assert!(most <= 3 * MARGIN, "{most} ns ahead");
    }

    /// Two measurements agree, however busy the machine is, so the rate is right.
    #[test]
    fn the_rate_is_measured_well() {
        if !is_trusted() {
            return;
        }
        let [one, two] = [(); 2].map(|()| CycleCounter::calibrate().expect("the clocks agree").rate);
        assert!(one.abs_diff(two) <= one >> 13, "{one} and {two}");
    }
}
