//! The tables of the README pages: what programs see, in a row for each thing that they do.
//!
//! A page has a place for a table between `<!-- figures NAME -->` and `<!-- /figures -->`.

use crate::args::label;
use crate::cli::SUITES;
use crate::measure::memory::{BYTES, LEFT};
use crate::measure::tails::TIMED;
use crate::names::{ALTERNATIVE, BOTH, LIVE_FIRE, MILLION, OURS, PRODUCERS, RANDOM, TAILS, TEN_MILLION};
use crate::results::{Results, names};
use crate::samples::{PERCENTILES, Samples};

const FROM: &str = "<!-- figures ";
const NAMED: &str = " -->\n";
const TO: &str = "<!-- /figures -->";

/// Makes a table; `None` without figures.
type Make = fn(&Results) -> Option<String>;

/// Each table by its name.
const TABLES: [(&str, Make); 7] = [
    ("decides", |results| rows(results, &DECIDES, &STRUCTURES, true)),
    ("programs", |results| rows(results, &PROGRAMS, &STRUCTURES, true)),
    ("live", |results| rows(results, &LIVE, &TIMERS, false)),
    ("calls", |results| rows(results, &CALLS, &CALLED, false)),
    ("memory", |results| rows(results, &MEMORY, &STRUCTURES, false)),
    ("structures", structures),
    ("tails", tails),
];

/// An engine, and its name in a table.
type Column = (&'static str, &'static str);

const STRUCTURES: [Column; 3] = [(OURS, OURS), ("heap", "heap + mutex"), ("tree", "`BTreeMap` + mutex")];

const TIMERS: [Column; 6] = [
    (OURS, "shardwheel, callbacks"),
    ("shardwheel one shard", "the same, one shard"),
    ("shardwheel sleeps", "shardwheel, sleeps"),
    ("tokio", "tokio"),
    (ALTERNATIVE, "tokio, alternative timer"),
    ("heap thread", "heap + thread"),
];

const CALLED: [Column; 4] = [(OURS, "`Timer`"), TIMERS[3], TIMERS[4], TIMERS[5]];

/// What a row shows, the section, the figure, what the figure is divided by, and the numbers of
/// timers: all that were measured, if there are none.
type Row = (&'static str, &'static str, &'static str, f64, &'static [usize]);

const FEW: &[usize] = &[10_000];
const MANY: &[usize] = &[MILLION];
const MOST: &[usize] = &[MILLION, TEN_MILLION];

const DECIDES: [Row; 6] = [
    (
        "schedule + cancel, two threads on one shard",
        PRODUCERS,
        "schedule + cancel: 2 threads on one",
        1.0,
        MANY,
    ),
    (
        "schedule, two threads on one shard",
        PRODUCERS,
        "schedule, nodes used before: 2 threads on one",
        1.0,
        MANY,
    ),
    ("a tick at which nothing is due", "tick", "a tick, nothing due", 1.0, FEW),
    ("fire, a call for each tick", "ticks", "fire, tick by tick", 1.0, MOST),
    ("longest advance after a burst, µs", "burst", "advance, tick by tick, longest", 1e3, MANY),
    ("fire, as an event loop with few timers", "loop", "fire, event loop", 1.0, FEW),
];

const PROGRAMS: [Row; 13] = [
    ("schedule + cancel, one thread", PRODUCERS, "schedule + cancel: 1 thread", 1.0, MANY),
    (
        "schedule + cancel, two threads, one each",
        PRODUCERS,
        "schedule + cancel: 2 threads, one each",
        1.0,
        MANY,
    ),
    DECIDES[0],
    DECIDES[1],
    ("a tick at which nothing is due", "tick", "a tick, nothing due", 1.0, &[]),
    ("fire tick by tick", "ticks", "fire, tick by tick", 1.0, &[]),
    ("fire as an event loop", "loop", "fire, event loop", 1.0, &[]),
    ("burst, fire tick by tick", "burst", "fire, tick by tick", 1.0, &[]),
    ("burst, longest advance, µs", "burst", "advance, tick by tick, longest", 1e3, &[]),
    ("burst, fire as an event loop", "burst", "fire, event loop", 1.0, &[]),
    ("few timers, schedule", "small", "schedule, as many pending", 1.0, &[]),
    ("few timers, schedule + fire in one call", "small", BOTH, 1.0, &[]),
    ("cancel what another thread scheduled", "cross-cancel", "cancel, scheduled by another thread", 1.0, &[]),
];

const LIVE: [Row; 4] = [
    (
        "processor time to fire them, s",
        LIVE_FIRE,
        "processor time from all placed to all fired, ms",
        1e3,
        MANY,
    ),
    ("late, 50 % of them at most, ms", LIVE_FIRE, "late, 50 %, µs", 1e3, MANY),
    ("late, 99 %, ms", LIVE_FIRE, "late, 99 %, µs", 1e3, MANY),
    ("late, 99.9 %, ms", LIVE_FIRE, "late, 99.9 %, µs", 1e3, MANY),
];

const CALLS: [Row; 4] = [
    ("a sleep created, polled and dropped, ns", "sleep", "create, poll and drop, one thread, ns", 1.0, &[]),
    ("the same from two threads, ns", "sleep", "create, poll and drop, two threads, ns", 1.0, &[]),
    ("`schedule_after`, ns", "schedule", "schedule_after, after as many have fired, ns", 1.0, &[]),
    ("idle for 5 s, a timer an hour away: wake-ups", "idle", "wake-ups of its threads", 1.0, &[]),
];

const MEMORY: [Row; 2] = [
    ("bytes a timer in addition to its payload", "memory", BYTES, 1.0, &[]),
    ("% of the peak that is left a second after all have fired", "memory", LEFT, 0.01, &[]),
];

/// Returns `page` with the tables of `results` in their places; a table without figures stays.
pub(crate) fn renewed(page: &str, results: &Results) -> Result<String, String> {
    let mut parts = page.split(FROM);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let malformed = || format!("{FROM}{:?} has no end", part.lines().next().unwrap_or_default());
        let (name, rest) = part.split_once(NAMED).ok_or_else(malformed)?;
        let (old, after) = rest.split_once(TO).ok_or_else(malformed)?;
        let table = TABLES.iter().find(|table| table.0 == name);
        let (_, table) = table.ok_or_else(|| format!("there is no table {name:?}"))?;
        let new = table(results).map(|table| format!("{table}\n{}\n", origin(results)));
        text.extend([FROM, name, NAMED, new.as_deref().unwrap_or(old), TO, after]);
    }
    Ok(text)
}

/// A row for each of `rows` that has figures, with its numbers of timers if they are to be shown.
fn rows(results: &Results, rows: &[Row], columns: &[Column], sized: bool) -> Option<String> {
    let rows = rows.iter().filter(|row| !sizes(results, row).is_empty()).collect::<Vec<_>>();
    let measured = |(engine, _): &&Column| {
        rows.iter()
            .any(|row| sizes(results, row).iter().any(|&size| get(results, row, size, engine).is_some()))
    };
    let columns = columns.iter().filter(measured).collect::<Vec<_>>();
    let name = |row: &&Row| match sized {
        true => format!("{}: {}", row.0, joined(sizes(results, row).into_iter().map(label))),
        false => row.0.to_owned(),
    };
    let cell = |row: usize, column: usize| {
        let figures = |size| {
            let all = columns.iter().map(|column| get(results, rows[row], size, column.0));
            figure(&all.collect::<Vec<_>>(), column, rows[row].3)
        };
        joined(sizes(results, rows[row]).into_iter().map(figures))
    };
    let names =
        [rows.iter().map(name).collect(), columns.iter().map(|it| it.1.to_owned()).collect::<Vec<_>>()];
    let [rows, columns]: [Vec<String>; 2] = names;
    (!rows.is_empty()).then(|| table("", [&rows, &columns], &cell))
}

/// Schedule + fire of each structure, by the number of timers.
fn structures(results: &Results) -> Option<String> {
    let sizes = results.sizes(RANDOM);
    let engines = engines(results, RANDOM);
    let cell = |row: usize, column: usize| {
        let all = engines.iter().map(|engine| results.get((RANDOM, sizes[column]), BOTH, engine));
        figure(&all.collect::<Vec<_>>(), row, 1.0)
    };
    let columns = sizes.iter().copied().map(label).collect::<Vec<_>>();
    (!engines.is_empty()).then(|| table("ns a timer", [&engines, &columns], &cell))
}

/// The percentiles of single operations, for each number of threads.
fn tails(results: &Results) -> Option<String> {
    let engines = [STRUCTURES[0], STRUCTURES[1], ("flat wheel", "flat wheel + mutex")];
    let sizes = results.sizes(TAILS);
    let all = sizes.iter().flat_map(|size| TIMED.iter().map(move |what| (*what, *size)));
    let all = all.collect::<Vec<_>>();
    let beside = |size| if size == 0 { "quiet".to_owned() } else { format!("{size} threads") };
    let rows = all.iter().map(|&(what, size)| format!("{what}, {}", beside(size))).collect::<Vec<_>>();
    let columns = engines.map(|column| column.1.to_owned());
    let cell = |row: usize, column: usize| {
        let ((what, size), engine) = (all[row], engines[column].0);
        let figure =
            |name| results.get((TAILS, size), &format!("{what}, {name}"), engine).map(Samples::median);
        joined(PERCENTILES.iter().map(|(name, _)| figure(name).map_or_else(|| "-".to_owned(), in_short)))
    };
    (!rows.is_empty())
        .then(|| table(&joined(PERCENTILES.iter().map(|it| it.0.to_owned())), [&rows, &columns], &cell))
}

/// Returns the engines of a section that have figures there.
pub(crate) fn engines(results: &Results, section: &str) -> Vec<String> {
    let runs = SUITES.iter().find_map(|suite| suite.section(section)).map_or(&[][..], |section| section.runs);
    let is_measured = |engine: &&str| {
        results.figures.iter().any(|series| series.section == section && series.engine == **engine)
    };
    runs.iter().map(|run| run.engine).filter(is_measured).map(str::to_owned).collect()
}

/// Makes a Markdown table of rows and columns by their names.
fn table(corner: &str, [rows, columns]: [&[String]; 2], cell: &dyn Fn(usize, usize) -> String) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = [&[corner.to_owned()][..], columns].concat();
    let mut text = format!("{}|{}\n", line(&head), "---|".repeat(head.len()));
    for (nth, name) in rows.iter().enumerate() {
        let cells = (0..columns.len()).map(|column| cell(nth, column));
        text.push_str(&line(&[name.clone()].into_iter().chain(cells).collect::<Vec<_>>()));
    }
    text
}

fn get<'a>(results: &'a Results, row: &Row, size: usize, engine: &str) -> Option<&'a Samples> {
    results.get((row.1, size), row.2, engine)
}

/// The numbers of timers of a row with which our figure was measured.
fn sizes(results: &Results, row: &Row) -> Vec<usize> {
    let sizes = results.sizes(row.1).into_iter().filter(|size| row.4.is_empty() || row.4.contains(size));
    sizes.filter(|&size| get(results, row, size, OURS).is_some()).collect()
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(" / ")
}

/// The `nth` of some figures, bold if others are greater.
fn figure(all: &[Option<&Samples>], nth: usize, unit: f64) -> String {
    let Some(median) = all[nth].map(Samples::median) else { return "-".to_owned() };
    let text = digits(median / unit);
    let others = (0..all.len()).filter(|&other| other != nth).filter_map(|other| all[other]);
    match others.map(Samples::median).reduce(f64::min) {
        Some(least) if median < least => format!("**{text}**"),
        _ => text,
    }
}

/// Writes a figure with about two digits or all before the point.
fn digits(number: f64) -> String {
    match number {
        _ if number.fract() == 0.0 => grouped(number as u64),
        ..0.995 => format!("{number:.2}"),
        ..9.95 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

/// Writes ns in the unit that leaves at most four digits.
fn in_short(nanos: f64) -> String {
    match nanos {
        ..1e4 => grouped(nanos.round() as u64),
        ..1e7 => format!("{} µs", grouped((nanos / 1e3).round() as u64)),
        _ => format!("{} ms", grouped((nanos / 1e6).round() as u64)),
    }
}

fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Says where the figures are from.
pub(crate) fn origin(results: &Results) -> String {
    let all = |name: &'static str| {
        let lines = results.heading.lines().filter_map(|line| line.strip_prefix(name)?.split(';').next());
        names(lines.map(str::to_owned).collect::<Vec<_>>().iter())
    };
    let mut rounds = all("- rounds: ");
    rounds.sort_unstable();
    let [machines, dates] = [all("- machine: "), all("- date: ")].map(|all| all.join(" and "));
    format!("{machines}; {dates}. Medians of {} rounds.", rounds.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Outcome, Task};

    /// Those of three files.
    const HEADING: &str = "- machine: EPYC\n- date: 2026-01-02\n- rounds: 5; medians\n- commit: def\n\
                           - machine: EPYC\n- rounds: 3; medians\n";

    fn page(results: &Results, name: &str) -> String {
        renewed(&format!("a{FROM}{name}{NAMED}old{TO}b"), results).unwrap()
    }

    #[test]
    fn the_best_figure_is_bold_and_the_rest_of_the_page_stays() {
        let mut results = Results { heading: HEADING.to_owned(), ..Results::default() };
        for (engine, size, cost) in [(OURS, 1_000, 1234.4), ("heap", 1_000, 99.6), (OURS, MILLION, 7.3)] {
            results.add(("loop", size), engine, Outcome::of("fire, event loop", cost));
        }
        let text = page(&results, "programs");
        assert!(text.contains("| fire as an event loop: 1k / 1M | 1,234 / 7.3 | **100** / - |\n"), "{text}");
        assert!(text.contains("\nEPYC; 2026-01-02. Medians of 3 or 5 rounds.\n"), "{text}");
        assert!(text.starts_with("a<!--") && text.ends_with("-->b") && !text.contains("old"), "{text}");
        assert!(page(&results, "tails").contains("old"));
        assert!(renewed("<!-- figures nothing -->\n<!-- /figures -->", &results).is_err());
        assert!(renewed("<!-- figures live -->\n", &results).is_err());
    }

    #[test]
    fn every_figure_of_a_row_is_measured() {
        for (_, section, what, ..) in DECIDES.into_iter().chain(PROGRAMS).chain(LIVE).chain(CALLS) {
            let found = SUITES.iter().find_map(|suite| suite.section(section));
            let outcome = (found.unwrap().runs[0].measure)(&Task::small(1000));
            assert!(outcome.figures.iter().any(|figure| figure.0 == what), "{section}: {what}");
        }
    }

    #[test]
    fn short_figures() {
        let short = [7.0, 1_234.4, 12_345.0, 1.2e6, 1.2e8].map(in_short);
        assert_eq!(short, ["7", "1,234", "12 µs", "1,200 µs", "120 ms"]);
        assert_eq!([0.0, 0.714, 8.46, 99.7].map(digits), ["0", "0.71", "8.5", "100"]);
    }
}
