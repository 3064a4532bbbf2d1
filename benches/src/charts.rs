//! Charts of what `peers` and `live` measured, and the tables of the README pages.
//!
//! A chart has a line for each engine over two logarithmic axes; `shardwheel` is red and thick. It
//! names the machine and the date of its figures, and goes with light and dark pages.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::args::label;
use crate::names::{BOTH, LATE, LIVE_FIRE, OURS, RANDOM, late};
use crate::results::Results;
use crate::summary::{self, engines};

/// Where the axes begin and end; the names of the engines are to the right of them.
const ACROSS: [f64; 2] = [92.0, 832.0];
const UP: [f64; 2] = [580.0, 72.0];
/// The height of a name in the legend.
const NAME: usize = 24;
const MARGIN: f64 = 1.25;

/// The colour of `shardwheel`, then those of the others, in the order of the suite. Each is readable
/// on white and on black.
const COLOURS: [&str; 8] =
    ["#d61c1c", "#1f87c4", "#f08000", "#2c9a3c", "#9467d6", "#a9714f", "#e060b8", "#12a5b4"];

/// The size of a chart, and its style: on a dark page the chart is dark, too.
const HEAD: &str = r##"<svg viewBox="0 0 1100 640" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="15">
<style>text { fill: #202020 } path { stroke: #ddd }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #0d1117 } path { stroke: #444 } }</style>
<rect width="1100" height="640" fill="#fff"/>
"##;

/// Draws the charts of all figures beside the first file; renews the tables of Markdown files.
pub(crate) fn renew(files: &[PathBuf], pages: &[PathBuf]) -> io::Result<()> {
    let mut all = Results::default();
    for file in files {
        let read = Results::parse(&fs::read_to_string(file)?);
        let mut results = read.map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        all.heading.push_str(&results.heading);
        all.figures.append(&mut results.figures);
    }
    let dir = files.first().and_then(|file| file.parent()).unwrap_or(Path::new(""));
    for chart in [cost(&all), lateness(&all)].into_iter().filter(|chart| !chart.lines.is_empty()) {
        let file = dir.join(chart.name).with_extension("svg");
        fs::write(&file, chart.draw(&summary::origin(&all)))?;
        println!("drawn: {}", file.display());
    }
    for page in pages {
        let text = summary::renewed(&fs::read_to_string(page)?, &all).map_err(io::Error::other)?;
        fs::write(page, text)?;
        println!("renewed: {}", page.display());
    }
    Ok(())
}

/// A chart: its axes, the ticks of the horizontal one, and the points of each engine.
struct Chart {
    name: &'static str,
    title: String,
    x: &'static str,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
    y: &'static str,
    lines: Vec<(String, Vec<[f64; 2]>)>,
}

/// The cost of a timer, against the number of timers.
fn cost(results: &Results) -> Chart {
    let ticks = results.sizes(RANDOM).into_iter().map(|size| size as f64).collect::<Vec<_>>();
    let at =
        |engine: &str, size: f64| Some([size, results.get((RANDOM, size as usize), BOTH, engine)?.median()]);
    Chart {
        name: "schedule-and-fire",
        title: format!("Cost to {BOTH} a timer, deadlines at random over 30 minutes"),
        x: "timers",
        label: |size| label(size as usize),
        y: "ns a timer (median of the rounds)",
        lines: lines(results, RANDOM, |engine| ticks.iter().filter_map(|&size| at(engine, size)).collect()),
        ticks,
    }
}

/// How late timers fire, against the share of timers that are later still.
fn lateness(results: &Results) -> Chart {
    let most = results.sizes(LIVE_FIRE).pop().unwrap_or_default();
    let at = |engine: &str, share: f64| {
        Some([1.0 / (1.0 - share), results.get((LIVE_FIRE, most), &late(share), engine)?.median()])
    };
    Chart {
        name: "late-fire",
        title: "How late timers fire in real time, ticks of 1 ms".to_owned(),
        x: "share of the timers, %",
        ticks: [0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999].map(|share| 1.0 / (1.0 - share)).into(),
        label: |x| short((1.0 - 1.0 / x) * 100.0),
        y: "microseconds after the deadline (median of the rounds)",
        lines: lines(results, LIVE_FIRE, |engine| {
            LATE.into_iter().filter_map(|share| at(engine, share)).collect()
        }),
    }
}

/// Returns the points of each engine that has any. A logarithmic axis has no zero.
fn lines(
    results: &Results,
    section: &str,
    points: impl Fn(&str) -> Vec<[f64; 2]>,
) -> Vec<(String, Vec<[f64; 2]>)> {
    let points = |engine: String| {
        let points = points(&engine).into_iter().filter(|at| at[1] > 0.0).collect::<Vec<_>>();
        (!points.is_empty()).then_some((engine, points))
    };
    engines(results, section).into_iter().filter_map(points).collect()
}

impl Chart {
    fn draw(&self, source: &str) -> String {
        let mut svg = HEAD.to_owned();
        let mut text = |x, y, attributes: &str, text: &str| {
            let _ = writeln!(svg, r#"<text x="{x:.0}" y="{y:.0}"{attributes}>{text}</text>"#);
        };
        text(16.0, 30.0, r#" font-size="22""#, &self.title);
        text(16.0, 56.0, "", source);
        text(462.0, 628.0, r#" text-anchor="middle""#, self.x);
        text(24.0, 326.0, r#" text-anchor="middle" transform="rotate(270, 24, 326)""#, self.y);
        let [across, up] = [self.axis(0, ACROSS), self.axis(1, UP)];
        let mut grid = String::new();
        for &tick in &self.ticks {
            let _ = write!(grid, "M{:.0} {}V{}", across.at(tick), UP[0], UP[1]);
            text(across.at(tick), UP[0] + 20.0, r#" text-anchor="middle""#, &(self.label)(tick));
        }
        for tick in up.round() {
            let _ = write!(grid, "M{} {:.0}H{}", ACROSS[0], up.at(tick), ACROSS[1]);
            text(ACROSS[0] - 8.0, up.at(tick) + 5.0, r#" text-anchor="end""#, &short(tick));
        }
        for (place, nth) in (1..).zip(self.by_last_figure()) {
            text(ACROSS[1] + 50.0, (UP[1] as usize + place * NAME) as f64, "", &self.lines[nth].0);
        }
        let _ = writeln!(svg, r#"<path stroke-width="1" d="{grid}"/>"#);
        self.draw_lines(&mut svg, &across, &up);
        svg + "</svg>\n"
    }

    /// Draws the lines, the first one on top of the others, and a short one beside each name.
    fn draw_lines(&self, svg: &mut String, across: &Axis, up: &Axis) {
        let order = self.by_last_figure();
        for (nth, (engine, points)) in self.lines.iter().enumerate().rev() {
            let (colour, width) = (COLOURS[nth % COLOURS.len()], if engine == OURS { 4 } else { 2 });
            let mut line = String::new();
            for (at, [x, y]) in points.iter().enumerate() {
                let _ =
                    write!(line, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, across.at(*x), up.at(*y));
            }
            let place = 1 + order.iter().position(|&line| line == nth).unwrap_or_default();
            let beside = UP[1] as usize + place * NAME - 5;
            let _ = writeln!(
                svg,
                r#"<path style="stroke: {colour}; stroke-width: {width}; fill: none" d="{line}M{} {beside}h40"/>"#,
                ACROSS[1] + 4.0,
            );
        }
    }

    /// The numbers of the lines in the order of their last figures, the greatest first.
    fn by_last_figure(&self) -> Vec<usize> {
        let last = |line: usize| self.lines[line].1.last().map_or(0.0, |point| point[1]);
        let mut order = (0..self.lines.len()).collect::<Vec<_>>();
        order.sort_by(|&one, &other| last(other).total_cmp(&last(one)));
        order
    }

    /// An axis for all points and some space around them.
    fn axis(&self, along: usize, [from, to]: [f64; 2]) -> Axis {
        let all = self.lines.iter().flat_map(|line| &line.1).map(|point| point[along]);
        let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
        Axis { from, to, least: least / MARGIN, most: most * MARGIN }
    }
}

/// A logarithmic axis: where it begins and ends, and the figures there.
struct Axis {
    from: f64,
    to: f64,
    least: f64,
    most: f64,
}

impl Axis {
    fn at(&self, figure: f64) -> f64 {
        self.from + (self.to - self.from) * (figure / self.least).ln() / (self.most / self.least).ln()
    }

    /// The round numbers on it: 1, 2, 5, 10, 20, 50 and so on.
    fn round(&self) -> impl Iterator<Item = f64> {
        let decades = (-3..9).map(|power| 10_f64.powi(power));
        let all = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
        all.filter(|number| (self.least..self.most).contains(number))
    }
}

/// Writes a number without the noise of binary fractions.
fn short(number: f64) -> String {
    const DIGITS: f64 = 1e4;
    ((number * DIGITS).round() / DIGITS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    #[test]
    fn every_chart_that_has_figures_is_drawn() {
        let heading = "- machine: a fast one\n- compiler: x\n- date: 2026-01-02\n".to_owned();
        let mut results = Results { heading, ..Results::default() };
        for (engine, cost) in [(OURS, 20.0), ("heap", 90.0), ("an engine of former times", 1.0)] {
            results.add((RANDOM, 10_000), engine, Outcome::of(BOTH, cost));
            results.add((RANDOM, 1_000_000), engine, Outcome::of(BOTH, 2.0 * cost));
            LATE.map(late)
                .iter()
                .for_each(|what| results.add((LIVE_FIRE, 1), engine, Outcome::of(what, cost)));
        }
        let [cost, late] = [cost(&results), lateness(&results)].map(|it| it.draw(&summary::origin(&results)));
        for text in [OURS, "heap", "10k", "1M", "ns a timer", "a fast one", "2026-01-02", "stroke-width: 4"] {
            assert!(cost.contains(text), "{text}");
        }
        assert!(!cost.contains("former times"));
        assert!(["90", "99.9", "99.999"].iter().all(|tick| late.contains(&format!(">{tick}</text>"))));
        assert_eq!(
            late.matches('L').count(),
            LATE.len() - 1,
            "a line of one engine: the other has no `live`"
        );
    }
}
