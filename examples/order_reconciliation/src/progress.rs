//! The progress bar: on standard error, and only if that is a terminal. `orders` has one too.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::input::Reason;
use crate::load::LineCount;

/// Records between two updates of the bar.
const STEP: u64 = 4_096;
/// The time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Characters of the bar.
const WIDTH: usize = 30;
/// Characters of the line. A terminal has as many, and one more for the cursor.
const LINE: usize = 79;

/// One stage of the work. Clones are handles of the same bar.
#[derive(Clone)]
pub struct Progress(Option<Arc<Mutex<Bar>>>);

struct Bar {
    stage: String,
    /// `None`: the amount of work is unknown.
    length: Option<u64>,
    done: u64,
    begin: Instant,
    drawn: Instant,
}

impl Progress {
    /// The stage that reads files; the amount of work is unknown.
    pub(crate) fn reading() -> Self {
        Self::new("reading", None)
    }

    /// The stage that generates a data set: the orders, then about as many payments.
    pub(crate) fn generating(orders: u32) -> Self {
        Self::bar("generating", 2 * u64::from(orders))
    }

    /// A stage with a known amount of work.
    #[must_use]
    pub fn bar(stage: &str, length: u64) -> Self {
        Self::new(stage, Some(length))
    }

    fn new(stage: &str, length: Option<u64>) -> Self {
        let now = Instant::now();
        let bar = Bar { stage: stage.to_owned(), length, done: 0, begin: now, drawn: now };
        Self(io::stderr().is_terminal().then(|| Arc::new(Mutex::new(bar))))
    }

    /// Adds work that is done.
    pub fn add(&self, done: u64) {
        let Some(mut bar) = self.lock() else { return };
        bar.done += done;
        if bar.drawn.elapsed() >= DRAW_EVERY {
            bar.drawn = Instant::now();
            draw(&bar.line());
        }
    }

    /// Runs `print` while the bar is hidden.
    pub fn suspend(&self, print: impl FnOnce()) {
        // Held, so that no other thread draws meanwhile.
        let bar = self.lock();
        if bar.is_some() {
            draw("");
        }
        print();
    }

    /// Enters records; counts them and those that are refused.
    pub(crate) fn count<T>(
        &self,
        records: impl Iterator<Item = T>,
        mut enter: impl FnMut(T) -> Result<(), Reason>,
    ) -> LineCount {
        let mut count = LineCount::default();
        for record in records {
            count.read += 1;
            count.bad += u64::from(enter(record).is_err());
            if count.read % STEP == 0 {
                self.add(STEP);
            }
        }
        count
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.suspend(|| {});
    }

    fn lock(&self) -> Option<MutexGuard<'_, Bar>> {
        self.0.as_ref().map(|bar| bar.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Bar {
    fn line(&self) -> String {
        let Self { stage, length, done, begin, .. } = self;
        let Some(length) = length.filter(|&length| length > 0) else {
            return format!("{stage}: {done}");
        };
        let part = (*done as f64 / length as f64).min(1.0);
        let left = begin.elapsed().mul_f64(length.saturating_sub(*done) as f64 / (*done).max(1) as f64);
        let (bar, left) = ("#".repeat((part * WIDTH as f64) as usize), left.as_secs());
        let percent = (part * 100.0) as u64;
        format!("{stage:<23} [{bar:<WIDTH$}] {percent:>3} %, {}:{:02} left", left / 60, left % 60)
    }
}

/// Replaces the line on the terminal.
fn draw(line: &str) {
    let mut err = io::stderr();
    // A terminal that is gone shows nothing.
    let _ = write!(err, "\r{line:<LINE$}\r").and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_part_that_is_done_and_the_time_that_is_left() {
        let now = Instant::now();
        let begin = now.checked_sub(Duration::from_secs(30)).expect("the machine runs for longer");
        let bar = |length, done| Bar { stage: "feeding".to_owned(), length, done, begin, drawn: now }.line();
        let half = bar(Some(200), 100);
        assert!(half.contains("[###############               ]  50 %, 0:3") && half.len() < LINE, "{half}");
        assert!(bar(Some(200), 300).contains("100 %, 0:00 left"));
        assert_eq!(bar(None, 7), "feeding: 7");
        assert_eq!(bar(Some(0), 0), "feeding: 0");
    }
}
