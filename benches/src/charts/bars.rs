//! Bars that lie, a group for each engine.

use std::error::Error;
use std::path::Path;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{EmptyElement, Rectangle};
use plotters::prelude::{SVGBackend, Text};
use plotters::style::{Color, RGBAColor, RGBColor, TRANSPARENT};

use super::frame::{self, Area};

/// Of a row's height, what the bars take.
const FILLED: f64 = 0.84;

/// Room for the figures right of the longest bar, as a factor.
const ROOM: f64 = 1.18;

/// How strong the colours of peers are.
const PEERS: f64 = 0.6;

/// Between two lines of the legend.
const LEADING: i32 = 34;

/// Between an end of a bar and what is written there.
const GAP: i32 = 6;

const COLOURS: [RGBColor; 3] =
    [RGBColor(0x70, 0x70, 0x70), RGBColor(0x1f, 0x77, 0xb4), RGBColor(0xe0, 0x6c, 0x00)];

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// An engine and its bars, from top to bottom; ratios are over the first.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) is_ours: bool,
    pub(super) values: Vec<Option<f64>>,
}

impl Row {
    fn colour(&self, nth: usize) -> RGBAColor {
        COLOURS[nth % COLOURS.len()].mix(if self.is_ours { 1.0 } else { PEERS })
    }

    /// The figure, and how many times the first it is.
    fn label(&self, nth: usize, value: f64) -> String {
        match self.values[0] {
            Some(first) if nth > 0 => format!("{value:.1}  ({:.2} ×)", value / first),
            _ => format!("{value:.1}"),
        }
    }
}

/// The chart.
pub(super) struct Bars<'a> {
    pub(super) title: &'a str,
    pub(super) source: &'a str,
    pub(super) unit: &'a str,
    pub(super) columns: &'a [&'a str],
    pub(super) rows: Vec<Row>,
}

impl Bars<'_> {
    pub(super) fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        frame::draw(path, self.title, self.source, |chart, legend| {
            self.plot(chart)?;
            self.legend(legend)
        })
    }

    fn plot(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let rows = self.rows.len() as f64;
        let values = self.rows.iter().flat_map(|row| &row.values).flatten();
        let longest = values.copied().fold(0.0, f64::max) * ROOM;
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(52)
            .y_label_area_size(236)
            .build_cartesian_2d(0.0..longest, 0.0..rows)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(TRANSPARENT)
            .x_desc(self.unit)
            .x_label_formatter(&|number| frame::short(*number))
            .label_style(frame::text(16))
            .axis_desc_style(frame::text(17))
            .draw()?;
        self.rows
            .iter()
            .rev()
            .zip(0..)
            .try_for_each(|(row, bottom)| self.row(&mut chart, row, f64::from(bottom)))
    }

    /// An engine's bars, which fill most of the height of 1 that it has.
    fn row(&self, chart: &mut Chart<'_, '_>, row: &Row, bottom: f64) -> Result<(), Box<dyn Error>> {
        let height = FILLED / self.columns.len() as f64;
        let name = Text::new(row.name.clone(), (-GAP, 0), frame::before(16));
        chart.draw_series([EmptyElement::at((0.0, bottom + 0.5)) + name])?;
        for (nth, value) in row.values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let top = bottom + f64::midpoint(1.0, FILLED) - nth as f64 * height;
            let bar = Rectangle::new([(0.0, top), (value, top - height)], row.colour(nth).filled());
            chart.draw_series([bar])?;
            let label = Text::new(row.label(nth, value), (GAP, 0), frame::beside(13));
            chart.draw_series([EmptyElement::at((value, top - height / 2.0)) + label])?;
        }
        Ok(())
    }

    fn legend(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        for (nth, (column, line)) in self.columns.iter().zip(1..).enumerate() {
            let height = line * LEADING;
            let colour = COLOURS[nth % COLOURS.len()].filled();
            area.draw(&Rectangle::new([(0, height - 9), (30, height + 9)], colour))?;
            area.draw(&Text::new((*column).to_owned(), (40, height), frame::beside(16)))?;
        }
        let of_one = "in brackets: times that of 1 thread".to_owned();
        area.draw(&Text::new(of_one, (0, (self.columns.len() as i32 + 1) * LEADING), frame::beside(14)))?;
        Ok(())
    }
}
