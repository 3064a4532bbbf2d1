//! Figures by operation, size and engine, and tables of them.

use std::fmt::Write;

use shardwheel_benches::{BareHeap, Engine, Heap, Samples, Wheel, label};

/// The engines, in the order of the columns.
const ENGINES: [&str; 3] = [Wheel::NAME, Heap::NAME, BareHeap::NAME];

struct Series {
    section: &'static str,
    what: String,
    size: usize,
    engine: &'static str,
    samples: Samples,
}

/// Everything measured so far, in the order in which it was first measured.
#[derive(Default)]
pub(crate) struct Results {
    series: Vec<Series>,
}

impl Results {
    /// Adds a round's figure.
    pub(crate) fn add<E: Engine>(&mut self, section: &'static str, what: &str, size: usize, figure: f64) {
        let same = |series: &&mut Series| series.is(what, size, E::NAME);
        match self.series.iter_mut().find(same) {
            Some(series) => series.samples.add(figure),
            None => self.series.push(Series {
                section,
                what: what.to_owned(),
                size,
                engine: E::NAME,
                samples: [figure].into_iter().collect(),
            }),
        }
    }

    /// The figures of one operation at one size, where there are any.
    pub(crate) fn get<E: Engine>(&self, what: &str, size: usize) -> Option<&Samples> {
        self.find(what, size, E::NAME)
    }

    /// The sizes at which an operation was measured with `shardwheel`, rising.
    pub(crate) fn sizes(&self, what: &str) -> Vec<usize> {
        let of_wheel =
            self.series.iter().filter(|series| series.what == what && series.engine == Wheel::NAME);
        let mut sizes = of_wheel.map(|series| series.size).collect::<Vec<_>>();
        sizes.sort_unstable();
        sizes
    }

    fn find(&self, what: &str, size: usize, engine: &str) -> Option<&Samples> {
        self.series.iter().find(|series| series.is(what, size, engine)).map(|series| &series.samples)
    }

    /// A Markdown table for each section.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        let mut sections = self.series.iter().map(|series| series.section).collect::<Vec<_>>();
        sections.dedup();
        sections.iter().enumerate().for_each(|(nth, section)| {
            if !sections[..nth].contains(section) {
                self.table(section, &mut text);
            }
        });
        text
    }

    fn table(&self, section: &str, text: &mut String) {
        let _ = writeln!(text, "## {section}\n");
        let _ = writeln!(text, "| what | timers | {} | heap / wheel | bare / wheel |", ENGINES.join(" | "));
        text.push_str("|---|---|---|---|---|---|---|\n");
        let mut rows = Vec::new();
        for series in self.series.iter().filter(|series| series.section == section) {
            if !rows.contains(&(&series.what, series.size)) {
                rows.push((&series.what, series.size));
            }
        }
        rows.iter().for_each(|(what, size)| self.row(what, *size, text));
        text.push('\n');
    }

    fn row(&self, what: &str, size: usize, text: &mut String) {
        let [wheel, heap, bare] =
            ENGINES.map(|engine| self.find(what, size, engine).cloned().unwrap_or_default());
        let cells =
            [&wheel, &heap, &bare].map(|samples| samples.show(if samples.median() < 2.0 { 3 } else { 1 }));
        let ratios = [heap.over(&wheel), bare.over(&wheel)].map(|ratio| ratio.show(2));
        let _ =
            writeln!(text, "| {what} | {} | {} | {} |", label(size), cells.join(" | "), ratios.join(" | "));
    }
}

impl Series {
    fn is(&self, what: &str, size: usize, engine: &str) -> bool {
        self.what == what && self.size == size && self.engine == engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_operation_and_size() {
        let mut results = Results::default();
        results.add::<Wheel>("one", "schedule", 1000, 10.0);
        results.add::<Heap>("one", "schedule", 1000, 20.0);
        results.add::<Wheel>("one", "schedule", 2000, 10.0);
        results.add::<Wheel>("two", "fire", 1000, 10.0);
        let tables = results.tables();
        assert!(tables.contains("| schedule | 1k | 10.0 | 20.0 | - | 2.00 | - |"), "{tables}");
        assert_eq!(tables.matches("## ").count(), 2);
        assert_eq!(results.sizes("schedule"), [1000, 2000]);
    }
}
