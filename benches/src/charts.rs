//! Charts of what `peers` and `live` measured, and the tables of the README pages.
//!
//! A chart has a line for each engine over two logarithmic axes; `shardwheel` is red and thick. It
//! names the machine and the date of its figures, and goes with light and dark pages.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::element::{Circle, PathElement};
use plotters::prelude::{
    Color, DrawingArea, IntoDrawingArea, IntoFont, RGBColor, SVGBackend, Text, TextStyle, WHITE,
};
use plotters::series::LineSeries;
use plotters::style::{ShapeStyle, TRANSPARENT};

use crate::args::label;
use crate::names::{BOTH, LATE, LIVE_FIRE, OURS, RANDOM, late};
use crate::results::{Results, names};
use crate::summary;

const SIZE: (u32, u32) = (1100, 640);
/// The width of the axes and the lines. The names of the engines are to the right of them.
const AXES: u32 = 840;
/// The height of a name in the legend.
const NAME: i32 = 24;
const INK: RGBColor = RGBColor(0x20, 0x20, 0x20);

const MARGIN: f64 = 1.25;

/// The colour of `shardwheel`, then those of the others, in the order of their first figures. Each is
/// readable on white and on black.
const COLOURS: [u32; 10] =
    [0xd61c1c, 0x1f87c4, 0xf08000, 0x2c9a3c, 0x9467d6, 0xa9714f, 0xe060b8, 0x12a5b4, 0x959810, 0x808080];

type Paper<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart: its axes, the ticks of the horizontal one, and the points of each engine.
struct Chart {
    name: &'static str,
    title: String,
    x: &'static str,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
    y: &'static str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// On a dark page the chart is dark, too: the colours of the text, the axes and the background change.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } \
    rect[fill='#FFFFFF'] { fill: #0d1117 } [stroke='#000000'] { stroke: #e6edf3 } }</style>";

/// Draws the charts of all figures beside the first file; renews the tables of Markdown files.
pub(crate) fn renew(files: &[PathBuf], pages: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let mut all = Results::default();
    for file in files {
        let read = Results::parse(&fs::read_to_string(file)?);
        let mut results = read.map_err(|error| format!("{}: {error}", file.display()))?;
        all.heading.push_str(&results.heading);
        all.figures.append(&mut results.figures);
    }
    let dir = files.first().and_then(|file| file.parent()).unwrap_or(Path::new(""));
    draw_charts(dir, &all)?.iter().for_each(|file| println!("drawn: {file}"));
    for page in pages {
        fs::write(page, summary::renewed(&fs::read_to_string(page)?, &all)?)?;
        println!("renewed: {}", page.display());
    }
    Ok(())
}

/// Draws every chart that `results` has figures for into `dir`; returns the names of the files.
fn draw_charts(dir: &Path, results: &Results) -> Result<Vec<String>, Box<dyn Error>> {
    let charts = [cost(results), lateness(results)].into_iter().filter(|chart| !chart.lines.is_empty());
    let draw = |chart: Chart| {
        let file = format!("{}.svg", chart.name);
        let drawn = chart.draw(&summary::origin(results))?;
        fs::write(dir.join(&file), drawn.replacen('>', &format!(">\n{DARK}"), 1))?;
        Ok(file)
    };
    charts.map(draw).collect()
}

/// The cost of a timer, against the number of timers.
fn cost(results: &Results) -> Chart {
    let ticks = results.sizes(RANDOM).into_iter().map(|size| size as f64).collect::<Vec<_>>();
    let at =
        |engine: &str, size: f64| Some((size, results.get((RANDOM, size as usize), BOTH, engine)?.median()));
    Chart {
        name: "schedule-and-fire",
        title: format!("Cost to {BOTH} a timer, deadlines at random over 30 minutes"),
        x: "timers",
        label: |size| label(size as usize),
        y: "ns a timer (median of the rounds)",
        lines: lines(results, |engine| ticks.iter().filter_map(|&size| at(engine, size)).collect()),
        ticks,
    }
}

/// How late timers fire, against the share of timers that are later still.
fn lateness(results: &Results) -> Chart {
    let most = results.sizes(LIVE_FIRE).pop().unwrap_or_default();
    let at = |engine: &str, share: f64| {
        Some((1.0 / (1.0 - share), results.get((LIVE_FIRE, most), &late(share), engine)?.median()))
    };
    Chart {
        name: "late-fire",
        title: "How late timers fire in real time, ticks of 1 ms".to_owned(),
        x: "share of the timers, %",
        ticks: [0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999].map(|share| 1.0 / (1.0 - share)).into(),
        label: |x| short((1.0 - 1.0 / x) * 100.0),
        y: "microseconds after the deadline (median of the rounds)",
        lines: lines(results, |engine| LATE.into_iter().filter_map(|share| at(engine, share)).collect()),
    }
}

/// Returns the points of each engine that has any. A logarithmic axis has no zero.
fn lines(results: &Results, points: impl Fn(&str) -> Vec<(f64, f64)>) -> Vec<(String, Vec<(f64, f64)>)> {
    let engines = names(results.figures.iter().map(|series| &series.engine));
    let points = |engine: String| {
        let points = points(&engine).into_iter().filter(|at| at.1 > 0.0).collect::<Vec<_>>();
        (!points.is_empty()).then_some((engine, points))
    };
    engines.into_iter().filter_map(points).collect()
}

impl Chart {
    fn draw(&self, source: &str) -> Result<String, Box<dyn Error>> {
        let mut drawn = String::new();
        let below = self.paper(&mut drawn, source)?;
        let (axes, legend) = below.split_horizontally(AXES);
        let mut builder = ChartBuilder::on(&axes);
        let builder = builder.margin(8).x_label_area_size(52).y_label_area_size(84);
        let across = self.range(|point| point.0).log_scale().with_key_points(self.ticks.clone());
        let up = self.range(|point| point.1);
        let mut chart =
            builder.build_cartesian_2d(across, up.clone().log_scale().with_key_points(round(&up)))?;
        let (x_label, y_label) = (|at: &f64| (self.label)(*at), |at: &f64| short(*at));
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc(self.x).y_desc(self.y).y_labels(20);
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        mesh.label_style(text(16)).axis_desc_style(text(17)).draw()?;
        // The first line is drawn last, on top of the others.
        for (nth, (engine, points)) in self.lines.iter().enumerate().rev() {
            let (shape, points) = (shape(nth, engine), points.iter().copied());
            chart.draw_series(LineSeries::new(points.clone(), shape))?;
            let dot = |point| Circle::new(point, shape.stroke_width + 1, shape.filled());
            chart.draw_series(points.map(dot))?;
        }
        self.name_lines(&legend)?;
        below.present()?;
        drop((chart, axes, legend, below));
        Ok(drawn)
    }

    /// Names the lines, in the order of their last figures.
    fn name_lines(&self, legend: &Paper<'_>) -> Result<(), Box<dyn Error>> {
        let last = |line: usize| self.lines[line].1.last().map_or(0.0, |point| point.1);
        let mut order = (0..self.lines.len()).collect::<Vec<_>>();
        order.sort_by(|&one, &other| last(other).total_cmp(&last(one)));
        for (y, nth) in (1..).map(|place| place * NAME).zip(order) {
            let engine = &self.lines[nth].0;
            legend.draw(&PathElement::new([(0, y), (20, y)], shape(nth, engine)))?;
            legend.draw(&Text::new(engine.clone(), (26, y - 6), text(15)))?;
        }
        Ok(())
    }

    /// Draws the heading; returns the area below it.
    fn paper<'a>(&self, drawn: &'a mut String, source: &str) -> Result<Paper<'a>, Box<dyn Error>> {
        let root = SVGBackend::with_string(drawn, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, below) = root.split_vertically(64);
        head.draw(&Text::new(self.title.clone(), (16, 10), text(24)))?;
        head.draw(&Text::new(source.to_owned(), (16, 42), text(15)))?;
        Ok(below)
    }

    /// Returns the range of all points along one axis, and some space around it.
    fn range(&self, along: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
        let all = self.lines.iter().flat_map(|line| &line.1).map(along);
        let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
        least / MARGIN..most * MARGIN
    }
}

/// The line of an engine.
fn shape(nth: usize, engine: &str) -> ShapeStyle {
    let [_, red, green, blue] = COLOURS[nth % COLOURS.len()].to_be_bytes();
    RGBColor(red, green, blue).stroke_width(if engine == OURS { 4 } else { 2 })
}

/// The round numbers of a logarithmic axis: 1, 2, 5, 10, 20, 50 and so on.
fn round(range: &Range<f64>) -> Vec<f64> {
    let decades = (-3..9).map(|power| 10_f64.powi(power));
    let all = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
    all.filter(|number| range.contains(number)).collect()
}

fn text<'a>(size: u32) -> TextStyle<'a> {
    ("sans-serif", size).into_font().color(&INK)
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
        for (engine, cost) in [(OURS, 20.0), ("heap", 90.0)] {
            results.add((RANDOM, 10_000), engine, Outcome::of(BOTH, cost));
            results.add((RANDOM, 1_000_000), engine, Outcome::of(BOTH, 2.0 * cost));
            LATE.map(late)
                .iter()
                .for_each(|what| results.add((LIVE_FIRE, 1), engine, Outcome::of(what, cost)));
        }
        let dir = std::env::temp_dir().join(format!("shardwheel-charts-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let figures = dir.join("figures.tsv");
        fs::write(&figures, results.write()).unwrap();
        renew(&[figures], &[]).unwrap();
        let [cost, late] = ["schedule-and-fire.svg", "late-fire.svg"]
            .map(|file| fs::read_to_string(dir.join(file)).unwrap());
        for text in
            [OURS, "heap", "10k", "1M", "ns a timer", "a fast one", "2026-01-02", "stroke-width=\"4\""]
        {
            assert!(cost.contains(text), "{text}");
        }
        assert!(["90", "99.9", "99.999"].iter().all(|tick| late.contains(&format!("\n{tick}\n"))));
        assert_eq!(late.matches("<circle").count(), 2 * LATE.len());
        fs::remove_dir_all(&dir).unwrap();
    }
}
