//! The lines that clients send, and the lines that answer them.

use std::fmt::{self, Write};

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::store::{EndState, Ended, Open, Outcome};

use super::books::Stock;

/// Longest name of an item or a payment, in bytes. The store keeps the length in a byte.
const MAX_NAME: usize = 64;
/// Largest amount, in cents: as in the CSV files.
const MAX_CENTS: u64 = 1_000_000_000_000;

/// Largest number of characters of a value that an answer repeats.
const SHOWN: usize = 100;

/// A line of `POST /orders`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOrder {
    pub(crate) order_id: u64,
    pub(crate) item: String,
    pub(crate) quantity: u32,
    pub(crate) amount_cents: u64,
}

/// A line of `POST /payments`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPayment {
    pub(crate) payment_id: String,
    pub(crate) order_id: u64,
    /// That of the order, for a tool that divides a shop anew.
    #[serde(default)]
    pub(crate) item: Option<String>,
    pub(crate) amount_cents: u64,
}

/// What a field of a line must be.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Number {
        min: u64,
        max: u64,
    },
    Name,
    /// A name that may be left out.
    OptionalName,
}

impl Kind {
    const ID: Self = Self::Number { min: 0, max: u64::MAX };
    const CENTS: Self = Self::Number { min: 0, max: MAX_CENTS };

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Number { min, max } => value.as_u64().is_some_and(|number| (min..=max).contains(&number)),
            Self::Name => value.as_str().is_some_and(is_name),
            Self::OptionalName => value.is_null() || value.as_str().is_some_and(is_name),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Name | Self::OptionalName => {
                write!(f, "a string of 1 to {MAX_NAME} bytes of visible text without spaces")
            }
        }
    }
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(order_reconciliation::is_visible)
}

/// A kind of line.
pub(crate) trait Line: DeserializeOwned {
    const FIELDS: &'static [(&'static str, Kind)];

    /// Whether its fields are within their limits.
    fn fits(&self) -> bool;
}

impl Line for NewOrder {
    const FIELDS: &'static [(&'static str, Kind)] = &[
        ("order_id", Kind::ID),
        ("item", Kind::Name),
        ("quantity", Kind::Number { min: 1, max: u32::MAX as u64 }),
        ("amount_cents", Kind::CENTS),
    ];

    fn fits(&self) -> bool {
        self.quantity > 0 && self.amount_cents <= MAX_CENTS && is_name(&self.item)
    }
}

impl Line for NewPayment {
    const FIELDS: &'static [(&'static str, Kind)] = &[
        ("payment_id", Kind::Name),
        ("order_id", Kind::ID),
        ("amount_cents", Kind::CENTS),
        ("item", Kind::OptionalName),
    ];

    fn fits(&self) -> bool {
        let item = self.item.as_deref().is_none_or(is_name);
        item && self.amount_cents <= MAX_CENTS && is_name(&self.payment_id)
    }
}

/// A line that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The beginning of the answer: the names that the line has, in JSON.
    names: String,
    reason: String,
}

impl Fault {
    /// The fault of a body as a whole.
    pub(crate) fn whole(reason: String) -> Self {
        Self { names: names(&[]), reason }
    }

    /// An order was known, and its record cannot be read.
    pub(crate) fn damaged(order_id: u64, what: &str) -> Self {
        let names = names(&[("order_id".to_owned(), order_id.into())]);
        Self { names, reason: damage(what) }
    }

    /// Whether this payment counts cannot be known, for a record cannot be read.
    pub(crate) fn unpaid(payment: &NewPayment, what: &str) -> Self {
        let NewPayment { payment_id, order_id, .. } = payment;
        let ids = [("payment_id", payment_id.as_str().into()), ("order_id", (*order_id).into())];
        Self { names: names(&ids.map(|(name, id)| (name.to_owned(), id))), reason: damage(what) }
    }
}

fn damage(what: &str) -> String {
    format!("the server's record of this {what} is damaged")
}

/// The lines of a body; blank ones are skipped.
pub(crate) fn parse<T: Line>(body: &[u8]) -> Vec<Result<T, Fault>> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line<T: Line>(line: &[u8]) -> Result<T, Fault> {
    // An array would do as well otherwise, its values in the order of the fields.
    if line.starts_with(b"{")
        && let Ok(parsed) = serde_json::from_slice::<T>(line)
        && parsed.fits()
    {
        return Ok(parsed);
    }
    let Fields(fields) = serde_json::from_slice(line).unwrap_or_default();
    let reason = if fields.is_empty() { not_an_object::<T>(line) } else { reason::<T>(&fields) };
    Err(Fault { names: names(&fields), reason })
}

/// The fields of a line, as they come.
#[derive(Default)]
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

fn not_an_object<T: Line>(line: &[u8]) -> String {
    let names = T::FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    format!("{} is no JSON object with the fields {names}", cut(&String::from_utf8_lossy(line)))
}

/// What is wrong with the fields of a line.
fn reason<T: Line>(fields: &[(String, Value)]) -> String {
    for (name, value) in fields {
        let Some((_, kind)) = T::FIELDS.iter().find(|(known, _)| known == name) else {
            return format!("the field {} is unknown", cut(&quoted(name)));
        };
        if fields.iter().filter(|(other, _)| other == name).count() > 1 {
            return format!("{name} stands twice");
        }
        if !kind.fits(value) {
            return format!("{name} is {}; it must be {kind}", cut(&value.to_string()));
        }
    }
    let missing = T::FIELDS.iter().find(|(name, kind)| {
        !matches!(kind, Kind::OptionalName) && !fields.iter().any(|(other, _)| other == name)
    });
    missing.map_or_else(|| "it cannot be read".to_owned(), |(name, _)| format!("{name} is missing"))
}

fn cut(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}...", &text[..end]))
}

/// The beginning of an answer: the ids of a line, good or bad. One that is long is cut, and a string.
fn names(fields: &[(String, Value)]) -> String {
    let id = |name| {
        let (_, value) = fields.iter().find(|(other, _)| other == name)?;
        let text = value.to_string();
        let short = text.chars().count() <= SHOWN;
        Some(if short { text } else { quoted(&cut(value.as_str().unwrap_or(&text))) })
    };
    let order_id = id("order_id").unwrap_or_else(|| "null".to_owned());
    match id("payment_id") {
        Some(payment_id) => format!("{{\"payment_id\":{payment_id},\"order_id\":{order_id}"),
        None => format!("{{\"order_id\":{order_id}"),
    }
}

/// The answer to one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Order { order_id: u64, answer: OrderAnswer },
    Payment { payment_id: String, order_id: u64, answer: PaymentAnswer },
    Invalid(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderAnswer {
    Placed {
        check_at: u64,
    },
    Duplicate {
        check_at: u64,
    },
    /// Its id was that of another order.
    Conflict,
    SoldOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaymentAnswer {
    Counted,
    Duplicate,
    /// Its id was that of another payment.
    Conflict,
    UnknownOrder,
    Late,
}

impl PaymentAnswer {
    fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::UnknownOrder => "unknown_order",
            Self::Late => "late",
        }
    }
}

impl Answer {
    /// Appends the line, without what a client has sent if it is invalid.
    pub(crate) fn write_short(&self, out: &mut String) {
        match self {
            Self::Invalid(_) => {
                Self::Invalid(Fault::whole("send fewer lines at a time to see why".to_owned())).write(out);
            }
            answer => answer.write(out),
        }
    }

    /// Appends the line.
    pub(crate) fn write(&self, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Order { order_id, answer } => write_order(out, *order_id, *answer),
            Self::Payment { payment_id, order_id, answer } => writeln!(
                out,
                "{{\"payment_id\":{},\"order_id\":{order_id},\"status\":\"{}\"}}",
                quoted(payment_id),
                answer.name()
            ),
            Self::Invalid(Fault { names, reason }) => {
                writeln!(out, "{names},\"status\":\"invalid\",\"error\":{}}}", quoted(reason))
            }
        };
    }
}

fn write_order(out: &mut String, order_id: u64, answer: OrderAnswer) -> std::fmt::Result {
    let (status, check_at) = match answer {
        OrderAnswer::Placed { check_at } => ("placed", Some(check_at)),
        OrderAnswer::Duplicate { check_at } => ("duplicate", Some(check_at)),
        OrderAnswer::Conflict => ("conflict", None),
        OrderAnswer::SoldOut => ("sold_out", None),
    };
    write!(out, "{{\"order_id\":{order_id},\"status\":\"{status}\",\"check_at_ms\":")?;
    match check_at {
        Some(check_at) => writeln!(out, "{check_at}}}"),
        None => writeln!(out, "null}}"),
    }
}

/// A string in JSON.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The line in the place of an outcome whose record is damaged.
pub(crate) fn write_damaged(out: &mut String, seq: u64) {
    let _ = writeln!(out, "{{\"seq\":{seq},\"error\":{}}}", quoted(&damage("outcome")));
}

/// The line of an outcome.
pub(crate) fn write_outcome(out: &mut String, outcome: &Outcome) {
    let &Outcome { seq, order_id, state, decided_at } = outcome;
    let state = state.name();
    let _ = writeln!(
        out,
        "{{\"seq\":{seq},\"order_id\":{order_id},\"state\":\"{state}\",\"decided_at_ms\":{decided_at}}}"
    );
}

/// The answer to `GET /orders/{id}`.
pub(crate) fn order(order: &Open, end: Option<&Ended>) -> String {
    let &Open { order_id, ref item, quantity, amount, paid, placed_at, check_at } = order;
    let state = end.map_or("pending", |end| EndState::name(end.state));
    let decided_at = end.map(|end| end.decided_at);
    let seq = end.map(|end| end.seq);
    let json = serde_json::json!({
        "order_id": order_id, "item": item, "quantity": quantity, "amount_cents": amount,
        "paid_cents": paid, "state": state, "placed_at_ms": placed_at, "check_at_ms": check_at,
        "decided_at_ms": decided_at, "seq": seq,
    });
    format!("{json}\n")
}

/// The answer to `GET /stock/{item}`.
pub(crate) fn stock(item: &str, stock: Stock) -> String {
    let Stock { stock, reserved, sold } = stock;
    let json = serde_json::json!({ "item": item, "stock": stock, "reserved": reserved, "sold": sold });
    format!("{json}\n")
}
