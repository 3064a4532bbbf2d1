//! Lines over two axes of logarithms.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange, LogCoord, WithKeyPoints};
use plotters::element::{Circle, DashedPathElement, PathElement};
use plotters::prelude::{SVGBackend, Text};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::{Color, ShapeStyle, TRANSPARENT};

use super::frame::{self, Area};
use super::palette::Style;

/// Free space around the points, as a factor.
const MARGIN: f64 = 1.25;

/// A dash and the gap after it.
const DASH: (i32, i32) = (9, 5);

/// Between two lines of the legend.
const LEADING: i32 = 30;

type Log = WithKeyPoints<LogCoord<f64>>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Log, Log>>;

/// An axis that says which ticks it has.
pub(super) struct Axis {
    title: &'static str,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Axis {
    pub(super) fn new(title: &'static str, ticks: Vec<f64>, label: fn(f64) -> String) -> Self {
        Self { title, ticks, label }
    }
}

/// An engine's points, from left to right.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) style: Style,
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    fn shape(&self) -> ShapeStyle {
        self.style.colour.stroke_width(self.style.width)
    }

    /// The line and its points.
    fn draw(&self, chart: &mut Chart<'_, '_>) -> Result<(), Box<dyn Error>> {
        let points = self.points.iter().copied();
        if self.style.is_dashed {
            chart.draw_series(DashedLineSeries::new(points.clone(), DASH.0, DASH.1, self.shape()))?;
        } else {
            chart.draw_series(LineSeries::new(points.clone(), self.shape()))?;
        }
        let size = self.style.width + 1;
        chart.draw_series(points.map(|point| Circle::new(point, size, self.style.colour.filled())))?;
        Ok(())
    }

    fn end(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.1)
    }
}

/// The chart.
pub(super) struct Lines<'a> {
    pub(super) title: &'a str,
    pub(super) source: &'a str,
    pub(super) x: Axis,
    /// What the other axis counts.
    pub(super) y: &'a str,
    /// The first is drawn last, on top of the others.
    pub(super) lines: Vec<Line>,
}

impl Lines<'_> {
    pub(super) fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        frame::draw(path, self.title, self.source, |chart, legend| {
            self.plot(chart)?;
            self.legend(legend)
        })
    }

    fn plot(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let (x, y) = (self.range(|point| point.0), self.range(|point| point.1));
        let y_ticks = ticks(&y);
        let mut chart =
            ChartBuilder::on(area).x_label_area_size(52).y_label_area_size(84).build_cartesian_2d(
                x.log_scale().with_key_points(self.x.ticks.clone()),
                y.log_scale().with_key_points(y_ticks),
            )?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(self.x.title)
            .y_desc(self.y)
            .x_label_formatter(&|x| (self.x.label)(*x))
            .y_label_formatter(&|y| frame::short(*y))
            .label_style(frame::text(16))
            .axis_desc_style(frame::text(17))
            .draw()?;
        self.lines.iter().rev().try_for_each(|line| line.draw(&mut chart))
    }

    /// All the points along one axis, and some space around them.
    fn range(&self, along: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
        let all = self.lines.iter().flat_map(|line| &line.points).map(along);
        let (least, greatest) = all
            .fold((f64::MAX, f64::MIN), |(least, greatest), value| (least.min(value), greatest.max(value)));
        least / MARGIN..greatest * MARGIN
    }

    /// The names, in the order in which the lines end, with a piece of each line.
    fn legend(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let mut lines = self.lines.iter().collect::<Vec<_>>();
        lines.sort_by(|a, b| b.end().total_cmp(&a.end()));
        for (line, nth) in lines.into_iter().zip(1..) {
            let height = nth * LEADING;
            let piece = [(0, height), (38, height)];
            if line.style.is_dashed {
                area.draw(&DashedPathElement::new(piece, DASH.0, DASH.1, line.shape()))?;
            } else {
                area.draw(&PathElement::new(piece, line.shape()))?;
            }
            area.draw(&Text::new(line.name.clone(), (46, height), frame::beside(16)))?;
        }
        Ok(())
    }
}

/// 1, 2 and 5 times the powers of ten, as far as they lie within.
fn ticks(range: &Range<f64>) -> Vec<f64> {
    let powers = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let ticks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    ticks.filter(|tick| range.contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_within() {
        let labels = ticks(&(0.4..30.0)).into_iter().map(frame::short).collect::<Vec<_>>();
        assert_eq!(labels, ["0.5", "1", "2", "5", "10", "20"]);
    }
}
