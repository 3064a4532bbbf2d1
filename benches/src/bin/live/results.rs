//! Figures by section, row and engine; tables of them, and the same as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use shardwheel_benches::Samples;

use crate::sections::{Figures, SECTIONS, Section};

struct Series {
    section: &'static str,
    what: String,
    engine: &'static str,
    samples: Samples,
}

/// Everything measured so far, in the order in which it was first measured.
#[derive(Default)]
pub(crate) struct Results {
    series: Vec<Series>,
    /// Sections and engines.
    failed: Vec<(&'static str, &'static str)>,
}

impl Results {
    /// Adds what a run showed.
    pub(crate) fn add(&mut self, section: &Section, engine: &'static str, figures: Figures) {
        for (what, figure) in figures {
            match self.series.iter_mut().find(|series| series.is(section.name, &what, engine)) {
                Some(series) => series.samples.add(figure),
                None => self.series.push(Series {
                    section: section.name,
                    what,
                    engine,
                    samples: [figure].into_iter().collect(),
                }),
            }
        }
    }

    /// Says that a run came to no good end. The engine's figures in the section are dropped, so that those which
    /// remain in a row are of the same rounds.
    pub(crate) fn fail(&mut self, section: &Section, engine: &'static str) {
        self.series.retain(|series| series.section != section.name || series.engine != engine);
        self.failed.push((section.name, engine));
    }

    /// Whether a run of this engine in this section has failed.
    pub(crate) fn has_failed(&self, section: &Section, engine: &str) -> bool {
        self.failed.contains(&(section.name, engine))
    }

    /// Whether no run has failed.
    pub(crate) fn complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// An engine's figures in one row of a section, where there are any.
    pub(crate) fn get(&self, section: &Section, what: &str, engine: &str) -> Option<&Samples> {
        self.series.iter().find(|series| series.is(section.name, what, engine)).map(|series| &series.samples)
    }

    /// A Markdown table for each section that was measured.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        let measured = |section: &&Section| self.series.iter().any(|series| series.section == section.name);
        SECTIONS.iter().filter(measured).for_each(|section| self.table(section, &mut text));
        text
    }

    fn table(&self, section: &Section, text: &mut String) {
        let columns = self.columns(section);
        let _ = writeln!(text, "## {}\n\n| engine | {} |", section.title, columns.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
        let measured = |engine: &&str| {
            self.series.iter().any(|series| series.section == section.name && series.engine == *engine)
        };
        for engine in section.runs.iter().map(|run| run.engine).filter(measured) {
            let cells = columns.iter().map(|what| self.cell(section, what, engine)).collect::<Vec<_>>();
            let _ = writeln!(text, "| {engine} | {} |", cells.join(" | "));
        }
        text.push('\n');
        for (_, engine) in self.failed.iter().filter(|failed| failed.0 == section.name) {
            let _ = writeln!(text, "**{engine} has failed.**\n");
        }
    }

    fn columns(&self, section: &Section) -> Vec<&str> {
        let mut columns = Vec::new();
        for series in self.series.iter().filter(|series| series.section == section.name) {
            if !columns.contains(&series.what.as_str()) {
                columns.push(&series.what);
            }
        }
        columns
    }

    /// The figure, and how many times that of the first engine it is.
    fn cell(&self, section: &Section, what: &str, engine: &str) -> String {
        let Some(samples) = self.get(section, what, engine) else { return "-".to_owned() };
        let first = section.runs[0].engine;
        let ratio = self.get(section, what, first).map(|first| samples.over(first).median());
        match ratio.filter(|ratio| ratio.is_finite() && engine != first) {
            Some(ratio) => format!("{} ×{ratio:.2}", samples.show(1)),
            None => samples.show(1),
        }
    }

    /// Every figure of every round, for another program.
    pub(crate) fn json(&self) -> Value {
        let series = |series: &Series| {
            json!({
                "section": series.section,
                "what": series.what,
                "engine": series.engine,
                "rounds": series.samples.figures(),
                "median": series.samples.median(),
            })
        };
        self.series.iter().map(series).collect()
    }
}

impl Series {
    fn is(&self, section: &str, what: &str, engine: &str) -> bool {
        self.section == section && self.what == what && self.engine == engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::SLEEP;

    fn results() -> Results {
        let mut results = Results::default();
        for figure in [10.0, 14.0] {
            results.add(&SLEEP, "shardwheel", vec![("nap".to_owned(), figure), ("lost".to_owned(), 0.0)]);
            results.add(&SLEEP, "tokio", vec![("nap".to_owned(), 2.0 * figure), ("lost".to_owned(), 0.0)]);
        }
        results
    }

    #[test]
    fn a_table_has_figures_and_ratios() {
        let tables = results().tables();
        assert!(tables.contains("| engine | nap | lost |\n|---|---|---|\n"));
        assert!(tables.contains("| shardwheel | 12.0 (10.0..14.0) | 0.0 (0.0..0.0) |\n"), "{tables}");
        assert!(tables.contains("| tokio | 24.0 (20.0..28.0) ×2.00 | 0.0 (0.0..0.0) |\n"), "{tables}");
        assert!(!tables.contains("async-io"), "it was not measured");
        assert_eq!(tables.matches("## ").count(), 1);
    }

    #[test]
    fn an_engine_that_failed_has_no_figures() {
        let mut results = results();
        assert!(results.complete());
        results.fail(&SLEEP, "tokio");
        assert!(!results.complete() && results.has_failed(&SLEEP, "tokio"));
        assert!(results.get(&SLEEP, "nap", "tokio").is_none());
        assert!(results.get(&SLEEP, "nap", "shardwheel").is_some());
        assert!(results.tables().ends_with("\n\n**tokio has failed.**\n\n"));
    }

    #[test]
    fn json_has_every_round() {
        let json = results().json();
        assert_eq!(json[0]["rounds"], json!([10.0, 14.0]));
        assert_eq!((&json[0]["engine"], &json[0]["median"]), (&json!("shardwheel"), &json!(12.0)));
    }
}
