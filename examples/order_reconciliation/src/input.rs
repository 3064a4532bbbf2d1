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
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::mem;
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

/// A field of a line; owned if it had doubled quotation marks.
pub(crate) type Field<'a> = Cow<'a, str>;

/// A kind of record: the names of its columns, and the parser of its fields.
pub(crate) trait Record: Sized {
    const COLUMNS: &'static [&'static str];

    /// `fields` are those of the columns, in the order of [`COLUMNS`](Self::COLUMNS).
    fn parse(fields: &[Field<'_>]) -> Result<Self, Reason>;
}

impl Record for Order {
    const COLUMNS: &'static [&'static str] =
        &["order_id", "item", "quantity", "amount_cents", "placed_at_ms"];

    fn parse(fields: &[Field<'_>]) -> Result<Self, Reason> {
        let [id, item, quantity, amount, placed_at] = fields else {
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

    fn parse(fields: &[Field<'_>]) -> Result<Self, Reason> {
        let [id, amount, paid_at] = fields else { return Err(columns::<Self>(fields.len())) };
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

/// An order id or an item name: visible text without white space. A byte order mark at the start of a
/// line is dropped before.
fn name(column: &'static str, value: &str) -> Result<String, Reason> {
    if value.is_empty() || value.len() > MAX_NAME || !value.chars().all(is_visible) {
        return Err(Reason::Name { column, value: shown(value) });
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
            Self::Quotes => {
                f.write_str("a quotation mark stands at one end of a field only, or alone within it")
            }
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
    wrong: Header,
    columns: &'static [&'static str],
}

/// What is wrong with a header.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Header {
    /// The file is empty.
    Absent,
    /// The first line has none of the names.
    NoNames,
    Line(Reason),
    Unknown(String),
    Repeated(&'static str),
    Missing(&'static str),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wrong {
            Header::Absent => f.write_str("the file is empty"),
            Header::NoNames => f.write_str("the first line is no header"),
            Header::Line(reason) => write!(f, "the first line is no header: {reason}"),
            Header::Unknown(name) => write!(f, "the header has the unknown column {name:?}"),
            Header::Repeated(name) => write!(f, "the header has the column {name} twice"),
            Header::Missing(name) => write!(f, "the header lacks the column {name}"),
        }?;
        write!(f, "; it must have the columns {}, in any order", self.columns.join(","))
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
    /// Which field of a line is that of each column; unknown until the header is read.
    order: Option<Vec<usize>>,
    ended: bool,
    records: PhantomData<T>,
}

impl<R: Read, T: Record> Records<R, T> {
    pub(crate) fn new(input: R) -> Self {
        Self { lines: Lines::new(input), order: None, ended: false, records: PhantomData }
    }

    /// Reads one line that is not blank. `Ok(None)` is a correct header.
    fn read(&mut self, number: u64) -> Result<Option<Line<T>>, InputError> {
        let Some(order) = &self.order else {
            let order = self.lines.text().map_err(Header::Line).and_then(header::<T>);
            self.order = Some(order.map_err(header_error::<T>)?);
            return Ok(None);
        };
        let parsed = self.lines.text().and_then(|line| parse(line, order));
        let record = parsed.map_err(|reason| InputError::Bad(BadLine { number, reason }))?;
        Ok(Some(Line { number, record }))
    }

    fn next_line(&mut self) -> Result<Option<Line<T>>, InputError> {
        match self.lines.advance() {
            Ok(Some(number)) => self.read(number),
            Ok(None) => {
                self.ended = true;
                if self.order.is_none() { Err(header_error::<T>(Header::Absent)) } else { Ok(None) }
            }
            Err(error) => Err(InputError::Io(error)),
        }
    }
}

fn header_error<T: Record>(wrong: Header) -> InputError {
    InputError::Header(HeaderError { wrong, columns: T::COLUMNS })
}

/// Returns which field is that of each column.
fn header<T: Record>(line: &str) -> Result<Vec<usize>, Header> {
    let fields = split(line).map_err(Header::Line)?;
    let names = fields.iter().map(|field| field.trim()).collect::<Vec<_>>();
    if !T::COLUMNS.iter().any(|column| names.contains(column)) {
        return Err(Header::NoNames);
    }
    if let Some(unknown) = names.iter().find(|name| !T::COLUMNS.contains(name)) {
        return Err(Header::Unknown(shown(unknown)));
    }
    let place = |&column: &&'static str| {
        let mut places = (0..names.len()).filter(|&place| names[place] == column);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(Header::Repeated(column)),
            (None, _) => Err(Header::Missing(column)),
        }
    };
    T::COLUMNS.iter().map(place).collect()
}

fn parse<T: Record>(line: &str, order: &[usize]) -> Result<T, Reason> {
    let mut fields = split(line)?;
    if fields.len() != order.len() {
        return Err(columns::<T>(fields.len()));
    }
    let fields = order.iter().map(|&place| mem::take(&mut fields[place])).collect::<Vec<_>>();
    T::parse(&fields)
}

impl<R: Read, T: Record> Iterator for Records<R, T> {
    type Item = Result<Line<T>, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let found = self.next_line();
            self.ended |= matches!(found, Err(InputError::Header(_) | InputError::Io(_)));
            if let Some(item) = found.transpose() {
                return Some(item);
            }
        }
        None
    }
}

/// Splits a line at its commas.
fn split(line: &str) -> Result<Vec<Field<'_>>, Reason> {
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, behind) = first_field(text)?;
        fields.push(field);
        rest = behind;
    }
    Ok(fields)
}

/// The first field, and the text after its comma.
fn first_field(text: &str) -> Result<(Field<'_>, Option<&str>), Reason> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, rest) = text.split_once(',').map_or((text, None), |(field, rest)| (field, Some(rest)));
        return if field.contains('"') { Err(Reason::Quotes) } else { Ok((field.into(), rest)) };
    };
    let end = closing_quote(quoted).ok_or(Reason::Quotes)?;
    let (field, behind) = (&quoted[..end], &quoted[end + 1..]);
    let field = if field.contains('"') { field.replace("\"\"", "\"").into() } else { field.into() };
    if behind.is_empty() {
        return Ok((field, None));
    }
    behind.strip_prefix(',').map(|rest| (field, Some(rest))).ok_or(Reason::Quotes)
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

    fn text(&self) -> Result<&str, Reason> {
        if self.cut {
            return Err(Reason::TooLong);
        }
        let line = str::from_utf8(&self.line).map_err(|_| Reason::NotText)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        Ok(line.trim_start_matches(BYTE_ORDER_MARK))
    }
}

// By its path, because the fuzzer includes this file by path as well.
#[cfg(test)]
#[path = "input/tests.rs"]
mod tests;
