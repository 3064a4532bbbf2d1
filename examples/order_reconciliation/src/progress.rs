//! The progress bar: on standard error, and only if that is a terminal. `orders` has one too.

use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Reason;
use crate::load::LineCount;

/// Records between two updates of the bar.
const STEP: u64 = 4_096;

/// One stage of the job. Clones are handles of the same bar.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// The stage that reads files; the amount of work is unknown.
    pub(crate) fn reading() -> Self {
        Self { bar: ProgressBar::no_length().with_style(style("reading    {human_pos} lines {per_sec}")) }
    }

    /// The stage that generates a data set: the orders, then about as many payments.
    pub(crate) fn generating(orders: u32) -> Self {
        Self::bar("generating", 2 * u64::from(orders))
    }

    /// The stage that places the orders and ends each of them.
    pub(crate) fn playing(orders: usize) -> Self {
        Self::bar("playing", orders as u64)
    }

    /// Shows that `before` of the work was done before this process began.
    #[must_use]
    pub fn after(self, before: u64) -> Self {
        self.bar.set_position(before);
        self.bar.reset_eta();
        self
    }

    /// A stage with a known amount of work.
    #[must_use]
    pub fn bar(stage: &str, length: u64) -> Self {
        let style = style(&format!("{stage:<11}{{wide_bar}} {{human_pos}} of {{human_len}}, {{eta}}"));
        Self { bar: ProgressBar::new(length).with_style(style) }
    }

    /// Adds work that is done.
    pub fn add(&self, done: u64) {
        self.bar.inc(done);
    }

    /// Runs `print` while the bar is hidden.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
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
        self.bar.finish_and_clear();
    }
}

/// The templates are constant; a wrong template falls back to the library's default.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
