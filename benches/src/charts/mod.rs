//! Charts of what `peers` and `live` have measured, drawn from the JSON that they write.
//!
//! A chart has the file's name of what it shows, and says on which machine and at which commit that was measured. An
//! engine has the same colour in all charts of a run, and is dashed where it has no lock; `shardwheel` is red and thick.

mod bars;
mod frame;
mod lines;
mod palette;
mod read;

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::label;
use crate::names::{
    ALONE, APART, FIRE, LATE, LIVE_FINE, LIVE_FIRE, RANDOM, SCHEDULE, SHARED, TWO_CHURN, TWO_SCHEDULE,
};
use bars::{Bars, Row};
use lines::{Axis, Line, Lines};
use palette::Palette;
use read::Measured;

const MICROS: &str = "microseconds after the deadline (median of the rounds)";

/// Draws every chart that `all` has figures for into that directory, which is made where it is not there; returns the
/// names of the files.
///
/// # Errors
///
/// If `all` is not what a program writes, or a file cannot be written.
pub fn draw_charts(dir: &Path, all: &Value) -> Result<Vec<String>, Box<dyn Error>> {
    let measured = Measured::read(all).ok_or("these are no figures of `peers` or `live`")?;
    fs::create_dir_all(dir)?;
    let sheet = Sheet { dir, palette: Palette::of(&measured), measured };
    let mut drawn = Vec::new();
    for what in [SCHEDULE, FIRE] {
        drawn.extend(sheet.cost(what)?);
    }
    for section in [TWO_CHURN, TWO_SCHEDULE] {
        for timers in sheet.measured.timers(section) {
            drawn.extend(sheet.threads(section, timers)?);
        }
    }
    for section in [LIVE_FIRE, LIVE_FINE] {
        drawn.extend(sheet.lateness(section)?);
    }
    Ok(drawn)
}

/// What all charts of a run have in common.
struct Sheet<'a> {
    dir: &'a Path,
    measured: Measured,
    palette: Palette,
}

type Drawn = Result<Option<String>, Box<dyn Error>>;

impl Sheet<'_> {
    /// What a timer costs, against the number of timers.
    fn cost(&self, what: &str) -> Drawn {
        let timers = self.measured.timers(RANDOM);
        let at = |engine: &str, timers: &u64| {
            Some((*timers as f64, self.measured.get(RANDOM, Some(*timers), what, engine)?))
        };
        let title = format!("Cost to {what} a timer, deadlines at random over 30 minutes");
        let ticks = timers.iter().map(|&timers| timers as f64).collect();
        let x = Axis::new("timers", ticks, |timers| label(timers as usize));
        let points = |engine: &str| timers.iter().filter_map(|timers| at(engine, timers)).collect();
        self.lines(&format!("{what}.svg"), &title, x, "ns a timer (median of the rounds)", points)
    }

    /// How late timers fire, against the share of timers that are later still.
    fn lateness(&self, section: &str) -> Drawn {
        let at = |engine: &str, (share, row): &(f64, &str)| {
            Some((1.0 / (1.0 - share), self.measured.get(section, None, row, engine)?))
        };
        let ticks = [0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999].map(|share| 1.0 / (1.0 - share));
        let x = Axis::new("share of the timers, %", ticks.into(), |x| percent(1.0 - 1.0 / x));
        let points = |engine: &str| LATE.iter().filter_map(|late| at(engine, late)).collect();
        let tick = if section == LIVE_FINE { "100 µs" } else { "1 ms" };
        let title = format!("How late timers fire that run in real time, ticks of {tick}");
        self.lines(&format!("late-{section}.svg"), &title, x, MICROS, points)
    }

    /// A line for each engine that has points.
    fn lines(
        &self,
        file: &str,
        title: &str,
        x: Axis,
        y: &str,
        points: impl Fn(&str) -> Vec<(f64, f64)>,
    ) -> Drawn {
        let line = |engine: &&str| Line {
            name: (*engine).to_owned(),
            style: self.palette.style(engine),
            // Nothing has no place on an axis of logarithms.
            points: points(engine).into_iter().filter(|point| point.1 > 0.0).collect(),
        };
        let lines = self.measured.engines().iter().map(line).filter(|line| !line.points.is_empty()).collect();
        let chart = Lines { title, source: &self.measured.source, x, y, lines };
        self.put(file, chart.lines.is_empty(), |path| chart.draw(path))
    }

    /// What two threads get done beside one.
    fn threads(&self, section: &str, timers: u64) -> Drawn {
        let columns = [ALONE, APART, SHARED];
        let throughput =
            |engine: &str, what| Some(1e3 / self.measured.get(section, Some(timers), what, engine)?);
        let row = |engine: &&str| Row {
            name: (*engine).to_owned(),
            is_ours: palette::is_ours(engine),
            values: columns.map(|what| throughput(engine, what)).into(),
        };
        let engines = self.measured.engines();
        let rows = engines.iter().map(row);
        let rows = rows.filter(|row| row.values.iter().any(Option::is_some)).collect::<Vec<_>>();
        let (what, operations) = match section {
            TWO_CHURN => (
                format!("Churn over {} standing timers", label(timers as usize)),
                "pairs of schedule + cancel",
            ),
            _ => (format!("Schedule, {} timers from each thread", label(timers as usize)), "timers"),
        };
        let chart = Bars {
            title: &format!("{what}: two threads beside one"),
            source: &self.measured.source,
            unit: &format!("millions of {operations} a second, all threads together (median of the rounds)"),
            columns: &columns,
            rows,
        };
        self.put(&format!("{section}-{}.svg", label(timers as usize)), chart.rows.is_empty(), |path| {
            chart.draw(path)
        })
    }

    /// Draws a chart into a file, unless it is empty; returns the file's name.
    fn put(
        &self,
        file: &str,
        is_empty: bool,
        draw: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
    ) -> Drawn {
        if is_empty {
            return Ok(None);
        }
        draw(&self.dir.join(file))?;
        Ok(Some(file.to_owned()))
    }
}

/// A share in as many digits as it needs; so near to all that it takes more is all.
fn percent(share: f64) -> String {
    const DIGITS: f64 = 1e4;
    format!("{}", (share * 100.0 * DIGITS).round() / DIGITS)
}

#[cfg(test)]
mod tests;
