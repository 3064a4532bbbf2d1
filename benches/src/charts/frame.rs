//! What every chart has: its size, its title, where its figures are from, and a legend.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, IntoDrawingArea, IntoFont, RGBColor, SVGBackend, Text, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A part of the picture.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (1100, 640);
const HEAD: u32 = 64;
const LEGEND: u32 = 270;
const INK: RGBColor = RGBColor(0x20, 0x20, 0x20);
const PALE_INK: RGBColor = RGBColor(0x60, 0x60, 0x60);

/// Text of this size.
pub(super) fn text<'a>(size: u32) -> TextStyle<'a> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Text that stands right of a point, at its height.
pub(super) fn beside<'a>(size: u32) -> TextStyle<'a> {
    text(size).pos(Pos::new(HPos::Left, VPos::Center))
}

/// Text that stands left of a point, at its height.
pub(super) fn before<'a>(size: u32) -> TextStyle<'a> {
    text(size).pos(Pos::new(HPos::Right, VPos::Center))
}

/// Without the noise of binary fractions.
pub(super) fn short(number: f64) -> String {
    const DIGITS: f64 = 1e3;
    ((number * DIGITS).round() / DIGITS).to_string()
}

/// A chart's file with its title and its source; `draw` gets what is below these, and the area of the legend.
pub(super) fn draw(
    path: &Path,
    title: &str,
    source: &str,
    draw: impl FnOnce(&Area<'_>, &Area<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, below) = root.split_vertically(HEAD);
    head.draw(&Text::new(title.to_owned(), (16, 10), text(24)))?;
    let pale = ("sans-serif", 15).into_font().color(&PALE_INK.to_rgba());
    head.draw(&Text::new(source.to_owned(), (16, 42), pale))?;
    let (chart, legend) = below.split_horizontally(SIZE.0 - LEGEND);
    draw(&chart.margin(4, 8, 12, 8), &legend)?;
    root.present()?;
    Ok(())
}
