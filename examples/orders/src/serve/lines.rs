//! The lines that clients send, and the lines that answer them.

use std::fmt::Write;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::store::{EndState, Ended, Open, Outcome};

use super::books::Stock;

/// Longest name of an item or a payment, in bytes. The store keeps the length in a byte.
const MAX_NAME: usize = 64;
/// Largest amount, in cents: as in the CSV files.
const MAX_CENTS: u64 = 1_000_000_000_000;

/// A line of `POST /orders`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct NewOrder {
    pub(crate) order_id: u64,
    pub(crate) item: String,
    pub(crate) quantity: u32,
    pub(crate) amount_cents: u64,
}

/// A line of `POST /payments`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct NewPayment {
    pub(crate) payment_id: String,
    pub(crate) order_id: u64,
    pub(crate) amount_cents: u64,
}

/// A kind of line.
pub(crate) trait Line: DeserializeOwned {
    /// What is wrong with it, beyond its form.
    fn fault(&self) -> Option<String>;
}

impl Line for NewOrder {
    fn fault(&self) -> Option<String> {
        let quantity = (self.quantity == 0).then(|| "quantity is 0; it must be at least 1".to_owned());
        name_fault("item", &self.item).or(quantity).or_else(|| amount_fault(self.amount_cents))
    }
}

impl Line for NewPayment {
    fn fault(&self) -> Option<String> {
        name_fault("payment_id", &self.payment_id).or_else(|| amount_fault(self.amount_cents))
    }
}

fn name_fault(field: &str, name: &str) -> Option<String> {
    let visible = |c: char| !c.is_whitespace() && !c.is_control();
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(visible) {
        return None;
    }
    let shown = name.chars().take(MAX_NAME).collect::<String>();
    Some(format!("{field} is {shown:?}; it must be 1 to {MAX_NAME} bytes of visible text without spaces"))
}

fn amount_fault(cents: u64) -> Option<String> {
    (cents > MAX_CENTS).then(|| format!("amount_cents is {cents}; it must be at most {MAX_CENTS}"))
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
        Self { names: names(b""), reason }
    }
}

/// What can be read of a line that is wrong elsewhere.
#[derive(Deserialize)]
struct Names {
    payment_id: Option<Value>,
    order_id: Option<Value>,
}

/// The lines of a body; blank ones are skipped.
pub(crate) fn parse<T: Line>(body: &[u8]) -> Vec<Result<T, Fault>> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line<T: Line>(line: &[u8]) -> Result<T, Fault> {
    let parsed = serde_json::from_slice::<T>(line).map_err(|error| error.to_string());
    let checked = parsed.and_then(|parsed| parsed.fault().map_or(Ok(parsed), Err));
    checked.map_err(|reason| Fault { names: names(line), reason })
}

/// The names in a line, as far as they are short and of the right kind.
fn names(line: &[u8]) -> String {
    let names = serde_json::from_slice(line).unwrap_or(Names { payment_id: None, order_id: None });
    let order_id = names.order_id.filter(Value::is_u64).unwrap_or(Value::Null);
    let short = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_NAME);
    match names.payment_id.filter(short) {
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
    Placed { check_at: u64 },
    Duplicate { check_at: u64 },
    SoldOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaymentAnswer {
    Counted,
    Duplicate,
    UnknownOrder,
    Late,
}

impl PaymentAnswer {
    fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Duplicate => "duplicate",
            Self::UnknownOrder => "unknown_order",
            Self::Late => "late",
        }
    }
}

impl Answer {
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
