//! The rules that decide an order. The replay and the servers of `orders` share them; they know no
//! clock, no timer and no store.
//!
//! - An order is accepted if its item has enough units that are neither reserved nor sold.
//! - One payment that covers the whole order ends it at once (*paid early*).
//! - Partial payments are only added up. The check *confirms* the order if the sum is its amount to
//!   the cent, and *releases* it otherwise.
//! - A payment that comes after the check was due does not count.
//!
//! What happens at one instant happens in this order: orders, payments, checks. Orders of one instant
//! are decided as they come in, and so are payments. So a payment at the instant of its order's check
//! counts ([`Terms::is_checked_before`]), and units that a check takes back are on sale from the next
//! instant on. An instant is a millisecond: a server rounds the time of what comes in up.
//!
//! Times are in a unit of the caller's choice.

/// The stock of one item, in units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Item {
    /// In stock at the beginning.
    pub stock: u64,
    /// Held for orders that wait for their check, or taken back and not yet on sale.
    pub reserved: u64,
    /// Sold.
    pub sold: u64,
    /// The highest sum of `reserved` and `sold` so far.
    pub peak: u64,
}

impl Item {
    /// Holds units for an order; false if too few are left.
    pub fn reserve(&mut self, quantity: u32) -> bool {
        let taken = self.reserved + self.sold + u64::from(quantity);
        if taken > self.stock {
            return false;
        }
        self.reserved += u64::from(quantity);
        self.peak = self.peak.max(taken);
        true
    }

    /// Sells units that are held.
    pub fn sell(&mut self, quantity: u32) {
        self.reserved -= u64::from(quantity);
        self.sold += u64::from(quantity);
    }

    /// Puts units that are held on sale again.
    pub fn take_back(&mut self, quantity: u32) {
        self.reserved -= u64::from(quantity);
    }
}

/// What was ordered, what is due when, and what has been paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// In units.
    pub quantity: u32,
    /// In cents.
    pub amount: u64,
    /// When the check is due.
    pub due: u64,
    /// The sum of the counted payments, in cents.
    pub paid: u64,
}

/// What a payment does to an order that is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payment {
    /// It covers the whole order: the order ends, and its check is cancelled.
    InFull,
    /// It is part of the sum that the check compares.
    Counted,
    /// It comes after the check was due and does not count.
    Late,
}

/// What a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The payments add up to the amount.
    Confirmed,
    /// They do not.
    Released,
}

impl Terms {
    /// The terms of an order for which nothing has been paid.
    #[must_use]
    pub fn new(quantity: u32, amount: u64, due: u64) -> Self {
        Self { quantity, amount, due, paid: 0 }
    }

    /// Whether the check comes before what comes in at `now`.
    #[must_use]
    pub fn is_checked_before(&self, now: u64) -> bool {
        self.due < now
    }

    /// Enters a payment for an order that is pending.
    pub fn receive(&mut self, cents: u64, paid_at: u64) -> Payment {
        if self.is_checked_before(paid_at) {
            return Payment::Late;
        }
        let in_full = self.paid == 0 && cents == self.amount;
        self.paid = self.paid.saturating_add(cents);
        if in_full { Payment::InFull } else { Payment::Counted }
    }

    /// The check.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.paid == self.amount { Verdict::Confirmed } else { Verdict::Released }
    }
}
