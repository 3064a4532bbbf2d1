//! Markdown tables.

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
