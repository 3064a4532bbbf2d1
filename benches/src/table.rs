//! Markdown tables, and requirements with their verdicts.

use std::fmt;

/// A table; the first cell of a row is its name.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table of rows and columns by their names; a table that is wider than high is turned.
    pub(crate) fn cross(corner: &str, names: [&[String]; 2], cell: &dyn Fn(usize, usize) -> String) -> Self {
        let [rows, columns] = names;
        if columns.len() > rows.len() {
            return Self::new(corner, [columns, rows], &|row, column| cell(column, row));
        }
        Self::new(corner, names, cell)
    }

    /// Makes a table of rows and columns by their names.
    pub(crate) fn new(corner: &str, names: [&[String]; 2], cell: &dyn Fn(usize, usize) -> String) -> Self {
        let [rows, columns] = names;
        let head = [corner.to_owned()].into_iter().chain(columns.iter().cloned()).collect();
        let row = |(nth, name): (usize, &String)| {
            let cells = (0..columns.len()).map(|column| cell(nth, column));
            [name.clone()].into_iter().chain(cells).collect()
        };
        Self { head, rows: rows.iter().enumerate().map(row).collect() }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |\n|{}", self.head.join(" | "), "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// Names and figures that a requirement is judged by.
pub(crate) type Readings = Vec<(String, f64)>;

/// What the figures have to show, and whether they do.
#[derive(Clone, Debug)]
pub(crate) struct Requirement {
    pub(crate) requirement: String,
    limit: String,
    readings: Readings,
    pub(crate) verdict: String,
}

impl Requirement {
    pub(crate) fn at_most(limit: f64, text: impl Into<String>, readings: Readings) -> Self {
        Self::new(text.into(), format!("at most {limit}"), readings, |reading| reading <= limit)
    }

    pub(crate) fn at_least(limit: f64, text: impl Into<String>, readings: Readings) -> Self {
        Self::new(text.into(), format!("at least {limit}"), readings, |reading| reading >= limit)
    }

    /// Without a reading there is no verdict.
    fn new(requirement: String, limit: String, readings: Readings, is_met: impl Fn(f64) -> bool) -> Self {
        let verdict = match &readings[..] {
            [] => "not measured",
            readings if readings.iter().all(|(_, reading)| is_met(*reading)) => "met",
            _ => "**NOT met**",
        };
        Self { requirement, limit, readings, verdict: verdict.to_owned() }
    }

    pub(crate) fn table(all: &[Self]) -> Table {
        let row = |it: &Self| {
            let readings = it.readings.iter().map(|(name, reading)| format!("{name}: {reading:.2}"));
            let readings = readings.collect::<Vec<_>>().join(", ");
            vec![it.requirement.clone(), it.limit.clone(), readings, it.verdict.clone()]
        };
        let head = ["requirement (medians)", "limit", "measured", "verdict"].map(str::to_owned).into();
        Table { head, rows: all.iter().map(row).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_has_to_meet_the_limit() {
        let judge = |readings: &[f64]| {
            let readings = readings.iter().map(|&reading| ("one".to_owned(), reading)).collect();
            Requirement::at_most(2.0, "speed", readings)
        };
        let cases: [(&[f64], _); 4] = [
            (&[], "not measured"),
            (&[1.0, 2.0], "met"),
            (&[1.0, 2.1], "**NOT met**"),
            (&[f64::NAN], "**NOT met**"),
        ];
        cases.into_iter().for_each(|(readings, verdict)| assert_eq!(judge(readings).verdict, verdict));
        let table = Requirement::table(&[judge(&[1.0])]).to_string();
        assert!(table.ends_with("| speed | at most 2 | one: 1.00 | met |\n"), "{table}");
    }
}
