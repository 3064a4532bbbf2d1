//! A line that shows how far the work is: on standard error, and only if that is a terminal.
//! `feed` and `audit` of `orders` show it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Characters of the line. A terminal has as many, and one more for the cursor.
const WIDTH: usize = 79;

/// One stage of the work. Clones are handles of the same line.
#[derive(Clone)]
pub struct Progress(Option<Arc<Mutex<Line>>>);

struct Line {
    stage: String,
    length: u64,
    done: u64,
    drawn: Instant,
}

impl Progress {
    /// A stage and its amount of work.
    #[must_use]
    pub fn bar(stage: &str, length: u64) -> Self {
        let line = Line { stage: stage.to_owned(), length, done: 0, drawn: Instant::now() };
        Self(io::stderr().is_terminal().then(|| Arc::new(Mutex::new(line))))
    }

    /// Adds work that is done.
    pub fn add(&self, done: u64) {
        let Some(mut line) = self.lock() else { return };
        line.done += done;
        if line.drawn.elapsed() >= DRAW_EVERY {
            line.drawn = Instant::now();
            draw(&line.text());
        }
    }

    /// Runs `print` while the line is hidden.
    pub fn suspend(&self, print: impl FnOnce()) {
        // Held, so that no other thread draws meanwhile.
        let line = self.lock();
        if line.is_some() {
            draw("");
        }
        print();
    }

    /// Removes the line.
    pub fn finish(self) {
        self.suspend(|| {});
    }

    fn lock(&self) -> Option<MutexGuard<'_, Line>> {
        self.0.as_ref().map(|line| line.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Line {
    fn text(&self) -> String {
        let Self { stage, length, done, .. } = self;
        format!("{stage}: {} %", (done * 100).checked_div(*length).unwrap_or(100))
    }
}

/// Replaces the line on the terminal.
fn draw(line: &str) {
    let mut err = io::stderr();
    // A terminal that is gone shows nothing.
    let _ = write!(err, "\r{line:<WIDTH$}\r").and_then(|()| err.flush());
}
