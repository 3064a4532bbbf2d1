//! A partition: its books, as a pure function of its log.
//!
//! [`Partition::apply`] takes the messages of the log one by one, and writes the lines that answer
//! them. It reads no clock: the time is that of the log, the latest time that the broker gave a
//! message so far. So two owners that read the same log write the same lines, to the byte.
//!
//! Times are in ms, rounded up. A check that is due at T is made by the first message whose time is
//! later than T. All messages that the broker took in until T stand before it. If nothing else
//! comes, the owner adds a *tick* to the log; its wheel says when. A tick that comes too early
//! decides nothing.
//!
//! Orders whose checks are due at one message are checked by time and id, at most [`MAX_LINES`] of
//! them; the rest is left to the next messages. The wheel returns those of one ms in any order, and
//! in another order after it was rebuilt, so a sorted set holds them.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::serve::books::{Books, Shop};
use crate::serve::lines::{self, Answer, NewOrder, NewPayment, Status};
use crate::store::{Recovered, Store, StoreError};

use super::memory::Memory;
use super::names::{DIGEST, Kind, digest, partition_of};
use super::reader::Input;

/// The greatest number of checks that one message makes, and of lines in a message. If a message has
/// more lines, none of them is used.
///
/// With the longest names, the answers to one message and to its checks are shorter than
/// `2 * MAX_LINES * 250` bytes; but for what they say of lines that are invalid ([`MAX_ANSWERS`]).
pub(crate) const MAX_LINES: usize = 1_024;
/// If the answers to one message are longer, in bytes, they do not say what is wrong with invalid lines.
const MAX_ANSWERS: usize = MAX_LINES * 250;

/// How far a partition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The last message of the log that was applied.
    pub(crate) input: u64,
    /// The time of the log, in ns since 1970.
    pub(crate) time: u64,
    /// A digest of all lines so far.
    pub(crate) digest: u64,
}

impl Position {
    pub(crate) const START: Self = Self { input: 0, time: 0, digest: DIGEST };

    /// The time of the log, in ms.
    pub(crate) fn millis(&self) -> u64 {
        self.time.div_ceil(NANOS)
    }
}

pub(crate) struct Partition {
    pub(crate) books: Books,
    pub(crate) memory: Memory,
    pub(crate) position: Position,
    /// Which partition it is, of how many. Orders of other partitions' items are invalid.
    pub(crate) home: (u32, u32),
    /// Orders whose checks are due, by time and id, not checked yet.
    due: BTreeSet<(u64, u64)>,
}

impl Partition {
    /// A partition as a snapshot left it.
    pub(crate) fn restore(shop: Shop, memory: Memory, position: Position) -> Result<Self, StoreError> {
        let books = Books::recover(shop, &memory, 0)?;
        Ok(Self { books, memory, position, home: (0, 1), due: BTreeSet::new() })
    }

    /// An empty partition.
    pub(crate) fn new(shop: Shop, remember: u64) -> Result<Self, StoreError> {
        let memory = Memory::new(Recovered::default(), remember, shop.check_after);
        Self::restore(shop, memory, Position::START)
    }

    /// Applies the next message, and appends the lines that answer it; returns how many lines it had. A tick
    /// only moves the time.
    pub(crate) fn apply(&mut self, input: &Input, out: &mut String) -> Result<usize, StoreError> {
        let (kind, payload) = (Kind::of(&input.subject), &input.payload);
        let Input { sequence: input, time, .. } = *input;
        self.position.input = input;
        self.position.time = self.position.time.max(time);
        let now = self.position.millis();
        let checked = self.check(now);
        let answers = match kind {
            Some(Kind::Orders) => self.place(payload, now)?,
            Some(Kind::Payments) => self.pay(payload, now)?,
            Some(Kind::Tick) | None => Vec::new(),
        };
        let changes = self.books.take_changes(now);
        self.memory.commit(&changes)?;
        let begin = out.len();
        // In the order in which they happened: checks come before what the message holds.
        let (by_check, by_payment) = changes.ended.split_at(checked);
        by_check.iter().for_each(|ended| lines::write_outcome(out, &ended.outcome()));
        write(&answers, out);
        by_payment.iter().for_each(|ended| lines::write_outcome(out, &ended.outcome()));
        self.position.digest = digest(self.position.digest, &out.as_bytes()[begin..]);
        Ok(answers.len())
    }

    /// Makes the checks that are due; returns their number.
    fn check(&mut self, now: u64) -> usize {
        for order_id in self.books.due(now) {
            self.due.extend(self.books.check_at(order_id).map(|at| (at, order_id)));
        }
        let mut checked = 0;
        while checked < MAX_LINES {
            let Some((_, order_id)) = self.due.pop_first() else { break };
            checked += usize::from(self.books.decide(order_id, now).is_some());
        }
        checked
    }

    /// The time that the log has to reach, in ms, so that the next check is made. It may be a little
    /// too early.
    pub(crate) fn next_check(&self) -> Option<u64> {
        let due = self.due.first().map(|&(at, _)| at);
        due.or_else(|| self.books.next_check()).map(|at| at.saturating_add(1))
    }

    fn place(&mut self, payload: &[u8], now: u64) -> Result<Vec<Answer>, StoreError> {
        let orders = self.own(lines_of(payload), |order: &NewOrder| Some(&order.item));
        self.books.place(&self.memory, orders, now)
    }

    /// Finds lines invalid whose item is another partition's: that one decides its orders.
    fn own<T>(
        &self,
        lines: Vec<Result<T, Answer>>,
        item: impl Fn(&T) -> Option<&str>,
    ) -> Vec<Result<T, Answer>> {
        let (number, partitions) = self.home;
        let own = |line: T| match item(&line).map(|item| partition_of(item, partitions)) {
            Some(other) if other != number => {
                Err(Answer::invalid(&format!("its item belongs to partition {other}, not to {number}")))
            }
            _ => Ok(line),
        };
        lines.into_iter().map(|line| line.and_then(own)).collect()
    }

    fn pay(&mut self, payload: &[u8], now: u64) -> Result<Vec<Answer>, StoreError> {
        let lines = self.own(lines_of(payload), |payment: &NewPayment| payment.item.as_deref());
        lines.into_iter().map(|line| self.books.pay_line(&self.memory, line, now)).collect()
    }
}

/// Nanoseconds in a ms.
const NANOS: u64 = 1_000_000;

/// Appends the answers to a message.
fn write(answers: &[Answer], out: &mut String) {
    let begin = out.len();
    answers.iter().for_each(|answer| answer.write(out));
    if out.len() - begin > MAX_ANSWERS {
        out.truncate(begin);
        let short = Answer::invalid("send fewer lines at a time to see why");
        let is_valid = |answer: &&Answer| answer.status != Status::Invalid;
        answers.iter().for_each(|answer| Some(answer).filter(is_valid).unwrap_or(&short).write(out));
    }
}

/// The lines of a message, if there are not too many.
pub(crate) fn lines_of<T: DeserializeOwned>(payload: &[u8]) -> Vec<Result<T, Answer>> {
    let lines = lines::parse(payload);
    if lines.len() <= MAX_LINES {
        return lines;
    }
    vec![Err(Answer::invalid(&format!("a message has at most {MAX_LINES} lines")))]
}

#[cfg(test)]
mod tests;
