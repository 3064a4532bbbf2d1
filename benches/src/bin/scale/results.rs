//! Counts and figures by number of timers; tables of them, and the same as JSON.

use std::fmt::{Display, Write};

use serde_json::{Value, json};
use shardwheel_benches::{Engine, Samples, Wheel, label};

use crate::run::{Count, Outcome};

struct Series {
    size: usize,
    what: String,
    samples: Samples,
}

/// Everything measured so far, in the order in which it was first measured.
#[derive(Default)]
pub(crate) struct Results {
    /// Of every run.
    counts: Vec<(usize, Count)>,
    series: Vec<Series>,
    failures: Vec<(usize, String)>,
}

impl Results {
    /// Adds what a run showed.
    pub(crate) fn add(&mut self, size: usize, outcome: Outcome) {
        for count in outcome.counts {
            if count.counted != count.expected {
                self.fail(size, &format!("{}: {}, not {}", count.what, count.counted, count.expected));
            }
            self.counts.push((size, count));
        }
        for (what, figure) in outcome.figures {
            match self.series.iter_mut().find(|series| series.size == size && series.what == what) {
                Some(series) => series.samples.add(figure),
                None => self.series.push(Series { size, what, samples: [figure].into_iter().collect() }),
            }
        }
    }

    /// Says that a run came to no good end.
    pub(crate) fn fail(&mut self, size: usize, why: &impl Display) {
        eprintln!("{} timers: {why}", label(size));
        self.failures.push((size, why.to_string()));
    }

    /// Whether every run has ended and every count of every run was right.
    pub(crate) fn all_right(&self) -> bool {
        self.failures.is_empty()
    }

    /// What was counted, what was measured and what has failed, as Markdown.
    pub(crate) fn tables(&self) -> String {
        let mut sizes = self.series.iter().map(|series| series.size).collect::<Vec<_>>();
        sizes.sort_unstable();
        sizes.dedup();
        let counts = self.counts.iter().map(|(_, count)| count.what.as_str());
        let figures = self.series.iter().map(|series| series.what.as_str());
        let mut text = table("Counts", counts, &sizes, |what, size| self.verdict(what, size));
        text += &table("Costs and memory", figures, &sizes, |what, size| self.figure(what, size));
        for (size, why) in &self.failures {
            let _ = writeln!(text, "- **{} timers have failed**: {why}", label(*size));
        }
        text
    }

    /// The number, where it was the same in all rounds, and whether it was right in all.
    fn verdict(&self, what: &str, size: usize) -> String {
        let of = |(of, count): &&(usize, Count)| *of == size && count.what == what;
        let counts = self.counts.iter().filter(of).map(|(_, count)| count).collect::<Vec<_>>();
        let verdict = match &counts[..] {
            [] => return "-".to_owned(),
            counts if counts.iter().all(|count| count.counted == count.expected) => "right",
            _ => "**wrong**",
        };
        match counts[0].counted {
            number if counts.iter().all(|count| count.counted == number) => format!("{number}, {verdict}"),
            _ => verdict.to_owned(),
        }
    }

    fn figure(&self, what: &str, size: usize) -> String {
        let found = self.series.iter().find(|series| series.size == size && series.what == what);
        found.map_or_else(|| "-".to_owned(), |series| series.samples.show(1))
    }

    /// Every figure of every round, for another program.
    pub(crate) fn json(&self) -> Value {
        let series = |series: &Series| {
            json!({
                "timers": series.size,
                "what": series.what,
                "engine": Wheel::NAME,
                "rounds": series.samples.figures(),
                "median": series.samples.median(),
            })
        };
        self.series.iter().map(series).collect()
    }

    /// Every count of every round, for another program.
    pub(crate) fn counts(&self) -> Value {
        let count = |(size, count): &(usize, Count)| {
            json!({
                "timers": size,
                "what": count.what,
                "counted": count.counted,
                "expected": count.expected,
            })
        };
        self.counts.iter().map(count).collect()
    }

    /// What has failed and why, for another program.
    pub(crate) fn failures(&self) -> Value {
        self.failures.iter().map(|(size, why)| json!({ "timers": size, "why": why })).collect()
    }
}

/// A table with a row for each name and a column for each number of timers.
fn table<'a>(
    title: &str,
    names: impl Iterator<Item = &'a str>,
    sizes: &[usize],
    cell: impl Fn(&str, usize) -> String,
) -> String {
    let heading = sizes.iter().map(|&size| label(size)).collect::<Vec<_>>().join(" | ");
    let mut text = format!("## {title}\n\n| timers | {heading} |\n|---|{}\n", "---|".repeat(sizes.len()));
    let mut rows = Vec::new();
    for name in names {
        if !rows.contains(&name) {
            rows.push(name);
        }
    }
    for what in rows {
        let cells = sizes.iter().map(|&size| cell(what, size)).collect::<Vec<_>>();
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fired: u64, checksum: u64, nanos: f64) -> Outcome {
        let count = |what: &str, counted, expected| Count { what: what.to_owned(), counted, expected };
        let counts = vec![count("fired", fired, 500), count("checksum", checksum, checksum)];
        Outcome { counts, figures: vec![("schedule".to_owned(), nanos)] }
    }

    #[test]
    fn tables_have_a_column_for_each_number_of_timers() {
        let mut results = Results::default();
        results.add(1000, outcome(500, 1, 10.0));
        results.add(1000, outcome(500, 2, 12.0));
        results.add(2000, outcome(500, 3, 20.0));
        let tables = results.tables();
        assert!(tables.contains("| timers | 1k | 2k |\n|---|---|---|\n"), "{tables}");
        assert!(tables.contains("| fired | 500, right | 500, right |\n"), "{tables}");
        assert!(tables.contains("| checksum | right | 3, right |\n"), "{tables}");
        assert!(tables.contains("| schedule | 11.0 (10.0..12.0) | 20.0 |\n"), "{tables}");
        assert!(results.all_right());
        assert_eq!(results.json()[0]["rounds"], json!([10.0, 12.0]));
        assert_eq!(results.counts()[0]["counted"], 500);
    }

    #[test]
    fn one_wrong_count_is_one_too_many() {
        let mut results = Results::default();
        results.add(1000, outcome(500, 1, 10.0));
        results.add(1000, outcome(499, 1, 10.0));
        assert!(!results.all_right());
        let tables = results.tables();
        assert!(tables.contains("| fired | **wrong** |\n"), "{tables}");
        assert!(tables.contains("- **1k timers have failed**: fired: 499, not 500\n"), "{tables}");
    }
}
