//! Every figure of a run, kept by section, number of timers, name and engine.

use std::fmt::Write;

use crate::args::label;
use crate::names::OURS;
use crate::samples::Samples;
use crate::suite::Outcome;

/// The figures of one engine under one name.
pub(crate) struct Series {
    pub(crate) section: String,
    pub(crate) timers: usize,
    pub(crate) what: String,
    pub(crate) engine: String,
    pub(crate) rounds: Samples,
}

/// The line above the rows of a file. The heading stands before it.
const COLUMNS: &str = "section\ttimers\tfigure\tengine\trounds\n";

impl Series {
    /// Reads a row: tabs separate its columns, the last of which are the rounds.
    fn parse(row: &str) -> Option<Self> {
        let columns = row.split('\t').collect::<Vec<_>>();
        let (&[section, timers, what, engine], rounds) = columns.split_first_chunk()?;
        let [section, what, engine] = [section, what, engine].map(str::to_owned);
        let rounds = rounds.iter().map(|figure| figure.parse().ok()).collect::<Option<_>>()?;
        Some(Self { section, timers: timers.parse().ok()?, what, engine, rounds: Samples(rounds) })
    }
}

/// A section and a number of timers.
pub(crate) type At<'a> = (&'a str, usize);

/// Everything measured so far, in the order of the first measurement.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) heading: String,
    pub(crate) conditions: String,
    pub(crate) figures: Vec<Series>,
    /// Runs that did not end well: section and engine.
    pub(crate) failed: Vec<[String; 2]>,
}

impl Results {
    /// Writes the heading, and a row for each series.
    pub(crate) fn write(&self) -> String {
        let mut text = format!("{}{}\n\n{COLUMNS}", self.heading, self.conditions);
        for Series { section, timers, what, engine, rounds } in &self.figures {
            let _ = write!(text, "{section}\t{timers}\t{what}\t{engine}");
            rounds.0.iter().for_each(|figure| text.push_str(&format!("\t{figure}")));
            text.push('\n');
        }
        text
    }

    /// Reads what [`write`](Self::write) has written.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let split = text.split_once(COLUMNS).map(|(heading, rows)| (heading.to_owned(), rows));
        let (heading, rows) = split.ok_or_else(|| format!("there is no line {:?}", COLUMNS.trim_end()))?;
        let series =
            |row| Series::parse(row).ok_or_else(|| format!("a row is not like {COLUMNS:?}: {row:?}"));
        let figures = rows.lines().map(series).collect::<Result<_, _>>()?;
        Ok(Self { heading, figures, ..Self::default() })
    }

    /// Adds what a run returned.
    pub(crate) fn add(&mut self, (section, timers): At<'_>, engine: &str, outcome: Outcome) {
        for (what, figure) in outcome.figures {
            let nth = self.position((section, timers), &what, engine).unwrap_or(self.figures.len());
            if nth == self.figures.len() {
                let [section, engine] = [section, engine].map(str::to_owned);
                let rounds = Samples::default();
                self.figures.push(Series { section, timers, what, engine, rounds });
            }
            self.figures[nth].rounds.0.push(figure);
        }
    }

    /// Records a failed run and drops the engine's figures in the section, also of other rounds.
    pub(crate) fn fail(&mut self, section: &str, engine: &str, why: &str) {
        eprintln!("{section} with {engine} has failed: {why}");
        self.figures.retain(|series| series.section != section || series.engine != engine);
        self.failed.push([section, engine].map(str::to_owned));
    }

    pub(crate) fn has_failed(&self, section: &str, engine: &str) -> bool {
        self.failed.iter().any(|failed| *failed == [section, engine])
    }

    fn position(&self, (section, timers): At<'_>, what: &str, engine: &str) -> Option<usize> {
        let is_it = |it: &Series| it.section == section && it.timers == timers;
        self.figures.iter().position(|it| is_it(it) && it.what == what && it.engine == engine)
    }

    pub(crate) fn get(&self, at: At<'_>, what: &str, engine: &str) -> Option<&Samples> {
        Some(&self.figures[self.position(at, what, engine)?].rounds)
    }

    fn of<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a Series> {
        self.figures.iter().filter(move |series| series.section == section)
    }

    /// Returns the numbers of timers that a section was measured with, rising.
    pub(crate) fn sizes(&self, section: &str) -> Vec<usize> {
        let mut sizes = self.of(section).map(|series| series.timers).collect::<Vec<_>>();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Shows each figure, and how many times our figure it is.
    pub(crate) fn show(&self) -> String {
        let mut text = "| section | timers | figure | engine | median | times ours |\n".to_owned();
        text.push_str("|---|---|---|---|---|---|\n");
        for Series { section, timers, what, engine, rounds } in &self.figures {
            let ours = self.get((section.as_str(), *timers), what, OURS).map_or(f64::NAN, Samples::median);
            let (timers, times) = (label(*timers), rounds.median() / ours);
            let _ = writeln!(
                text,
                "| {section} | {timers} | {what} | {engine} | {} | {times:.2} |",
                rounds.show()
            );
        }
        text
    }
}

/// Returns each name once.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names = Vec::new();
    for name in all {
        names.extend((!names.contains(name)).then(|| name.clone()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    fn results() -> Results {
        let mut results = Results::default();
        for (engine, figure) in [("shardwheel", 10.0), ("heap", 20.0), ("shardwheel", 14.0), ("heap", 28.0)] {
            results.add(("nap", 1000), engine, Outcome::of("one", figure));
            results.add(("nap", 1000), engine, Outcome::of("two", figure / 2.0));
        }
        results
    }

    #[test]
    fn tables_have_figures_and_ratios() {
        let results = results();
        let table = results.show();
        assert!(table.contains("| nap | 1k | one | heap | 24.0 (20.0..28.0) | 2.00 |"), "{table}");
    }

    #[test]
    fn a_file_has_every_figure() {
        let mut results = results();
        results.heading = "# Naps\n\n- date: 2026-01-02\n\n".to_owned();
        results.add(("nap", 0), "heap", Outcome::of("one, longest, µs", f64::NAN));
        let (text, rows) = (results.write(), results.figures.len());
        assert!(text.contains("\nnap\t1000\tone\theap\t20\t28\n"), "{text}");
        let read = Results::parse(&text).unwrap();
        assert!(read.heading.starts_with(&results.heading) && read.figures.len() == rows);
        assert_eq!(read.get(("nap", 1000), "two", OURS), results.get(("nap", 1000), "two", OURS));
        assert!(read.get(("nap", 0), "one, longest, µs", "heap").unwrap().median().is_nan());
        for (text, error) in [("{}", "there is no line"), (&text.replace("\t28", "\tx"), "heap\\t20\\tx")] {
            assert!(Results::parse(text).err().is_some_and(|it| it.contains(error)), "{text}");
        }
    }

    #[test]
    fn a_failure_drops_the_figures() {
        let mut results = results();
        results.fail("nap", "heap", "on purpose");
        assert!(results.get(("nap", 1000), "one", "heap").is_none());
        assert!(results.has_failed("nap", "heap") && !results.has_failed("nap", OURS));
    }
}
