//! Charts of what `peers` and `live` measured: lines over two logarithmic axes, one for each engine.
//!
//! The name of a file tells what the chart shows; the chart has the machine and the commit of its
//! figures. `shardwheel` is red and thick; a dashed engine has no lock.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;

use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::element::{Circle, PathElement};
use plotters::prelude::{Color, IntoDrawingArea, IntoFont, RGBColor, SVGBackend, Text, TextStyle, WHITE};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::TRANSPARENT;

use crate::args::label;
use crate::names::{FIRE, LATE, LIVE_FINE, LIVE_FIRE, RANDOM, SCHEDULE};
use crate::results::Results;

const OURS: &str = "shardwheel";
const NO_LOCK: &str = " without a lock";

const SIZE: (u32, u32) = (1100, 640);
const HEAD: u32 = 64;
const INK: RGBColor = RGBColor(0x20, 0x20, 0x20);

/// Free space around the points, as a factor.
const MARGIN: f64 = 1.25;

/// The colour of `shardwheel`, then those of the others, in the order of their first figures.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0xd6, 0x1c, 0x1c),
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xff, 0x8c, 0x00),
    RGBColor(0x2c, 0x9a, 0x3c),
    RGBColor(0x7e, 0x4f, 0xc0),
    RGBColor(0x8c, 0x56, 0x3b),
    RGBColor(0xe0, 0x60, 0xb8),
    RGBColor(0x12, 0xb5, 0xc4),
    RGBColor(0xa5, 0xa8, 0x10),
    RGBColor(0x40, 0x40, 0x40),
];

/// An axis with its ticks.
struct Axis {
    title: &'static str,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

/// A chart; its lines are an engine's points, from left to right.
struct Chart {
    name: String,
    title: String,
    source: String,
    x: Axis,
    y: &'static str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Draws every chart that `results` has figures for into `dir`, which is made if it does not exist;
/// returns the names of the files.
pub(crate) fn draw_charts(dir: &Path, results: &Results) -> Result<Vec<String>, Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let costs = [SCHEDULE, FIRE].map(|what| cost(results, what));
    let lateness = [LIVE_FIRE, LIVE_FINE].map(|section| lateness(results, section));
    let charts = costs.into_iter().chain(lateness).filter(|chart| !chart.lines.is_empty());
    let draw = |chart: Chart| {
        let file = format!("{}.svg", chart.name);
        chart.draw(&dir.join(&file))?;
        Ok(file)
    };
    charts.map(draw).collect()
}

/// The cost of a timer, against the number of timers.
fn cost(results: &Results, what: &str) -> Chart {
    let sizes = results.sizes(RANDOM).into_iter().flatten().collect::<Vec<_>>();
    let at = |engine: &str, size: usize| {
        Some((size as f64, results.get(RANDOM, Some(size), what, engine)?.median()))
    };
    let ticks = sizes.iter().map(|&size| size as f64).collect();
    Chart {
        name: what.to_owned(),
        title: format!("Cost to {what} a timer, deadlines at random over 30 minutes"),
        source: source(&results.heading),
        x: Axis { title: "timers", ticks, label: |size| label(size as usize) },
        y: "ns a timer (median of the rounds)",
        lines: lines(results, |engine| sizes.iter().filter_map(|&size| at(engine, size)).collect()),
    }
}

/// How late timers fire, against the share of timers that are later still.
fn lateness(results: &Results, section: &str) -> Chart {
    let at = |engine: &str, (share, row): (f64, &str)| {
        Some((1.0 / (1.0 - share), results.get(section, None, row, engine)?.median()))
    };
    let ticks = [0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999].map(|share| 1.0 / (1.0 - share)).into();
    let percent = |x: f64| short((1.0 - 1.0 / x) * 100.0);
    let tick = if section == LIVE_FINE { "100 µs" } else { "1 ms" };
    Chart {
        name: format!("late-{section}"),
        title: format!("How late timers fire in real time, ticks of {tick}"),
        source: source(&results.heading),
        x: Axis { title: "share of the timers, %", ticks, label: percent },
        y: "microseconds after the deadline (median of the rounds)",
        lines: lines(results, |engine| LATE.into_iter().filter_map(|late| at(engine, late)).collect()),
    }
}

/// Returns the machine and the commit.
fn source(heading: &str) -> String {
    let lines = heading.lines().filter_map(|line| line.strip_prefix("- "));
    let lines = lines.filter(|line| line.starts_with("machine: ") || line.starts_with("commit: "));
    lines.collect::<Vec<_>>().join("; ")
}

/// Returns the points of each engine that has any. A logarithmic axis has no zero.
fn lines(results: &Results, points: impl Fn(&str) -> Vec<(f64, f64)>) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines = Vec::<(String, Vec<_>)>::new();
    for engine in results.figures.iter().map(|series| &series.engine) {
        if lines.iter().all(|(known, _)| known != engine) {
            lines.push((engine.clone(), points(engine).into_iter().filter(|at| at.1 > 0.0).collect()));
        }
    }
    lines.retain(|(_, points)| !points.is_empty());
    lines
}

impl Chart {
    fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let root = SVGBackend::new(path, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, below) = root.split_vertically(HEAD);
        head.draw(&Text::new(self.title.clone(), (16, 10), text(24)))?;
        head.draw(&Text::new(self.source.clone(), (16, 42), text(15)))?;
        let [across, up] = [self.range(|point| point.0), self.range(|point| point.1)];
        let ticks = ticks(&up);
        let mut builder = ChartBuilder::on(&below);
        let builder = builder.margin(8).x_label_area_size(52).y_label_area_size(84);
        let mut chart = builder.build_cartesian_2d(
            across.log_scale().with_key_points(self.x.ticks.clone()),
            up.log_scale().with_key_points(ticks),
        )?;
        let (x_label, y_label) = (|at: &f64| (self.x.label)(*at), |at: &f64| short(*at));
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc(self.x.title).y_desc(self.y);
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        mesh.label_style(text(16)).axis_desc_style(text(17)).draw()?;
        // The first line is drawn last, on top of the others.
        for (nth, (engine, points)) in self.lines.iter().enumerate().rev() {
            let (colour, width) = (COLOURS[nth % COLOURS.len()], if engine == OURS { 4 } else { 2 });
            let (points, shape) = (points.iter().copied(), colour.stroke_width(width));
            let drawn = if engine.ends_with(NO_LOCK) {
                chart.draw_series(DashedLineSeries::new(points.clone(), 9, 5, shape))?
            } else {
                chart.draw_series(LineSeries::new(points.clone(), shape))?
            };
            drawn.label(engine).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], shape));
            chart.draw_series(points.map(|point| Circle::new(point, width + 1, colour.filled())))?;
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::UpperLeft).label_font(text(15));
        legend.background_style(WHITE.mix(0.8)).draw()?;
        root.present()?;
        Ok(())
    }

    /// Returns the range of all points along one axis, and some space around it.
    fn range(&self, along: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
        let all = self.lines.iter().flat_map(|line| &line.1).map(along);
        let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
        least / MARGIN..most * MARGIN
    }
}

fn text<'a>(size: u32) -> TextStyle<'a> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Writes a number without the noise of binary fractions.
fn short(number: f64) -> String {
    const DIGITS: f64 = 1e4;
    ((number * DIGITS).round() / DIGITS).to_string()
}

/// Returns 1, 2 and 5 times the powers of ten that lie within the range.
fn ticks(range: &Range<f64>) -> Vec<f64> {
    let powers = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let ticks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    ticks.filter(|tick| range.contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    #[test]
    fn every_chart_that_has_figures_is_drawn() {
        let heading = "# A report\n\n- machine: a fast one\n- compiler: x\n- commit: abc123\n".to_owned();
        let mut results = Results { heading, ..Results::default() };
        let mut add = |section, timers, engine: &str, what: &str, figure: f64| {
            results.add(section, timers, engine, Outcome::of(what, figure));
        };
        for (engine, cost) in [(OURS, 20.0), ("heap", 90.0), ("heap without a lock", 60.0)] {
            [10_000, 1_000_000]
                .into_iter()
                .for_each(|timers| add(RANDOM, Some(timers), engine, SCHEDULE, cost));
            LATE.iter().for_each(|(share, row)| add(LIVE_FIRE, None, engine, row, 1000.0 * share));
        }
        let dir = std::env::temp_dir().join(format!("shardwheel-charts-{}", std::process::id()));
        assert_eq!(draw_charts(&dir, &results).unwrap(), ["schedule.svg", "late-fire.svg"]);
        let [cost, late] =
            ["schedule.svg", "late-fire.svg"].map(|file| fs::read_to_string(dir.join(file)).unwrap());
        for text in [OURS, "heap without a lock", "10k", "1M", "ns a timer", "a fast one", "abc123"] {
            assert!(cost.contains(text), "{text}");
        }
        assert!(!cost.contains("compiler") && cost.contains("stroke-width=\"4\""));
        assert!(["90", "99.9", "99.999"].iter().all(|tick| late.contains(&format!("\n{tick}\n"))));
        assert_eq!(late.matches("<circle").count(), 3 * LATE.len());
        fs::remove_dir_all(&dir).unwrap();
    }
}
