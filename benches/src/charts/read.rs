//! Figures, as the programs write them to JSON.

use serde_json::Value;

/// What a chart says of where its figures are from.
const TOLD: [&str; 2] = ["- machine: ", "- commit: "];

struct Figure {
    section: String,
    /// Where the section goes by the number of timers.
    timers: Option<u64>,
    what: String,
    engine: String,
    median: f64,
}

/// Everything that a run has measured.
pub(super) struct Measured {
    figures: Vec<Figure>,
    /// The machine and the commit.
    pub(super) source: String,
}

impl Measured {
    /// `None` where that is not what the programs write.
    pub(super) fn read(all: &Value) -> Option<Self> {
        let source = all["heading"].as_str()?.lines().filter_map(|line| {
            let told = TOLD.iter().find(|told| line.starts_with(**told))?;
            Some(format!("{} {}", told.trim_start_matches("- ").trim(), &line[told.len()..]))
        });
        let figures = all["figures"].as_array()?.iter().filter_map(figure).collect();
        Some(Self { figures, source: source.collect::<Vec<_>>().join("; ") })
    }

    /// Every engine, in the order in which it was first measured.
    pub(super) fn engines(&self) -> Vec<&str> {
        let mut engines = Vec::new();
        for figure in &self.figures {
            if !engines.contains(&figure.engine.as_str()) {
                engines.push(&figure.engine);
            }
        }
        engines
    }

    /// The numbers of timers that a section has, rising.
    pub(super) fn timers(&self, section: &str) -> Vec<u64> {
        let of_section = self.figures.iter().filter(|figure| figure.section == section);
        let mut timers = of_section.filter_map(|figure| figure.timers).collect::<Vec<_>>();
        timers.sort_unstable();
        timers.dedup();
        timers
    }

    /// The median over the rounds, where there is one.
    pub(super) fn get(&self, section: &str, timers: Option<u64>, what: &str, engine: &str) -> Option<f64> {
        let is_it = |it: &&Figure| {
            it.section == section && it.timers == timers && it.what == what && it.engine == engine
        };
        self.figures.iter().find(is_it).map(|figure| figure.median)
    }
}

/// `None` where something is missing, as a median is that was none.
fn figure(figure: &Value) -> Option<Figure> {
    let text = |name: &str| figure[name].as_str().map(str::to_owned);
    Some(Figure {
        section: text("section")?,
        timers: figure["timers"].as_u64(),
        what: text("what")?,
        engine: text("engine")?,
        median: figure["median"].as_f64()?,
    })
}
