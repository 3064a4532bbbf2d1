//! What figures have to show, and whether they do.
//!
//! A requirement is judged by medians. One with several readings (sizes, kinds of run) is met where every
//! reading meets it; one whose runs were left out by the command line is not judged.

use std::fmt::Write;

use serde_json::{Value, json};

/// How large a figure may or must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// No larger than this.
    AtMost(f64),
    /// No smaller than this.
    AtLeast(f64),
}

impl Limit {
    fn is_met_by(self, reading: f64) -> bool {
        match self {
            Self::AtMost(limit) => reading <= limit,
            Self::AtLeast(limit) => reading >= limit,
        }
    }

    /// The limit in words.
    #[must_use]
    pub fn show(self) -> String {
        match self {
            Self::AtMost(limit) => format!("at most {limit}"),
            Self::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

/// Something that figures have to show.
pub struct Requirement {
    /// What is required, and in which unit.
    pub text: String,
    /// How large the readings may or must be.
    pub limit: Limit,
    /// Each reading with its name; none where nothing was measured.
    pub readings: Vec<(String, f64)>,
}

impl Requirement {
    /// Each requirement with its limit, its readings and the verdict, as a Markdown table.
    #[must_use]
    pub fn table(all: &[Self]) -> String {
        let mut text = "## What the figures have to show\n\n".to_owned();
        text.push_str("| requirement (medians) | limit | measured | verdict |\n|---|---|---|---|\n");
        all.iter().for_each(|requirement| requirement.row(&mut text));
        text
    }

    /// Whether the readings meet the limit, in words.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match &self.readings[..] {
            [] => "not measured",
            readings if readings.iter().all(|(_, reading)| self.limit.is_met_by(*reading)) => "met",
            _ => "**NOT met**",
        }
    }

    /// The requirement and its verdict, for another program.
    #[must_use]
    pub fn json(&self) -> Value {
        let readings = self.readings.iter().map(|(name, reading)| json!({"name": name, "reading": reading}));
        json!({
            "requirement": self.text,
            "limit": self.limit.show(),
            "readings": readings.collect::<Vec<_>>(),
            "verdict": self.verdict(),
        })
    }

    fn row(&self, text: &mut String) {
        let show = |(name, reading): &(String, f64)| format!("{name}: {reading:.2}");
        let readings = self.readings.iter().map(show).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "| {} | {} | {readings} | {} |", self.text, self.limit.show(), self.verdict());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_has_to_meet_the_limit() {
        let verdict = |readings: &[f64]| {
            let readings = readings.iter().map(|&reading| (String::new(), reading)).collect();
            Requirement { text: String::new(), limit: Limit::AtMost(2.0), readings }.verdict()
        };
        assert_eq!(verdict(&[]), "not measured");
        assert_eq!(verdict(&[1.0, 2.0]), "met");
        assert_eq!(verdict(&[1.0, 2.1]), "**NOT met**");
        assert_eq!(verdict(&[f64::NAN]), "**NOT met**");
    }

    #[test]
    fn a_table_has_a_row_for_each() {
        let readings = vec![("one".to_owned(), 3.0)];
        let requirement = Requirement { text: "speed".to_owned(), limit: Limit::AtLeast(2.0), readings };
        let table = Requirement::table(&[requirement]);
        assert!(table.ends_with("| speed | at least 2 | one: 3.00 | met |\n"), "{table}");
    }
}
