//! Reads the two CSV files as streams. One line is in memory at a time, and each line yields a
//! record or the reason why it has none.
//!
//! The lines are split here and not by a CSV library, so that damage stays local: a quotation mark
//! that is never closed, or a line without an end, costs that line and not the rest of the file.
//! Fields are those of RFC 4180, without line breaks: a field may stand in quotation marks, within
//! which two quotation marks are one, and spaces are a part of the field. The header names the columns,
//! in any order.
//!
//! This file uses no other file of the program: a fuzz target also runs it on arbitrary bytes,
//! which must not make it panic.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::mem;
use std::str;

/// Longest line that is read, in bytes; a longer line is bad.
const MAX_LINE: usize = 4096;
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
/// The reason of a field with wrong quotation marks.
const QUOTES: &str = "a quotation mark stands at one end of a field only, or alone within it";

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

/// A field of a line; owned if it had doubled quotation marks.
pub(crate) type Field<'a> = Cow<'a, str>;

/// A kind of record: the names of its columns, and the parser of its fields.
pub(crate) trait Record: Sized {
    const COLUMNS: &'static [&'static str];

    /// `fields` are those of [`COLUMNS`](Self::COLUMNS), one for each. The error is the reason why they
    /// are no record.
    fn parse(fields: &[Field<'_>]) -> Result<Self, String>;
}

impl Record for PlacedOrder {
    const COLUMNS: &'static [&'static str] =
        &["order_id", "item", "quantity", "amount_cents", "placed_at_ms"];

    fn parse(fields: &[Field<'_>]) -> Result<Self, String> {
        Ok(Self {
            order_id: id(&fields[0])?,
            item: name("item", &fields[1])?,
            // The limit fits into `u32`.
            quantity: number("quantity", &fields[2], 1, u64::from(u32::MAX))? as u32,
            amount: number("amount_cents", &fields[3], 0, MAX_CENTS)?,
            placed_at: number("placed_at_ms", &fields[4], 0, MAX_MILLIS)?,
        })
    }
}

impl Record for MadePayment {
    const COLUMNS: &'static [&'static str] = &["order_id", "amount_cents", "paid_at_ms"];

    fn parse(fields: &[Field<'_>]) -> Result<Self, String> {
        Ok(Self {
            order_id: id(&fields[0])?,
            amount: number("amount_cents", &fields[1], 0, MAX_CENTS)?,
            paid_at: number("paid_at_ms", &fields[2], 0, MAX_MILLIS)?,
        })
    }
}

/// `007` and `7` are two names elsewhere, so an id has no leading zeros.
fn id(value: &str) -> Result<u64, String> {
    if value.starts_with('0') && value != "0" {
        return Err(format!("order_id is {:?}; it must have no leading zeros", shown(value)));
    }
    number("order_id", value, 0, u64::MAX)
}

/// An item name: visible text without white space.
fn name(column: &'static str, value: &str) -> Result<String, String> {
    if value.is_empty() || value.len() > MAX_NAME || !value.chars().all(is_visible) {
        let value = shown(value);
        return Err(format!(
            "{column} is {value:?}; it must be 1 to {MAX_NAME} bytes of visible text without spaces"
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
/// with the reason, to `report`. The header is line 1.
///
/// # Errors
///
/// If reading fails, or the first line is not the header of the records.
pub(crate) fn read<T: Record>(
    input: impl Read,
    mut enter: impl FnMut(T) -> Result<(), String>,
    mut report: impl FnMut(u64, &str),
) -> io::Result<LineCount> {
    let (mut lines, mut count) = (Lines::new(input), LineCount::default());
    let places = match lines.advance()? {
        Some(_) => lines.text().and_then(header::<T>).map_err(header_error::<T>)?,
        None => return Err(header_error::<T>("the file is empty".to_owned())),
    };
    while let Some(number) = lines.advance()? {
        count.read += 1;
        if let Err(reason) = lines.text().and_then(|line| parse(line, &places)).and_then(&mut enter) {
            count.bad += 1;
            report(number, &reason);
        }
    }
    Ok(count)
}

fn header_error<T: Record>(wrong: String) -> io::Error {
    let columns = T::COLUMNS.join(",");
    let text = format!("{wrong}; it must have the columns {columns}, in any order");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Returns which field is that of each column.
fn header<T: Record>(line: &str) -> Result<Vec<usize>, String> {
    let fields = split(line).map_err(|reason| format!("the first line is no header: {reason}"))?;
    let names = fields.iter().map(|field| field.trim()).collect::<Vec<_>>();
    if !T::COLUMNS.iter().any(|column| names.contains(column)) {
        return Err("the first line is no header".to_owned());
    }
    if let Some(unknown) = names.iter().find(|name| !T::COLUMNS.contains(name)) {
        return Err(format!("the header has the unknown column {:?}", shown(unknown)));
    }
    let place = |&column: &&'static str| {
        let mut places = (0..names.len()).filter(|&place| names[place] == column);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(format!("the header has the column {column} twice")),
            (None, _) => Err(format!("the header lacks the column {column}")),
        }
    };
    T::COLUMNS.iter().map(place).collect()
}

fn parse<T: Record>(line: &str, places: &[usize]) -> Result<T, String> {
    let mut fields = split(line)?;
    if fields.len() != places.len() {
        return Err(format!("its number of columns is {}, not {}", fields.len(), places.len()));
    }
    let fields = places.iter().map(|&place| mem::take(&mut fields[place])).collect::<Vec<_>>();
    T::parse(&fields)
}

/// Splits a line at its commas.
fn split(line: &str) -> Result<Vec<Field<'_>>, String> {
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, behind) = first_field(text)?;
        fields.push(field);
        rest = behind;
    }
    Ok(fields)
}

/// The first field, and the text after its comma.
fn first_field(text: &str) -> Result<(Field<'_>, Option<&str>), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, rest) = text.split_once(',').map_or((text, None), |(field, rest)| (field, Some(rest)));
        return if field.contains('"') { Err(QUOTES.to_owned()) } else { Ok((field.into(), rest)) };
    };
    let end = closing_quote(quoted).ok_or(QUOTES)?;
    let (field, behind) = (&quoted[..end], &quoted[end + 1..]);
    let field = if field.contains('"') { field.replace("\"\"", "\"").into() } else { field.into() };
    if behind.is_empty() {
        return Ok((field, None));
    }
    behind.strip_prefix(',').map(|rest| (field, Some(rest))).ok_or_else(|| QUOTES.to_owned())
}

/// Where the first quotation mark is that is not doubled.
fn closing_quote(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The lines of a file, one at a time; no more than [`MAX_LINE`] bytes of a line are kept.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    /// Whether `line` is the beginning of a longer line.
    cut: bool,
}

impl<R: Read> Lines<R> {
    fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), number: 0, cut: false }
    }

    /// Reads up to the next line that is not blank, and returns its number. A line that is too long
    /// counts as not blank.
    fn advance(&mut self) -> io::Result<Option<u64>> {
        while self.fill()? {
            self.number += 1;
            if self.cut || !self.line.trim_ascii().is_empty() {
                return Ok(Some(self.number));
            }
        }
        Ok(None)
    }

    /// Reads the next line up to the limit, and skips the rest of it. Returns false at the end of
    /// the file.
    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        let looked_at = MAX_LINE as u64 + 1;
        (&mut self.input).take(looked_at).read_until(b'\n', &mut self.line)?;
        self.cut = self.line.len() > MAX_LINE && !self.line.ends_with(b"\n");
        if self.cut {
            self.input.skip_until(b'\n')?;
        }
        Ok(!self.line.is_empty())
    }

    fn text(&self) -> Result<&str, String> {
        if self.cut {
            return Err(format!("it is longer than {MAX_LINE} bytes"));
        }
        let line = str::from_utf8(&self.line).map_err(|_| "it is not UTF-8 text")?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        Ok(line.trim_start_matches(BYTE_ORDER_MARK))
    }
}

// By its path, because the fuzzer includes this file by path as well.
#[cfg(test)]
#[path = "input/tests.rs"]
mod tests;
