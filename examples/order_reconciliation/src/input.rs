//! Reads the two CSV files as streams. One line is in memory at a time, and each line yields a
//! record or the reason why it has none.
//!
//! The lines are split here and not by a CSV library, so that damage stays local: a quotation mark
//! that is never closed, or a line without an end, costs that line and not the rest of the file. A
//! field may be in quotation marks. No field may contain a line break.
//!
//! This file uses no other file of the program: a fuzz target also runs it on arbitrary bytes,
//! which must not make it panic.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::str;

/// Longest line that is read, in bytes; a longer line is bad.
const MAX_LINE: usize = 4096;
/// Longest order id or item name, in bytes.
const MAX_NAME: usize = 64;
/// Largest amount, in cents: ten thousand million whole units of money.
const MAX_CENTS: u64 = 1_000_000_000_000;
/// Latest time, in milliseconds: past the year 30,000, so that microseconds given by mistake are
/// rejected.
const MAX_MILLIS: u64 = 1_000_000_000_000_000;
/// Largest number of fields in a record.
const MAX_FIELDS: usize = 5;
/// Number of characters of a wrong value that are shown.
const SHOWN: usize = 40;
/// Some programs write it at the start of a text file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An order, as it was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) item: String,
    pub(crate) quantity: u32,
    /// In cents.
    pub(crate) amount: u64,
    /// In milliseconds.
    pub(crate) placed_at: u64,
}

/// A payment, as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) order_id: String,
    /// In cents.
    pub(crate) amount: u64,
    /// In milliseconds.
    pub(crate) paid_at: u64,
}

/// A kind of record: the names of its columns, and the parser of its fields.
pub(crate) trait Record: Sized {
    const COLUMNS: &'static [&'static str];

    /// `fields` has as many entries as there are columns.
    fn parse(fields: &[&str]) -> Result<Self, Reason>;
}

impl Record for Order {
    const COLUMNS: &'static [&'static str] =
        &["order_id", "item", "quantity", "amount_cents", "placed_at_ms"];

    fn parse(fields: &[&str]) -> Result<Self, Reason> {
        let &[id, item, quantity, amount, placed_at] = fields else {
            return Err(columns::<Self>(fields.len()));
        };
        Ok(Self {
            id: name("order_id", id)?,
            item: name("item", item)?,
            // The limit fits into `u32`.
            quantity: number("quantity", quantity, 1, u64::from(u32::MAX))? as u32,
            amount: number("amount_cents", amount, 0, MAX_CENTS)?,
            placed_at: number("placed_at_ms", placed_at, 0, MAX_MILLIS)?,
        })
    }
}

impl Record for Payment {
    const COLUMNS: &'static [&'static str] = &["order_id", "amount_cents", "paid_at_ms"];

    fn parse(fields: &[&str]) -> Result<Self, Reason> {
        let &[id, amount, paid_at] = fields else { return Err(columns::<Self>(fields.len())) };
        Ok(Self {
            order_id: name("order_id", id)?,
            amount: number("amount_cents", amount, 0, MAX_CENTS)?,
            paid_at: number("paid_at_ms", paid_at, 0, MAX_MILLIS)?,
        })
    }
}

fn columns<T: Record>(found: usize) -> Reason {
    Reason::Columns { found, expected: T::COLUMNS.len() }
}

/// An order id or an item name: visible text without white space and without a byte order mark. A
/// byte order mark at the start of a line is dropped before.
fn name(column: &'static str, value: &str) -> Result<String, Reason> {
    let visible = |c: char| !c.is_whitespace() && !c.is_control() && c != BYTE_ORDER_MARK;
    if value.is_empty() || value.len() > MAX_NAME || !value.chars().all(visible) {
        return Err(Reason::Name { column, value: shown(value) });
    }
    Ok(value.to_owned())
}

/// A whole number in decimal digits, without a sign.
fn number(column: &'static str, value: &str, min: u64, max: u64) -> Result<u64, Reason> {
    let wrong = || Reason::Number { column, value: shown(value), min, max };
    // `parse` would accept a leading plus.
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    value.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(wrong)
}

fn shown(value: &str) -> String {
    let mut text = value.chars().take(SHOWN).collect::<String>();
    if text.len() < value.len() {
        text.push_str("...");
    }
    text
}

/// A record and its line number; the header is line 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<T> {
    pub(crate) number: u64,
    pub(crate) record: T,
}

/// A line that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    pub(crate) number: u64,
    pub(crate) reason: Reason,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.reason)
    }
}

/// The reason why a line is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    NotText,
    TooLong,
    Quotes,
    NoHeader,
    Columns { found: usize, expected: usize },
    Name { column: &'static str, value: String },
    Number { column: &'static str, value: String, min: u64, max: u64 },
    DuplicateOrder { id: String },
    UnknownOrder { id: String },
    LedgerFull { limit: u32 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("it is not UTF-8 text"),
            Self::TooLong => write!(f, "it is longer than {MAX_LINE} bytes"),
            Self::Quotes => f.write_str("a quotation mark does not stand at both ends of its field"),
            Self::NoHeader => f.write_str("it holds a record where the header is expected"),
            Self::Columns { found, expected } => {
                write!(f, "its number of columns is {found}, not {expected}")
            }
            Self::Name { column, value } => {
                write!(
                    f,
                    "{column} is {value:?}; it must be 1 to {MAX_NAME} bytes of visible text without spaces"
                )
            }
            Self::Number { column, value, min, max } => {
                write!(f, "{column} is {value:?}; it must be a whole number from {min} to {max}")
            }
            Self::DuplicateOrder { id } => write!(f, "order {id:?} was placed on an earlier line"),
            Self::UnknownOrder { id } => write!(f, "there is no order {id:?}"),
            Self::LedgerFull { limit } => write!(f, "a producer keeps at most {limit} orders"),
        }
    }
}

/// The first line of a file is not the header of the expected records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderError {
    found: usize,
    columns: &'static [&'static str],
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, columns } = self;
        let (expected, names) = (columns.len(), columns.join(","));
        write!(f, "the header's number of columns is {found}, not {expected} as in {names}")
    }
}

/// What the reader may yield in place of a record.
#[derive(Debug)]
pub(crate) enum InputError {
    /// One line is bad; the next call continues after it.
    Bad(BadLine),
    /// The file has the wrong header; nothing follows.
    Header(HeaderError),
    /// Reading failed; nothing follows.
    Io(io::Error),
}

/// The records of one file, in file order.
pub(crate) struct Records<R, T> {
    lines: Lines<R>,
    header_seen: bool,
    ended: bool,
    records: PhantomData<T>,
}

impl<R: Read, T: Record> Records<R, T> {
    pub(crate) fn new(input: R) -> Self {
        Self { lines: Lines::new(input), header_seen: false, ended: false, records: PhantomData }
    }

    /// Reads one line that is not blank. `Ok(None)` is a correct header.
    fn read(&mut self, number: u64) -> Result<Option<Line<T>>, InputError> {
        let parsed = self.lines.text().and_then(parse::<T>);
        let bad = |reason| InputError::Bad(BadLine { number, reason });
        if self.header_seen {
            return parsed.map(|record| Some(Line { number, record })).map_err(bad);
        }
        self.header_seen = true;
        match parsed {
            Ok(_) => Err(bad(Reason::NoHeader)),
            Err(Reason::Columns { found, .. }) => Err(header_error::<T>(found)),
            Err(Reason::Name { .. } | Reason::Number { .. }) => Ok(None),
            Err(_) => Err(header_error::<T>(0)),
        }
    }
}

fn header_error<T: Record>(found: usize) -> InputError {
    InputError::Header(HeaderError { found, columns: T::COLUMNS })
}

fn parse<T: Record>(line: &str) -> Result<T, Reason> {
    let mut fields = [""; MAX_FIELDS];
    let found = split(line, &mut fields)?;
    if found != T::COLUMNS.len() {
        return Err(columns::<T>(found));
    }
    T::parse(fields.get(..found).unwrap_or(&[]))
}

impl<R: Read, T: Record> Iterator for Records<R, T> {
    type Item = Result<Line<T>, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let found = match self.lines.advance() {
                Ok(None) => return None,
                Ok(Some(number)) => self.read(number),
                Err(error) => Err(InputError::Io(error)),
            };
            self.ended = matches!(found, Err(InputError::Header(_) | InputError::Io(_)));
            if let Some(item) = found.transpose() {
                return Some(item);
            }
        }
        None
    }
}

/// Splits a line at its commas. Returns the number of fields, including those for which `fields`
/// has no room.
fn split<'a>(line: &'a str, fields: &mut [&'a str]) -> Result<usize, Reason> {
    let mut rest = Some(line);
    let mut found = 0;
    while let Some(text) = rest {
        let (field, behind) = first_field(text.trim_start())?;
        if let Some(place) = fields.get_mut(found) {
            *place = field.trim_end();
        }
        found += 1;
        rest = behind;
    }
    Ok(found)
}

/// The first field, and the text after its comma.
fn first_field(text: &str) -> Result<(&str, Option<&str>), Reason> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, rest) = text.split_once(',').map_or((text, None), |(field, rest)| (field, Some(rest)));
        return if field.contains('"') { Err(Reason::Quotes) } else { Ok((field, rest)) };
    };
    let (field, behind) = quoted.split_once('"').ok_or(Reason::Quotes)?;
    match behind.trim_start() {
        "" => Ok((field, None)),
        behind => behind.strip_prefix(',').map(|rest| (field, Some(rest))).ok_or(Reason::Quotes),
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

    fn text(&self) -> Result<&str, Reason> {
        if self.cut {
            return Err(Reason::TooLong);
        }
        let line = str::from_utf8(self.line.trim_ascii()).map_err(|_| Reason::NotText)?;
        Ok(line.trim_start_matches(BYTE_ORDER_MARK))
    }
}

// By its path, because the fuzzer includes this file by path as well.
#[cfg(test)]
#[path = "input/tests.rs"]
mod tests;
