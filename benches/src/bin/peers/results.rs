//! Figures by section, number of timers, column and engine; tables of them, and the same as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use shardwheel_benches::{Engine, Samples, Wheel, label};

use crate::peer::{CANNOT_CANCEL, Outcome, PEERS, Peer, Task};
use crate::sections::{SECTIONS, Section};

struct Series {
    section: &'static str,
    size: usize,
    what: String,
    engine: &'static str,
    samples: Samples,
}

/// What an engine fired in one run.
struct Sum {
    section: &'static str,
    task: Task,
    engine: &'static str,
    checksum: u64,
}

/// An engine that came to no good end in a section.
struct Failure {
    section: &'static str,
    engine: &'static str,
    why: String,
}

/// Everything measured so far, in the order in which it was first measured.
#[derive(Default)]
pub(crate) struct Results {
    series: Vec<Series>,
    sums: Vec<Sum>,
    failures: Vec<Failure>,
}

impl Results {
    /// Adds what a run showed.
    pub(crate) fn add(&mut self, section: &Section, engine: &'static str, task: Task, outcome: Outcome) {
        self.sums.push(Sum { section: section.name, task, engine, checksum: outcome.checksum });
        for (what, figure) in outcome.figures {
            let same = |series: &&mut Series| series.is(section, task.size, &what, engine);
            match self.series.iter_mut().find(same) {
                Some(series) => series.samples.add(figure),
                None => self.series.push(Series {
                    section: section.name,
                    size: task.size,
                    what,
                    engine,
                    samples: [figure].into_iter().collect(),
                }),
            }
        }
    }

    /// Says that a run came to no good end. The engine's figures in the section are dropped, so that those which
    /// remain are of the same rounds.
    pub(crate) fn fail(&mut self, section: &Section, engine: &'static str, why: String) {
        eprintln!("{} with {engine} has failed: {why}", section.name);
        self.series.retain(|series| series.section != section.name || series.engine != engine);
        self.failures.push(Failure { section: section.name, engine, why });
    }

    /// Fails every engine that did not fire what `shardwheel` did when given the same task.
    pub(crate) fn compare(&mut self, section: &Section, task: Task) {
        let sums = || self.sums.iter().filter(|sum| sum.section == section.name && sum.task == task);
        let Some(expected) = sums().find(|sum| sum.engine == Wheel::NAME) else { return };
        let differs = |sum: &&Sum| sum.checksum != expected.checksum;
        let wrong = sums().filter(differs).map(|sum| sum.engine).collect::<Vec<_>>();
        let why = format!("it did not fire what {} did", Wheel::NAME);
        wrong.into_iter().for_each(|engine| self.fail(section, engine, why.clone()));
    }

    /// Whether a run of this engine in this section has failed.
    pub(crate) fn has_failed(&self, section: &Section, engine: &str) -> bool {
        self.failure(section, engine).is_some()
    }

    /// Whether no run has failed.
    pub(crate) fn complete(&self) -> bool {
        self.failures.is_empty()
    }

    /// An engine's figures in one column, where there are any.
    pub(crate) fn get(&self, section: &Section, size: usize, what: &str, engine: &str) -> Option<&Samples> {
        let series = self.series.iter().find(|series| series.is(section, size, what, engine));
        series.map(|series| &series.samples)
    }

    /// The numbers of timers that a section was measured with.
    pub(crate) fn sizes(&self, section: &Section) -> Vec<usize> {
        let mut sizes = self.of(section).map(|series| series.size).collect::<Vec<_>>();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Markdown tables of each section that was measured, one for each number of timers.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        for section in SECTIONS.iter().filter(|section| self.of(section).next().is_some()) {
            let _ = writeln!(text, "## {}\n", section.title);
            self.sizes(section).into_iter().for_each(|size| self.table(section, size, &mut text));
            if !section.note.is_empty() {
                let _ = writeln!(text, "{}\n", section.note);
            }
            self.left_out(section, &mut text);
        }
        text
    }

    fn table(&self, section: &Section, size: usize, text: &mut String) {
        let columns = self.columns(section);
        let headings = columns.iter().copied().chain(section.ratios.iter().map(|ratio| ratio.0));
        let headings = headings.collect::<Vec<_>>();
        let _ = writeln!(text, "| {} timers | {} |", label(size), headings.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(headings.len()));
        for peer in PEERS.iter().filter(|peer| self.of(section).any(|series| series.engine == peer.engine)) {
            let cells = columns.iter().map(|what| self.cell(section, size, what, peer.engine));
            let ratios = section.ratios.iter().map(|&(_, over, under)| {
                self.ratio(section, size, [over, under], peer.engine).unwrap_or_default().show(2)
            });
            let cells = cells.chain(ratios).collect::<Vec<_>>();
            let _ = writeln!(text, "| {} | {} |", peer.engine, cells.join(" | "));
        }
        text.push('\n');
    }

    fn columns(&self, section: &Section) -> Vec<&str> {
        let mut columns = Vec::new();
        for series in self.of(section) {
            if !columns.contains(&series.what.as_str()) {
                columns.push(&series.what);
            }
        }
        columns
    }

    /// The figure, and how many times that of `shardwheel` it is.
    fn cell(&self, section: &Section, size: usize, what: &str, engine: &str) -> String {
        let Some(samples) = self.get(section, size, what, engine) else { return "-".to_owned() };
        let ratio = self.get(section, size, what, Wheel::NAME).map(|wheel| samples.over(wheel).median());
        match ratio.filter(|ratio| ratio.is_finite() && engine != Wheel::NAME) {
            Some(ratio) => format!("{} ×{ratio:.2}", samples.show(1)),
            None => samples.show(1),
        }
    }

    /// One column of an engine over another, round by round, where there are both.
    pub(crate) fn ratio(
        &self,
        section: &Section,
        size: usize,
        [over, under]: [&str; 2],
        engine: &str,
    ) -> Option<Samples> {
        Some(self.get(section, size, over, engine)?.over(self.get(section, size, under, engine)?))
    }

    fn left_out(&self, section: &Section, text: &mut String) {
        let lines = PEERS.iter().filter_map(|peer| self.absence(section, peer)).collect::<String>();
        if !lines.is_empty() {
            let _ = writeln!(text, "{lines}");
        }
    }

    /// Why an engine has no row, where it has none.
    fn absence(&self, section: &Section, peer: &Peer) -> Option<String> {
        if let Some(failure) = self.failure(section, peer.engine) {
            return Some(format!("- **{} has failed**: {}\n", peer.engine, failure.why));
        }
        (section.measure)(peer).is_none().then(|| format!("- left out: {}; {CANNOT_CANCEL}\n", peer.engine))
    }

    /// Every figure of every round, for another program.
    pub(crate) fn json(&self) -> Value {
        let series = |series: &Series| {
            json!({
                "section": series.section,
                "timers": series.size,
                "what": series.what,
                "engine": series.engine,
                "rounds": series.samples.figures(),
                "median": series.samples.median(),
            })
        };
        self.series.iter().map(series).collect()
    }

    /// What has failed and why, for another program.
    pub(crate) fn failures(&self) -> Value {
        let failure = |it: &Failure| json!({"section": it.section, "engine": it.engine, "why": it.why});
        self.failures.iter().map(failure).collect()
    }

    fn of(&self, section: &Section) -> impl Iterator<Item = &Series> {
        let name = section.name;
        self.series.iter().filter(move |series| series.section == name)
    }

    fn failure(&self, section: &Section, engine: &str) -> Option<&Failure> {
        self.failures.iter().find(|failure| failure.section == section.name && failure.engine == engine)
    }
}

impl Series {
    fn is(&self, section: &Section, size: usize, what: &str, engine: &str) -> bool {
        self.section == section.name && self.size == size && self.what == what && self.engine == engine
    }
}

#[cfg(test)]
mod tests {
    use shardwheel_benches::names::{ALONE, APART, SHARED};

    use super::*;
    use crate::sections::{TWO_CHURN, find};

    fn churn() -> &'static Section {
        find("churn").unwrap()
    }

    /// Two rounds of two engines, the second of which may have fired something else in the last.
    fn results(second_fired: u64) -> Results {
        let mut results = Results::default();
        for round in 0..2 {
            let task = Task { size: 1000, round };
            for (engine, figure) in [(Wheel::NAME, 10.0), ("heap", 20.0)] {
                let other = engine == "heap" && round == 1;
                let checksum = if other { second_fired } else { round as u64 };
                let figures = vec![("a pair".to_owned(), figure + round as f64 * figure)];
                results.add(churn(), engine, task, Outcome { checksum, figures });
            }
            results.compare(churn(), task);
        }
        results
    }

    #[test]
    fn a_table_has_figures_ratios_and_what_is_left_out() {
        let tables = results(1).tables();
        assert!(tables.contains("| 1k timers | a pair |\n|---|---|\n"), "{tables}");
        assert!(tables.contains("| shardwheel | 15.0 (10.0..20.0) |\n"), "{tables}");
        assert!(tables.contains("| heap | 30.0 (20.0..40.0) ×2.00 |\n"), "{tables}");
        assert!(tables.contains("- left out: bare heap; it has no way to cancel"), "{tables}");
    }

    #[test]
    fn a_ratio_is_taken_where_both_columns_are() {
        let mut results = Results::default();
        for (engine, columns) in
            [(Wheel::NAME, &[ALONE, APART, SHARED][..]), ("heap, no lock", &[ALONE, APART])]
        {
            let figures =
                columns.iter().zip([30.0, 15.0, 20.0]).map(|(&what, ns)| (what.to_owned(), ns)).collect();
            results.add(&TWO_CHURN, engine, Task { size: 0, round: 0 }, Outcome { checksum: 1, figures });
        }
        let tables = results.tables();
        assert!(tables.contains("| shardwheel | 30.0 | 15.0 | 20.0 | 2.00 | 1.50 |\n"), "{tables}");
        assert!(tables.contains("| heap, no lock | 30.0 ×1.00 | 15.0 ×1.00 | - | 2.00 | - |\n"), "{tables}");
        assert!(tables.contains(TWO_CHURN.note), "{tables}");
    }

    #[test]
    fn an_engine_that_fires_something_else_fails() {
        assert!(results(1).complete());
        let results = results(7);
        assert!(!results.complete() && results.has_failed(churn(), "heap"));
        assert!(results.get(churn(), 1000, "a pair", "heap").is_none());
        assert!(results.tables().contains("**heap has failed**: it did not fire what shardwheel did"));
        assert_eq!(results.failures()[0]["engine"], "heap");
    }

    #[test]
    fn json_has_every_round() {
        let json = results(1).json();
        assert_eq!(json[0]["rounds"], json!([10.0, 20.0]));
        assert_eq!((&json[0]["engine"], &json[0]["median"]), (&json!("shardwheel"), &json!(15.0)));
    }
}
