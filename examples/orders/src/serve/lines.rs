//! The lines that clients send, and the lines that answer them.

use std::fmt::Write;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::store::{EndState, Ended, Open, Outcome};

use super::books::Stock;

/// Longest name of an item or a payment, in bytes: as in the CSV files.
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

pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(order_reconciliation::is_visible)
}

/// A kind of line.
pub(crate) trait Line: DeserializeOwned {
    /// Whether its fields are within their limits; the error names the first one that is not.
    fn limits(&self) -> Result<(), String>;
}

impl Line for NewOrder {
    fn limits(&self) -> Result<(), String> {
        if self.quantity == 0 {
            return Err("quantity must be at least 1".to_owned());
        }
        name("item", &self.item)?;
        cents(self.amount_cents)
    }
}

impl Line for NewPayment {
    fn limits(&self) -> Result<(), String> {
        name("payment_id", &self.payment_id)?;
        self.item.iter().try_for_each(|item| name("item", item))?;
        cents(self.amount_cents)
    }
}

fn name(field: &str, text: &str) -> Result<(), String> {
    let wrong = || format!("{field} must have 1 to {MAX_NAME} bytes of visible text without spaces");
    if is_name(text) { Ok(()) } else { Err(wrong()) }
}

fn cents(amount: u64) -> Result<(), String> {
    let wrong = || format!("amount_cents must be at most {MAX_CENTS}");
    if amount <= MAX_CENTS { Ok(()) } else { Err(wrong()) }
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
        Self { names: names(&Map::new()), reason }
    }
}

/// The lines of a body; blank ones are skipped.
pub(crate) fn parse<T: Line>(body: &[u8]) -> Vec<Result<T, Fault>> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line<T: Line>(line: &[u8]) -> Result<T, Fault> {
    // An array would do as well otherwise, its values in the order of the fields.
    let parsed = if line.starts_with(b"{") {
        serde_json::from_slice::<T>(line).map_err(|error| cut(&error.to_string()))
    } else {
        Err("it is no JSON object".to_owned())
    };
    parsed.and_then(|parsed| parsed.limits().map(|()| parsed)).map_err(|reason| {
        let names = names(&serde_json::from_slice(line).unwrap_or_default());
        Fault { names, reason }
    })
}

fn cut(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}...", &text[..end]))
}

/// The beginning of an answer: the ids of a line, good or bad. One that is long is cut, and a string.
fn names(fields: &Map<String, Value>) -> String {
    let id = |name| {
        let value = fields.get(name)?;
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
