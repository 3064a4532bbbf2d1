//! Which engine is drawn how.

use plotters::style::RGBColor;

use super::read::Measured;
use crate::{Engine, Wheel};

/// For `shardwheel` alone.
const OURS: RGBColor = RGBColor(0xd6, 0x1c, 0x1c);
const THICK: u32 = 4;
const THIN: u32 = 2;

/// For the others, in the order in which they come; they tell each other apart.
const OTHERS: [RGBColor; 9] = [
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

/// What the name of an engine ends with that is for one thread; it has the colour of the one behind a lock.
const NO_LOCK: &str = ", no lock";

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub(super) colour: RGBColor,
    pub(super) width: u32,
    pub(super) is_dashed: bool,
}

/// The engines of a run but for our own, each structure once.
pub(super) struct Palette(Vec<String>);

impl Palette {
    pub(super) fn of(measured: &Measured) -> Self {
        let mut structures = Vec::new();
        for engine in measured.engines() {
            if !is_ours(engine) && !structures.iter().any(|known| known == structure(engine)) {
                structures.push(structure(engine).to_owned());
            }
        }
        Self(structures)
    }

    pub(super) fn style(&self, engine: &str) -> Style {
        if is_ours(engine) {
            return Style { colour: OURS, width: THICK, is_dashed: engine != Wheel::NAME };
        }
        let nth = self.0.iter().position(|known| known == structure(engine)).unwrap_or_default();
        Style { colour: OTHERS[nth % OTHERS.len()], width: THIN, is_dashed: engine.ends_with(NO_LOCK) }
    }
}

/// Whether it is `shardwheel`, or a part of it.
pub(super) fn is_ours(engine: &str) -> bool {
    engine.starts_with(Wheel::NAME)
}

fn structure(engine: &str) -> &str {
    engine.strip_suffix(NO_LOCK).unwrap_or(engine)
}
