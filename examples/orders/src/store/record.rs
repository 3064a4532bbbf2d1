//! The records, and the bytes that they are stored as.
//!
//! Numbers are little endian in values, and big endian in keys, so that keys sort by number. A
//! value begins with the version of its layout.

use std::str;

use super::StoreError;

/// The layout of values.
const VERSION: u8 = 1;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// When it is or was due to be checked, in ms.
    pub check_at: u64,
    /// What is ordered: [`content`].
    pub content: u64,
}

/// An order that is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    fn code(self) -> u8 {
        self as u8
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::PaidEarly, Self::Confirmed, Self::Released].into_iter().find(|state| state.code() == code)
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

    /// The bytes of the value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.item.len());
        bytes.push(VERSION);
        self.put(&mut bytes);
        bytes
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// The bytes are no pending order.
    pub fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut rest = bytes;
        let order = version(&mut rest).and_then(|()| Self::take(&mut rest));
        order.ok_or(StoreError::Damaged { what: "pending order" })
    }

    /// Appends its bytes, also to a snapshot of a cluster.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        for number in [self.order_id, self.amount, self.paid, self.placed_at, self.check_at] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.quantity.to_le_bytes());
        // A name has at most 64 bytes.
        bytes.push(self.item.len() as u8);
        bytes.extend(self.item.as_bytes());
    }

    /// The counterpart of [`put`](Self::put).
    pub(crate) fn take(rest: &mut &[u8]) -> Option<Self> {
        let [order_id, amount, paid, placed_at, check_at] = numbers(rest)?;
        let quantity = u32::from_le_bytes(array(rest)?);
        let [length] = array(rest)?;
        let item = str::from_utf8(rest.split_off(..usize::from(length))?).ok()?.to_owned();
        Some(Self { order_id, item, quantity, amount, paid, placed_at, check_at })
    }
}

impl Ended {
    /// The line of this order.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let Self { seq, state, decided_at, .. } = *self;
        Outcome { seq, order_id: self.order.order_id, state, decided_at }
    }

    /// The bytes of the value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96 + self.order.item.len());
        bytes.extend([VERSION, self.state.code()]);
        bytes.extend(self.decided_at.to_le_bytes());
        bytes.extend(self.seq.to_le_bytes());
        self.order.put(&mut bytes);
        bytes
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// The bytes are no order that has ended.
    pub fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut rest = bytes;
        let order = version(&mut rest).and_then(|()| Self::take(&mut rest));
        order.ok_or(StoreError::Damaged { what: "order that has ended" })
    }

    fn take(rest: &mut &[u8]) -> Option<Self> {
        let [code] = array(rest)?;
        let state = EndState::from_code(code)?;
        let [decided_at, seq] = numbers(rest)?;
        Some(Self { order: Open::take(rest)?, state, decided_at, seq })
    }
}

impl Outcome {
    /// The bytes of the value; the key is the number.
    #[must_use]
    pub fn encode(&self) -> [u8; 18] {
        let mut bytes = [VERSION; 18];
        bytes[1] = self.state.code();
        bytes[2..10].copy_from_slice(&self.order_id.to_le_bytes());
        bytes[10..].copy_from_slice(&self.decided_at.to_le_bytes());
        bytes
    }

    /// Reads a key and a value.
    ///
    /// # Errors
    ///
    /// The bytes are no outcome.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let mut rest = value;
        let outcome = version(&mut rest).and_then(|()| {
            let seq = u64::from_be_bytes(key.try_into().ok()?);
            let [code] = array(&mut rest)?;
            let [order_id, decided_at] = numbers(&mut rest)?;
            Some(Self { seq, order_id, state: EndState::from_code(code)?, decided_at })
        });
        outcome.ok_or(StoreError::Damaged { what: "outcome" })
    }
}

impl Payment {
    /// The bytes of the value; the key is the name.
    #[must_use]
    pub fn encode(&self) -> [u8; 17] {
        let mut bytes = [VERSION; 17];
        bytes[1..9].copy_from_slice(&self.order_id.to_le_bytes());
        bytes[9..].copy_from_slice(&self.amount.to_le_bytes());
        bytes
    }

    /// A digest of what is paid: two payments with one id are the same payment if it is the same.
    #[must_use]
    pub fn content(&self) -> u64 {
        digest(DIGEST, &self.encode())
    }
}

fn version(rest: &mut &[u8]) -> Option<()> {
    let [version] = array(rest)?;
    (version == VERSION).then_some(())
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    rest.split_off(..N)?.try_into().ok()
}

/// Takes numbers from the beginning of bytes.
pub(crate) fn numbers<const N: usize>(rest: &mut &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_le_bytes(array(rest)?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open {
        let item = "item-7".to_owned();
        Open { order_id: 1, item, quantity: 2, amount: 1999, paid: 5, placed_at: 1 << 40, check_at: u64::MAX }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        assert_eq!(Open::decode(&open().encode()).unwrap(), open());
        for state in [EndState::PaidEarly, EndState::Confirmed, EndState::Released] {
            let ended = Ended { order: open(), state, decided_at: 77, seq: 1 << 50 };
            assert_eq!(Ended::decode(&ended.encode()).unwrap(), ended);
            let outcome = ended.outcome();
            assert_eq!(Outcome::decode(&outcome.seq.to_be_bytes(), &outcome.encode()).unwrap(), outcome);
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_damaged() {
        let bytes = Ended { order: open(), state: EndState::Released, decided_at: 77, seq: 9 }.encode();
        for length in 0..bytes.len() {
            assert!(Ended::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Ended::decode(&[&[9], &bytes[1..]].concat()).is_err(), "another version");
        assert!(Ended::decode(&[&[VERSION, 3], &bytes[2..]].concat()).is_err(), "another state");
    }

    #[test]
    fn keys_sort_by_the_time_of_the_check() {
        let later = Open { check_at: 256, order_id: 0, ..open() };
        let sooner = Open { check_at: 255, order_id: u64::MAX, ..open() };
        assert!(sooner.key() < later.key());
    }
}
