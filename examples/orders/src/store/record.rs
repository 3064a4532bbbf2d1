//! What a store has records of.

use serde::{Deserialize, Serialize};

/// The digest of nothing.
pub(crate) const DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

/// Goes on with an FNV-1a digest.
pub(crate) fn digest(so_far: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(so_far, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A digest of what is ordered: two orders with one id are the same order if it is the same.
#[must_use]
pub fn content(item: &str, quantity: u32, amount: u64) -> u64 {
    let so_far = digest(digest(DIGEST, &quantity.to_le_bytes()), &amount.to_le_bytes());
    digest(so_far, item.as_bytes())
}

/// The place of a pending order among all: by the time of its check in ms, and then by its id.
#[must_use]
pub fn open_key(check_at: u64, order_id: u64) -> u128 {
    u128::from(check_at) << u64::BITS | u128::from(order_id)
}

/// What is kept of an order, to recognise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// When it is or was due to be checked, in ms.
    pub check_at: u64,
    /// What is ordered: [`content`].
    pub content: u64,
}

/// An order that is pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Names the order.
    pub order_id: u64,
    /// The item that is ordered.
    pub item: String,
    /// In units.
    pub quantity: u32,
    /// The price of the whole order, in cents.
    pub amount: u64,
    /// The sum of the counted payments, in cents.
    pub paid: u64,
    /// When it was placed, in ms.
    pub placed_at: u64,
    /// When it is checked, in ms.
    pub check_at: u64,
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// One payment covered the whole order before its check.
    PaidEarly,
    /// The check found that the payments add up.
    Confirmed,
    /// The check found that they do not, and took the stock back.
    Released,
}

/// An order that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The order, with what was paid.
    pub order: Open,
    /// How it ended.
    pub state: EndState,
    /// When it ended, in ms.
    pub decided_at: u64,
    /// The number of its outcome.
    pub seq: u64,
}

/// The line of an order that has ended, in the order of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Counts from 1, without gaps.
    pub seq: u64,
    /// Names the order.
    pub order_id: u64,
    /// How it ended.
    pub state: EndState,
    /// When it ended, in ms.
    pub decided_at: u64,
}

/// A payment that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// Names the payment.
    pub payment_id: String,
    /// The order it is for.
    pub order_id: u64,
    /// In cents.
    pub amount: u64,
}

impl EndState {
    /// The state's name, as clients see it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PaidEarly => "paid_early",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
        }
    }
}

impl Open {
    /// What is kept of it to recognise it.
    #[must_use]
    pub fn known(&self) -> Known {
        Known { check_at: self.check_at, content: content(&self.item, self.quantity, self.amount) }
    }

    /// Its place among all pending orders: [`open_key`].
    #[must_use]
    pub fn key(&self) -> u128 {
        open_key(self.check_at, self.order_id)
    }
}

impl Ended {
    /// The line of this order.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let Self { seq, state, decided_at, .. } = *self;
        Outcome { seq, order_id: self.order.order_id, state, decided_at }
    }
}

impl Payment {
    /// A digest of what is paid: two payments with one id are the same payment if it is the same.
    #[must_use]
    pub fn content(&self) -> u64 {
        paid(self.order_id, self.amount)
    }
}

pub(crate) fn paid(order_id: u64, amount: u64) -> u64 {
    digest(digest(DIGEST, &order_id.to_le_bytes()), &amount.to_le_bytes())
}
