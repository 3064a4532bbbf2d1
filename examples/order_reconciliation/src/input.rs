//! Reads the two CSV files as streams. One line is in memory at a time, and each line yields a
//! record or the reason why it has none.
//!
//! The lines are split here and not by a CSV library, so that damage stays local: a quotation mark
//! that is never closed costs its line and not the rest of the file. A field may stand in quotation
//! marks; no field has a quotation mark, a comma or a line break in it. Spaces are a part of the field.
//!
//! Arbitrary bytes must not make it panic.

use std::io::{self, BufRead, BufReader, Read};
use std::str;

/// Longest item name, in bytes.
const MAX_NAME: usize = 64;
/// Largest amount, in cents: ten thousand million whole units of money.
const MAX_CENTS: u64 = 1_000_000_000_000;
/// Latest time, in milliseconds: past the year 30,000, so that microseconds given by mistake are
/// rejected.
const MAX_MILLIS: u64 = 1_000_000_000_000_000;
/// Number of characters of a wrong value that are shown.
const SHOWN: usize = 40;
/// Some programs write it at the start of a text file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An order, as it was placed. Times are in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// Names the order.
    pub order_id: u64,
    /// The item that is ordered.
    pub item: String,
    /// In units.
    pub quantity: u32,
    /// In cents.
    pub amount: u64,
    /// When it was placed.
    pub placed_at: u64,
}

/// A payment, as it came in. Times are in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadePayment {
    /// The order it is for.
    pub order_id: u64,
    /// In cents.
    pub amount: u64,
    /// When it came in.
    pub paid_at: u64,
}

/// A kind of record: the header of its files, and its fields in a line.
pub(crate) trait Record: Sized {
    const HEADER: &'static str;

    /// `fields` has one field for each column. The error is the reason why they are no record.
    fn parse(fields: &[&str]) -> Result<Self, String>;

    fn row(&self) -> String;
}

impl Record for PlacedOrder {
    const HEADER: &'static str = "order_id,item,quantity,amount_cents,placed_at_ms";

    fn parse(fields: &[&str]) -> Result<Self, String> {
        Ok(Self {
            order_id: number("order_id", fields[0], 0, u64::MAX)?,
            item: name(fields[1])?,
            // The limit fits into `u32`.
            quantity: number("quantity", fields[2], 1, u64::from(u32::MAX))? as u32,
            amount: number("amount_cents", fields[3], 0, MAX_CENTS)?,
            placed_at: number("placed_at_ms", fields[4], 0, MAX_MILLIS)?,
        })
    }

    fn row(&self) -> String {
        let Self { order_id, item, quantity, amount, placed_at } = self;
        format!("{order_id},{item},{quantity},{amount},{placed_at}")
    }
}

impl Record for MadePayment {
    const HEADER: &'static str = "order_id,amount_cents,paid_at_ms";

    fn parse(fields: &[&str]) -> Result<Self, String> {
        Ok(Self {
            order_id: number("order_id", fields[0], 0, u64::MAX)?,
            amount: number("amount_cents", fields[1], 0, MAX_CENTS)?,
            paid_at: number("paid_at_ms", fields[2], 0, MAX_MILLIS)?,
        })
    }

    fn row(&self) -> String {
        let Self { order_id, amount, paid_at } = self;
        format!("{order_id},{amount},{paid_at}")
    }
}

/// An item name: visible text without white space.
fn name(value: &str) -> Result<String, String> {
    if value.is_empty() || value.len() > MAX_NAME || !value.chars().all(is_visible) {
        let value = shown(value);
        return Err(format!(
            "item is {value:?}; it must be 1 to {MAX_NAME} bytes of visible text without spaces"
        ));
    }
    Ok(value.to_owned())
}

/// Whether a name may have a character. Two names that look the same are one item to a reader, so
/// Unicode's *default ignorable* characters, such as the zero-width space, are refused.
#[must_use]
pub fn is_visible(c: char) -> bool {
    let ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | BYTE_ORDER_MARK
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    !c.is_whitespace() && !c.is_control() && !ignorable
}

/// A whole number in decimal digits, without a sign.
fn number(column: &'static str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    // `parse` would accept a leading plus.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| digits && (min..=max).contains(number));
    number.ok_or_else(|| {
        format!("{column} is {:?}; it must be a whole number from {min} to {max}", shown(value))
    })
}

fn shown(value: &str) -> String {
    let mut text = value.chars().take(SHOWN).collect::<String>();
    if text.len() < value.len() {
        text.push_str("...");
    }
    text
}

/// How many lines a file has, without the header and blank lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineCount {
    pub(crate) read: u64,
    pub(crate) bad: u64,
}

/// Reads a file. Passes each record to `enter`, which may refuse it; and the number of each bad line,
/// with the reason, to `report`. The header is the first line that is not blank.
///
/// # Errors
///
/// If reading fails, or the first line is not the header of the records.
pub(crate) fn read<T: Record>(
    input: impl Read,
    mut enter: impl FnMut(T) -> Result<(), String>,
    mut report: impl FnMut(u64, &str),
) -> io::Result<LineCount> {
    let lines = BufReader::new(input).split(b'\n').zip(1..);
    let is_blank = |line: &io::Result<Vec<u8>>| line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty());
    let mut lines = lines.filter(|(line, _)| !is_blank(line));
    let header = lines.next().map(|(line, _)| line).transpose()?.unwrap_or_default();
    let columns = T::HEADER.split(',').collect::<Vec<_>>();
    if !fields(&header).is_ok_and(|fields| fields == columns) {
        let wrong = format!("the first line must be {}", T::HEADER);
        return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
    }
    let mut count = LineCount::default();
    for (line, number) in lines {
        let line = line?;
        count.read += 1;
        let record = fields(&line).and_then(|fields| record(&fields, columns.len()));
        if let Err(reason) = record.and_then(&mut enter) {
            count.bad += 1;
            report(number, &reason);
        }
    }
    Ok(count)
}

fn record<T: Record>(fields: &[&str], columns: usize) -> Result<T, String> {
    if fields.len() != columns {
        return Err(format!("its number of columns is {}, not {columns}", fields.len()));
    }
    T::parse(fields)
}

/// Splits a line at its commas. A file may begin with a byte order mark.
fn fields(line: &[u8]) -> Result<Vec<&str>, String> {
    let line = str::from_utf8(line).map_err(|_| "it is not UTF-8 text")?;
    let line = line.strip_suffix('\r').unwrap_or(line).trim_start_matches(BYTE_ORDER_MARK);
    line.split(',').map(unquoted).collect()
}

fn unquoted(field: &str) -> Result<&str, String> {
    let inner = field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field);
    if inner.contains('"') {
        return Err("a quotation mark stands at both ends of a field only".to_owned());
    }
    Ok(inner)
}

#[cfg(test)]
mod tests;
