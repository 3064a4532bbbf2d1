//! The table of the README: what programs see, in a row for each thing that they do.

use crate::args::label;
use crate::measure::clock::{IDLE, INTO};
use crate::measure::two_threads::CROSS;
use crate::names::{BOTH, OURS};
use crate::results::Results;
use crate::rhythm::{LOOPED, TICKED};
use crate::samples::Samples;
use crate::table::Table;

const MARKS: [&str; 2] = ["<!-- figures -->\n", "<!-- /figures -->"];

/// Engines, and their names in the table.
const COLUMNS: [[&str; 2]; 3] = [[OURS, OURS], ["heap", "heap + mutex"], ["tree", "`BTreeMap` + mutex"]];

/// What a row shows, the section and the figure; the figure is ns divided by the last.
type Row = (&'static str, &'static str, &'static str, f64);

const ROWS: [Row; 9] = [
    ("a tick at which nothing is due", "tick", IDLE, 1.0),
    ("fire tick by tick", "ticks", TICKED[0], 1.0),
    ("fire as an event loop", "loop", LOOPED[0], 1.0),
    ("burst, fire tick by tick", "burst", TICKED[0], 1.0),
    ("burst, longest advance, µs", "burst", "advance, tick by tick, longest", 1e3),
    ("burst, fire as an event loop", "burst", LOOPED[0], 1.0),
    ("few timers, schedule", "small", INTO, 1.0),
    ("few timers, schedule + fire in one call", "small", BOTH, 1.0),
    ("cancel what another thread scheduled", "cross-cancel", CROSS, 1.0),
];

/// Returns `text` with the table of `results` between the marks.
pub(crate) fn renewed(text: &str, results: &Results) -> Result<String, String> {
    let missing = || format!("there is no {:?} with {:?} after it", MARKS[0].trim(), MARKS[1]);
    let (before, rest) = text.split_once(MARKS[0]).ok_or_else(missing)?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or_else(missing)?;
    let rows = ROWS.iter().filter(|row| !sizes(results, row.1, row.2).is_empty()).collect::<Vec<_>>();
    if rows.is_empty() {
        return Err("the figures are of no section that the table has".to_owned());
    }
    let [from, to] = MARKS;
    Ok(format!("{before}{from}{}\n{}\n{to}{after}", table(results, &rows), origin(results)))
}

fn table(results: &Results, rows: &[&Row]) -> Table {
    let names = rows.iter().map(|row| row.0.to_owned()).collect::<Vec<_>>();
    let columns = ["timers"].into_iter().chain(COLUMNS.map(|column| column[1]));
    let columns = columns.map(str::to_owned).collect::<Vec<_>>();
    let cell = |row: usize, column: usize| {
        let (_, section, what, unit) = *rows[row];
        let sizes = sizes(results, section, what).into_iter();
        let show = |size| match column.checked_sub(1) {
            None => label(size),
            Some(nth) => {
                figure(&COLUMNS.map(|[engine, _]| results.get((section, size), what, engine)), nth, unit)
            }
        };
        sizes.map(show).collect::<Vec<_>>().join(" / ")
    };
    Table::cross("", [&names, &columns], &cell)
}

/// The numbers of timers with which our figure was measured.
fn sizes(results: &Results, section: &str, what: &str) -> Vec<usize> {
    let sizes = results.sizes(section).into_iter();
    sizes.filter(|&size| results.get((section, size), what, OURS).is_some()).collect()
}

/// The `nth` of some figures, bold if others are greater.
fn figure(all: &[Option<&Samples>], nth: usize, unit: f64) -> String {
    let Some(median) = all[nth].map(Samples::median) else { return "-".to_owned() };
    let text = grouped((median / unit).round() as u64);
    let others = (0..all.len()).filter(|&other| other != nth).filter_map(|other| all[other]);
    match others.map(Samples::median).reduce(f64::min) {
        Some(least) if median <= least => format!("**{text}**"),
        _ => text,
    }
}

fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Says where the figures are from.
fn origin(results: &Results) -> String {
    let named = |name: &'static str| results.heading.lines().filter_map(move |line| line.strip_prefix(name));
    let machine = named("- machine: ").next().unwrap_or("unknown");
    let rounds = named("- rounds: ").map(|line| line.split(';').next().unwrap_or(line));
    let mut runs = Vec::new();
    for run in
        rounds.zip(named("- commit: ")).map(|(rounds, commit)| format!("{rounds} rounds at `{commit}`"))
    {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let runs = runs.join(", of ");
    format!("ns per timer, all ticks included, if the row has no other unit.\nMedians of {runs}. {machine}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    /// Those of three files.
    const HEADING: &str = "- machine: EPYC\n- commit: abc\n- rounds: 5; medians\n- commit: def\n- rounds: 3; medians\n\
                           - commit: abc\n- rounds: 5; medians\n";

    #[test]
    fn the_best_figure_is_bold_and_the_rest_of_the_page_stays() {
        let mut results = Results { heading: HEADING.to_owned(), ..Results::default() };
        for (engine, size, cost) in [(OURS, 1_000, 1234.4), ("heap", 1_000, 99.0), (OURS, 1_000_000, 7.0)] {
            results.add(("loop", size), engine, Outcome::of(LOOPED[0], cost));
        }
        let page = format!("a{}old{}b", MARKS[0], MARKS[1]);
        let page = renewed(&page, &results).unwrap();
        // A table that is wider than high is turned.
        let rows = ["| timers | 1k / 1M |", "| shardwheel | 1,234 / 7 |", "| heap + mutex | **99** / - |"];
        assert!(rows.iter().all(|row| page.contains(row)), "{page}");
        assert!(page.contains("Medians of 5 rounds at `abc`, of 3 rounds at `def`. EPYC.\n"), "{page}");
        assert!(page.starts_with("a<!--") && page.ends_with("-->b") && !page.contains("old"), "{page}");
        assert!(renewed("no marks", &results).is_err() && renewed(&page, &Results::default()).is_err());
    }
}
