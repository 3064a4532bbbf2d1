//! The monotonic clock, read at half the cost: the processor's counter plus a recent anchor.
//!
//! [`Instant::now`] takes about 25 ns, the processor's counter about 10 ns. Each thread keeps an
//! anchor: one reading of both clocks. While the counter has advanced by less than [`WINDOW`] since
//! then, the time is the anchor's time plus the counter's advance. After that the thread reads both
//! clocks again and makes a new anchor. The anchor's counter is read before the anchor's time.
//!
//! The counter's rate is measured once, for [`SPAN`]. The system's clock may run at another rate
//! later: Linux slews it by up to a tenth either way. So the advance counts a quarter more than was
//! measured, which covers a clock that was slewed one way then and is slewed the other way now.
//!
//! The result is therefore *at least* what `Instant::now` would return. It is some 20 us more at
//! most, or 80 us if the thread was interrupted while it made the anchor. That is right for a
//! deadline, which may be late by that much and must not be early. Do not use it to decide what is
//! due.
//!
//! The counter is used only where the system itself uses it for its monotonic clock: there it runs
//! at one rate, and all cores agree. Until a thread has measured the rate, there is no fast clock.
//! No thread waits for the one that measures: a process may fork meanwhile, and its child has the
//! calling thread alone.

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;

use crate::hardware::cycles;
use crate::time::{Duration, Instant};

/// An anchor is valid for at most this long.
const WINDOW: Duration = Duration::from_micros(64);

/// Nanoseconds added for the steps in which the clocks count.
const MARGIN: u64 = 1_000;

/// The rate is measured over this time.
const SPAN: Duration = Duration::from_millis(5);

/// Readings of both clocks at each end of [`SPAN`]. The quickest counts: no interruption came
/// between its two clocks.
const TRIES: usize = 100;

struct CycleCounter {
    /// The counter's steps in [`WINDOW`].
    window: u64,
    /// The nanoseconds that a step counts, times 2^[`FRACTION`].
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
    /// Measures the counter's rate, unless it is known. Takes some 5 ms.
    pub(crate) fn calibrate() {
        if COUNTER.get().is_none() {
            // An error means that another thread has done it.
            let _ = COUNTER.set(if is_trusted() { CycleCounter::calibrate() } else { None });
        }
    }

    /// Starts counting now, and returns the time of the start.
    pub(crate) fn start() -> Option<(Self, Instant)> {
        // Before `now`, so that the start is not before the base.
        let base = base();
        let now = crate::sync::now();
        let start = u64::try_from(now.saturating_duration_since(base).as_nanos()).ok()?;
        Some((Self { start }, now))
    }

    /// Nanoseconds since the start: the present, or a little later. `None` if the counter is not
    /// calibrated yet, or cannot be trusted.
    #[inline(always)]
    pub(crate) fn now_or_later(self) -> Option<u64> {
        let counter = COUNTER.get()?.as_ref()?;
        let raw = cycles();
        let nanos = match ANCHOR.get() {
            Some(anchor) if raw.wrapping_sub(anchor.raw) < counter.window => {
                anchor.nanos + counter.nanos_of(raw - anchor.raw)
            }
            _ => weigh_anchor(raw),
        };
        Some((nanos + MARGIN).saturating_sub(self.start))
    }
}

impl CycleCounter {
    /// `None` if a clock stands still or goes back.
    fn calibrate() -> Option<Self> {
        let first = quickest_reading()?;
        thread::sleep(SPAN);
        let last = quickest_reading()?;
        let steps = u128::from(last.raw.checked_sub(first.raw)?);
        let nanos = u128::from(last.nanos.checked_sub(first.nanos)?);
        let measured = u64::try_from((nanos << FRACTION).checked_div(steps)?).ok()?;
        // A quarter more: see the module docs.
        let rate = measured + measured.div_ceil(4);
        let window = ((WINDOW.as_nanos() << FRACTION) / u128::from(rate)) as u64;
        Some(Self { window, rate })
    }

    /// The nanoseconds of so many steps, less than a window has.
    #[inline(always)]
    fn nanos_of(&self, steps: u64) -> u64 {
        // No overflow: the steps are below a window's, so the product is at most a window's
        // nanoseconds (16 bits) times 2^FRACTION.
        (steps * self.rate) >> FRACTION
    }
}

/// Takes a new anchor and returns the time. The caller has read `raw` just before.
#[cold]
fn weigh_anchor(raw: u64) -> u64 {
    let nanos = nanos();
    ANCHOR.set(Some(Anchor { raw, nanos }));
    nanos
}

/// Nanoseconds since [`BASE`].
fn nanos() -> u64 {
    base().elapsed().as_nanos() as u64
}

fn base() -> Instant {
    *BASE.get_or_init(crate::sync::now)
}

/// Reads the counter, then the time, several times, and returns the pair that took the least.
fn quickest_reading() -> Option<Anchor> {
    let read = |_| {
        let anchor = Anchor { raw: cycles(), nanos: nanos() };
        (cycles().wrapping_sub(anchor.raw), anchor)
    };
    (0..TRIES).map(read).min_by_key(|(took, _)| *took).map(|(_, anchor)| anchor)
}

/// Whether the system derives its own time from the counter.
fn is_trusted() -> bool {
    // Models need no fast clock, and Miri does not run the instruction that reads the counter.
    if cfg!(any(shardwheel_loom, shardwheel_shuttle, miri)) {
        return false;
    }
    // On aarch64 all cores share one counter.
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_source = || std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc");
    cfg!(target_arch = "aarch64") || cfg!(target_arch = "x86_64") && is_source()
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
        assert!(most <= WINDOW.as_nanos() as u64 / 3, "{most} ns ahead");
    }

    /// The system may slew its clock by a tenth either way.
    #[test]
    fn a_clock_that_is_slewed_after_the_measurement_is_not_outrun() {
        if !is_trusted() {
            return;
        }
        let [one, two] = [(); 2].map(|()| CycleCounter::calibrate().expect("the clocks agree").rate);
        assert!(one.abs_diff(two) <= one >> 13, "{one} and {two}");
        // Measured while the clock was slow by a tenth, used while it is fast by a tenth.
        let true_rate = one / 5 * 4;
        assert!(one / 10 * 9 > true_rate / 10 * 11, "{one}");
    }
}
