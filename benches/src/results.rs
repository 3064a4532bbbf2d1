//! Every figure of a run: kept by section, number of timers, name and engine, shown as tables, and
//! written as JSON.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::args::label;
use crate::samples::Samples;
use crate::suite::{Count, Outcome, Section};
use crate::table::{Readings, Requirement, Table};

/// The figures of one engine under one name.
#[derive(Serialize, Deserialize)]
pub(crate) struct Series {
    #[serde(default)]
    pub(crate) section: String,
    /// None in sections that have no number of timers.
    #[serde(default)]
    pub(crate) timers: Option<usize>,
    pub(crate) what: String,
    pub(crate) engine: String,
    pub(crate) rounds: Samples,
    /// None if it is not a number.
    pub(crate) median: Option<f64>,
}

/// A run that did not end well.
#[derive(Serialize, Deserialize)]
pub(crate) struct Failure {
    section: String,
    engine: String,
    why: String,
}

/// Everything measured so far, in the order of the first measurement.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Results {
    pub(crate) heading: String,
    pub(crate) conditions: String,
    pub(crate) figures: Vec<Series>,
    pub(crate) counts: Vec<(usize, Count)>,
    pub(crate) failed: Vec<Failure>,
    pub(crate) requirements: Vec<Requirement>,
}

impl Results {
    /// Adds what a run returned; a wrong count is a failure.
    pub(crate) fn add(&mut self, section: &str, timers: Option<usize>, engine: &str, outcome: Outcome) {
        for count in outcome.counts.iter().filter(|count| count.counted != count.expected) {
            let why = format!("{}: {}, not {}", count.what, count.counted, count.expected);
            self.failed.push(Failure { section: section.to_owned(), engine: engine.to_owned(), why });
        }
        self.counts.extend(outcome.counts.into_iter().map(|count| (timers.unwrap_or(0), count)));
        for (what, figure) in outcome.figures {
            let nth = self.position(section, timers, &what, engine).unwrap_or(self.figures.len());
            if nth == self.figures.len() {
                let [section, engine] = [section, engine].map(str::to_owned);
                let rounds = Samples::default();
                self.figures.push(Series { section, timers, what, engine, rounds, median: None });
            }
            let series = &mut self.figures[nth];
            series.rounds.0.push(figure);
            series.median = Some(series.rounds.median()).filter(|median| median.is_finite());
        }
    }

    /// Records a failed run. The engine's figures in the section are dropped, so that the figures
    /// of a table are of the same rounds.
    pub(crate) fn fail(&mut self, section: &str, engine: &str, why: String) {
        eprintln!("{section} with {engine} has failed: {why}");
        self.figures.retain(|series| series.section != section || series.engine != engine);
        self.failed.push(Failure { section: section.to_owned(), engine: engine.to_owned(), why });
    }

    pub(crate) fn has_failed(&self, section: &str, engine: &str) -> bool {
        self.failed.iter().any(|failure| failure.section == section && failure.engine == engine)
    }

    fn position(&self, section: &str, timers: Option<usize>, what: &str, engine: &str) -> Option<usize> {
        self.figures.iter().position(|it| {
            it.section == section && it.timers == timers && it.what == what && it.engine == engine
        })
    }

    pub(crate) fn get(
        &self,
        section: &str,
        timers: Option<usize>,
        what: &str,
        engine: &str,
    ) -> Option<&Samples> {
        Some(&self.figures[self.position(section, timers, what, engine)?].rounds)
    }

    fn of<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a Series> {
        self.figures.iter().filter(move |series| series.section == section)
    }

    /// Returns the numbers of timers that a section was measured with, rising.
    pub(crate) fn sizes(&self, section: &str) -> Vec<Option<usize>> {
        let mut sizes = self.of(section).map(|series| series.timers).collect::<Vec<_>>();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the median at every number of timers.
    pub(crate) fn medians(&self, section: &str, what: &str, engine: &str) -> Readings {
        let median = |size| Some((show_size(size), self.get(section, size, what, engine)?.median()));
        self.sizes(section).into_iter().filter_map(median).collect()
    }

    /// Returns the median of one figure over another, divided round by round. A figure is a name
    /// and an engine.
    pub(crate) fn ratio(
        &self,
        section: &str,
        timers: Option<usize>,
        [over, under]: [(&str, &str); 2],
    ) -> Option<f64> {
        let [over, under] = [over, under].map(|(what, engine)| self.get(section, timers, what, engine));
        Some(over?.over(under?).median())
    }

    /// Divides what peers cost by what `ours` costs, in one figure and in ours.
    pub(crate) fn against(
        &self,
        section: &str,
        timers: usize,
        [of_peer, of_ours]: [&str; 2],
        ours: &str,
        peers: &[&str],
    ) -> Readings {
        let ratio = |peer| self.ratio(section, Some(timers), [(of_peer, peer), (of_ours, ours)]);
        peers.iter().filter_map(|peer| Some(((*peer).to_owned(), ratio(peer)?))).collect()
    }

    /// Divides what an engine's figure is with many timers by what it is with few.
    pub(crate) fn growth(&self, section: &str, sizes: [usize; 2], what: &str, engine: &str) -> Readings {
        let [few, many] = sizes.map(|size| self.get(section, Some(size), what, engine));
        let ratio = many.zip(few).map(|(many, few)| many.over(few).median());
        ratio.map(|ratio| ("ratio".to_owned(), ratio)).into_iter().collect()
    }

    /// Shows a section: a table for each number of timers, or one table if there is one engine.
    pub(crate) fn show(&self, section: &Section) -> String {
        let mut text = format!("## {}\n\n", section.title);
        let sizes = self.sizes(section.name);
        let engines = self::names(self.of(section.name).map(|series| &series.engine));
        if let [engine] = &engines[..] {
            let names = self::names(self.of(section.name).map(|series| &series.what));
            let heads = sizes.iter().map(|&size| show_size(size)).collect::<Vec<_>>();
            let cell = |row: usize, column: usize| self.cell(section, sizes[column], &names[row], engine);
            let _ = writeln!(text, "{}", Table::cross(engine, &names, &heads, &cell));
        } else {
            for &size in &sizes {
                let of = self.of(section.name).filter(|series| series.timers == size);
                let mut names = self::names(of.map(|series| &series.what));
                names.extend(section.ratios.iter().map(|ratio| ratio.0.to_owned()));
                let cell =
                    |row: usize, column: usize| self.cell(section, size, &names[row], &engines[column]);
                let _ = writeln!(text, "{}", Table::cross(&show_size(size), &names, &engines, &cell));
            }
        }
        text
    }

    /// Shows what was counted, with a verdict over all rounds, and the failures.
    pub(crate) fn show_counts(&self) -> String {
        let mut text = String::new();
        let names = self::names(self.counts.iter().map(|(_, count)| &count.what));
        let sizes = self.counts.iter().map(|(size, _)| label(*size)).collect::<Vec<_>>();
        let sizes = self::names(sizes.iter());
        if !names.is_empty() {
            let cell = |row: usize, column: usize| self.verdict(&names[row], &sizes[column]);
            let _ = writeln!(text, "## Counts\n\n{}", Table::cross("timers", &names, &sizes, &cell));
        }
        for Failure { section, engine, why } in &self.failed {
            let _ = writeln!(text, "**{engine} has failed in {section}**: {why}\n");
        }
        text
    }

    /// Shows a number that was the same in all rounds, and whether it was right in all.
    fn verdict(&self, what: &str, size: &str) -> String {
        let of = self.counts.iter().filter(|(timers, count)| count.what == what && label(*timers) == size);
        let counts = of.map(|(_, count)| count).collect::<Vec<_>>();
        let is_right = counts.iter().all(|count| count.counted == count.expected);
        let verdict = if is_right { "right" } else { "**wrong**" };
        match counts.first() {
            Some(first) if counts.iter().all(|count| count.counted == first.counted) => {
                format!("{}, {verdict}", first.counted)
            }
            _ => verdict.to_owned(),
        }
    }

    /// Shows a figure and how many times the figure of the section's first engine it is; or, for a
    /// ratio, the ratio.
    fn cell(&self, section: &Section, size: Option<usize>, what: &str, engine: &str) -> String {
        if let Some(&(_, over, under)) = section.ratios.iter().find(|ratio| ratio.0 == what) {
            let ratio = self.ratio(section.name, size, [(over, engine), (under, engine)]);
            return ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        }
        let Some(samples) = self.get(section.name, size, what, engine) else { return "-".to_owned() };
        let first = section.runs[0].engine;
        let ratio = self.ratio(section.name, size, [(what, engine), (what, first)]);
        match ratio.filter(|ratio| ratio.is_finite() && engine != first) {
            Some(ratio) => format!("{} ×{ratio:.2}", samples.show()),
            None => samples.show(),
        }
    }
}

/// Returns each name once.
fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names = Vec::new();
    all.for_each(|name| {
        if !names.contains(name) {
            names.push(name.clone())
        }
    });
    names
}

fn show_size(size: Option<usize>) -> String {
    size.map_or_else(|| "engine".to_owned(), label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Run;

    const RUNS: [Run; 1] = [Run { engine: "shardwheel", measure: |_| Outcome::new(1) }];
    const SECTION: Section =
        Section { ratios: &[("twice", "one", "two")], ..Section::new("nap", "Naps, ns", &RUNS) };

    fn results() -> Results {
        let mut results = Results::default();
        for (engine, figure) in [("shardwheel", 10.0), ("heap", 20.0), ("shardwheel", 14.0), ("heap", 28.0)] {
            results.add("nap", Some(1000), engine, Outcome::of("one", figure));
            results.add("nap", Some(1000), engine, Outcome::of("two", figure / 2.0));
        }
        results
    }

    #[test]
    fn tables_have_figures_and_ratios_and_json_comes_back() {
        let json = serde_json::to_string(&results()).unwrap();
        let results = serde_json::from_str::<Results>(&json).unwrap();
        let table = results.show(&SECTION);
        assert!(table.contains("| 1k | shardwheel | heap |"), "{table}");
        assert!(table.contains("| one | 12.0 (10.0..14.0) | 24.0 (20.0..28.0) ×2.00 |"), "{table}");
        assert!(table.contains("| twice | 2.00 | 2.00 |"), "{table}");
        assert_eq!(results.medians("nap", "one", "heap"), [("1k".to_owned(), 24.0)]);
        assert_eq!(results.figures[0].median, Some(12.0));
    }

    #[test]
    fn failures_and_wrong_counts_show() {
        let mut results = results();
        results.fail("nap", "heap", "on purpose".to_owned());
        assert!(results.has_failed("nap", "heap") && results.get("nap", Some(1000), "one", "heap").is_none());
        for counted in [5, 4] {
            let mut outcome = Outcome::new(1);
            outcome.count("fired", counted, 5);
            outcome.count("lost", 0, 0);
            results.add("nap", Some(20), "shardwheel", outcome);
        }
        let text = results.show_counts();
        for part in
            ["| fired | **wrong** |", "| lost | 0, right |", "failed in nap**: on purpose", "4, not 5"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
