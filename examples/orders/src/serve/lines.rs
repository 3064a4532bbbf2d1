//! The lines that clients send, and the lines that answer them.

use std::fmt::Write;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::store::{EndState, Ended, Open, Outcome};

use super::books::Stock;

/// Longest name of an item or a payment, in bytes: as in the CSV files.
const MAX_NAME: usize = 64;
/// Largest amount, in cents: as in the CSV files.
const MAX_CENTS: u64 = 1_000_000_000_000;

/// Largest number of characters of the reason why a line is invalid.
const SHOWN: usize = 100;

/// A line of `POST /orders`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOrder {
    pub(crate) order_id: u64,
    #[serde(deserialize_with = "name")]
    pub(crate) item: String,
    #[serde(deserialize_with = "units")]
    pub(crate) quantity: u32,
    #[serde(deserialize_with = "cents")]
    pub(crate) amount_cents: u64,
}

/// A line of `POST /payments`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPayment {
    #[serde(deserialize_with = "name")]
    pub(crate) payment_id: String,
    pub(crate) order_id: u64,
    /// That of the order, for a tool that divides a shop anew.
    #[serde(default)]
    pub(crate) item: Option<String>,
    #[serde(deserialize_with = "cents")]
    pub(crate) amount_cents: u64,
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(order_reconciliation::is_visible)
}

fn name<'a, D: Deserializer<'a>>(from: D) -> Result<String, D::Error> {
    let wrong =
        || D::Error::custom(format!("a name has 1 to {MAX_NAME} bytes of visible text without spaces"));
    Some(String::deserialize(from)?).filter(|text| is_name(text)).ok_or_else(wrong)
}

fn units<'a, D: Deserializer<'a>>(from: D) -> Result<u32, D::Error> {
    let wrong = || D::Error::custom("a quantity is at least 1");
    Some(u32::deserialize(from)?).filter(|units| *units > 0).ok_or_else(wrong)
}

fn cents<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    let wrong = || D::Error::custom(format!("an amount is at most {MAX_CENTS}"));
    Some(u64::deserialize(from)?).filter(|cents| *cents <= MAX_CENTS).ok_or_else(wrong)
}

/// The lines of a body; blank ones are skipped. A line that is not used is an answer at once.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Vec<Result<T, Answer>> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, Answer> {
    // An array would do as well otherwise, its values in the order of the fields.
    if !line.starts_with(b"{") {
        return Err(Answer::invalid("it is no JSON object"));
    }
    serde_json::from_slice(line).map_err(|error| {
        let fields = serde_json::from_slice::<Map<String, Value>>(line).unwrap_or_default();
        let payment_id = fields.get("payment_id").and_then(Value::as_str).filter(|id| is_name(id));
        Answer {
            payment_id: payment_id.map(str::to_owned),
            order_id: fields.get("order_id").and_then(Value::as_u64),
            ..Answer::invalid(&error.to_string())
        }
    })
}

/// The answer to one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment_id: Option<String>,
    pub(crate) order_id: Option<u64>,
    pub(crate) status: Status,
    /// Of an order that is placed, or was.
    #[serde(rename = "check_at_ms", skip_serializing_if = "Option::is_none")]
    pub(crate) check_at: Option<u64>,
    /// Why a line is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Placed,
    SoldOut,
    Counted,
    UnknownOrder,
    Late,
    Duplicate,
    /// Its id was that of another order or payment.
    Conflict,
    Invalid,
}

impl Answer {
    pub(crate) fn of_order(order_id: u64, status: Status, check_at: Option<u64>) -> Self {
        Self { payment_id: None, order_id: Some(order_id), status, check_at, error: None }
    }

    /// The answer to a line that is not used.
    pub(crate) fn invalid(reason: &str) -> Self {
        let error = Some(reason.chars().take(SHOWN).collect());
        Self { payment_id: None, order_id: None, status: Status::Invalid, check_at: None, error }
    }

    /// Appends the line.
    pub(crate) fn write(&self, out: &mut String) {
        // It has strings and numbers, so it is JSON.
        *out += &serde_json::to_string(self).unwrap_or_default();
        out.push('\n');
    }
}

/// The line of an outcome.
pub(crate) fn write_outcome(out: &mut String, outcome: &Outcome) {
    let &Outcome { seq, order_id, state, decided_at } = outcome;
    let state = state.name();
    // Writing to a string does not fail.
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
