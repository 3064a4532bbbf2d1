//! The progress bar: on standard error, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

use super::input::Reason;
use super::load::LineCount;

/// How many records pass between two updates of the bar.
const STEP: u64 = 4_096;

/// One stage of the job. Clones are handles of the same bar.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Files are read: how much there is to do is not known.
    pub(crate) fn reading() -> Self {
        Self { bar: ProgressBar::no_length().with_style(style("reading    {human_pos} lines {per_sec}")) }
    }

    /// A data set is made: orders first, and then as often their payments.
    pub(crate) fn generating(orders: u32) -> Self {
        Self::bar("generating", 2 * u64::from(orders))
    }

    /// Orders are placed, and come to their end.
    pub(crate) fn playing(orders: usize) -> Self {
        Self::bar("playing   ", orders as u64)
    }

    fn bar(stage: &str, length: u64) -> Self {
        let style = style(&format!("{stage} {{wide_bar}} {{human_pos}} of {{human_len}}, {{eta}}"));
        Self { bar: ProgressBar::new(length).with_style(style) }
    }

    pub(crate) fn add(&self, done: u64) {
        self.bar.inc(done);
    }

    /// Does `print` while the bar is out of the way.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Enters records, and counts them and those that are refused.
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

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The templates are constant; a wrong one falls back to the library's.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
