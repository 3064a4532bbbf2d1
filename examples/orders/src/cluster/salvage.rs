//! What is left of a partition when the broker has lost a part of its log or of its snapshots.
//!
//! It begins with the newest whole snapshot. From there on the results are the truth: each line that they
//! answer *placed* or *counted* is entered with the content that the log still has, and each outcome ends
//! its order. So nothing that was answered is decided again. A line whose message is gone has no content:
//! it is lost, and named.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{Display, Write};

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageError, RawMessageErrorKind};

use crate::serve::lines::{NewOrder, NewPayment};
use crate::store::{EndState, Known, Open, Payment, Recovery, Resume};

use super::broker::{Broker, LastResult};
use super::client::{self, Line, Name};
use super::failure::Failure;
use super::memory::{Memory, Restored};
use super::names::{self, Kind};
use super::partition::{self, Partition, Position};
use super::reader::{Gap, Input, Reader};
use super::recovery;
use super::setup::Settings;

/// The content of a line of the log.
enum Content {
    Order(NewOrder),
    Payment(NewPayment),
}

pub(crate) struct Salvage {
    /// How far the snapshot is, and then how far all is known.
    position: Position,
    last_seq: u64,
    open: BTreeMap<u64, Open>,
    sold: BTreeMap<String, u64>,
    ended: Vec<(u64, u64, Known)>,
    payments: Vec<(u64, String, u64)>,
    /// What the log still has, in order.
    contents: HashMap<Name, Vec<Content>>,
    said: String,
    lost_messages: BTreeSet<u64>,
    lost_orders: BTreeSet<u64>,
    lost_payments: BTreeSet<String>,
}

impl Recovery for Salvage {
    fn open(&mut self, order: Open) {
        self.open.insert(order.order_id, order);
    }

    fn sold(&mut self, item: String, units: u64) {
        self.sold.insert(item, units);
    }

    /// The books of a partition have all pending orders, which say what is reserved.
    fn reserved(&mut self, _: String, _: u64) {}
}

impl Salvage {
    /// Begins with a snapshot; or, if none is whole, with nothing.
    pub(crate) fn new(base: &Partition, is_whole: bool) -> Self {
        let mut salvage = Self {
            position: base.position,
            last_seq: base.books.last_seq(),
            open: BTreeMap::new(),
            sold: BTreeMap::new(),
            ended: Vec::new(),
            payments: Vec::new(),
            contents: HashMap::new(),
            said: format!("  it goes on from the snapshot up to message {}", base.position.input),
            lost_messages: BTreeSet::new(),
            lost_orders: BTreeSet::new(),
            lost_payments: BTreeSet::new(),
        };
        base.books.tell(&mut salvage);
        base.memory.tell(
            |at, order_id, known| salvage.ended.push((at, order_id, known)),
            |at, payment_id, content| salvage.payments.push((at, payment_id.to_owned(), content)),
        );
        if !is_whole {
            "  no snapshot is whole: units of lost orders that were sold are on sale again, and an order that \
             ended before and is sent again is a new order"
                .clone_into(&mut salvage.said);
        }
        salvage
    }

    /// Reads the rest of the log up to the last result, and the results.
    pub(crate) async fn read(
        &mut self,
        broker: &Broker,
        number: u32,
        last: &LastResult,
    ) -> Result<(), Failure> {
        let log = broker.state(&names::log(number)).await?;
        let (begin, end) = (self.position.input + 1, last.input.max(self.position.input));
        let first = recovery::first(&log);
        self.lost_messages.extend(begin..first);
        self.lost_messages.extend((log.last_sequence + 1).max(begin)..=end);
        let mut reader = Reader::new(broker.clone(), names::log(number), begin.max(first));
        let partitions = broker.settings.partitions;
        while reader.position() < end.min(log.last_sequence) {
            match reader.next().await {
                Ok(Some(input)) => self.enter(&input, (number, partitions)),
                Ok(None) => {}
                Err(Gap::Message(number)) => drop(self.lost_messages.insert(number)),
                Err(gap) => return Err(gap.into()),
            }
        }
        if last.input < self.position.input && last.digest != self.position.digest && !last.is_none() {
            let lost = format!("{}-{}", last.input + 1, self.position.input);
            self.say("the results of messages that the snapshot includes are lost", [lost]);
        }
        let results = results(broker, number, last, begin).await?;
        self.answer(results, broker.settings.check_after_ms);
        self.position.input = end.max(first - 1);
        Ok(())
    }

    /// Enters the content of a message.
    fn enter(&mut self, input: &Input, (number, partitions): (u32, u32)) {
        self.position.time = self.position.time.max(input.time);
        let own = |item: &str| names::partition_of(item, partitions) == number;
        match Kind::of(&input.subject) {
            Some(Kind::Orders) => {
                let orders = partition::lines_of::<NewOrder>(&input.payload).into_iter().flatten();
                for order in orders.filter(|order| own(&order.item)) {
                    let name = Name::Order(order.order_id);
                    self.contents.entry(name).or_default().push(Content::Order(order));
                }
            }
            Some(Kind::Payments) => {
                let payments = partition::lines_of::<NewPayment>(&input.payload).into_iter().flatten();
                for payment in payments.filter(|payment| payment.item.as_deref().is_none_or(own)) {
                    let name = Name::Payment(payment.payment_id.clone());
                    self.contents.entry(name).or_default().push(Content::Payment(payment));
                }
            }
            Some(Kind::Tick) | None => {}
        }
    }

    /// Enters what the results say, each with the time in ms at which the broker took it in.
    fn answer(&mut self, results: Vec<(u64, Line)>, check_after: u64) {
        let valid = |line: &Line| line.status.as_deref().is_some_and(|status| status != "invalid");
        // The last answers to an id are those to the last lines that have it: the first ones are lost.
        let mut lacking = HashMap::<Name, i64>::new();
        for name in results.iter().filter(|(_, line)| valid(line)).filter_map(|(_, line)| line.name()) {
            *lacking.entry(name).or_default() += 1;
        }
        for (name, contents) in &self.contents {
            *lacking.entry(name.clone()).or_default() -= contents.len() as i64;
        }
        for (at, line) in results {
            self.last_seq = self.last_seq.max(line.seq.unwrap_or_default());
            let content = line.name().filter(|_| valid(&line)).and_then(|name| {
                let lacks = lacking.entry(name.clone()).or_default();
                *lacks -= 1;
                let contents =
                    self.contents.get_mut(&name).filter(|contents| *lacks < 0 && !contents.is_empty());
                contents.map(|contents| contents.remove(0))
            });
            match (line.status.as_deref(), content) {
                (Some("placed"), Some(Content::Order(order))) => self.place(order, &line, check_after),
                (Some("placed"), _) => self.lost_orders.extend(line.order_id),
                (Some("counted"), Some(Content::Payment(payment))) => self.pay(payment, at),
                (Some("counted"), _) => self.lost_payments.extend(line.payment_id),
                _ => self.end_order(&line, at),
            }
        }
    }

    fn place(&mut self, order: NewOrder, line: &Line, check_after: u64) {
        let NewOrder { order_id, item, quantity, amount_cents } = order;
        let check_at = line.check_at_ms.unwrap_or_default();
        let placed_at = check_at.saturating_sub(check_after);
        let order = Open { order_id, item, quantity, amount: amount_cents, paid: 0, placed_at, check_at };
        self.open.insert(order_id, order);
    }

    fn pay(&mut self, payment: NewPayment, at: u64) {
        let NewPayment { payment_id, order_id, amount_cents, .. } = payment;
        if let Some(order) = self.open.get_mut(&order_id) {
            order.paid = order.paid.saturating_add(amount_cents);
        }
        let payment = Payment { payment_id, order_id, amount: amount_cents };
        let content = payment.content();
        self.payments.push((at, payment.payment_id, content));
    }

    fn end_order(&mut self, line: &Line, at: u64) {
        let Some((state, order_id)) = line.state.as_deref().zip(line.order_id) else { return };
        let Some(order) = self.open.remove(&order_id) else { return };
        self.ended.push((at, order_id, order.known()));
        if state != EndState::Released.name() {
            *self.sold.entry(order.item).or_default() += u64::from(order.quantity);
        }
    }

    /// The partition that goes on, and what there is to say.
    pub(crate) fn end(
        mut self,
        settings: Settings,
        last: &LastResult,
    ) -> Result<(Partition, String), Failure> {
        if last.is_none() {
            self.say("the results are lost", ["all answers and outcomes"]);
        } else {
            self.position.digest = last.digest;
        }
        let (messages, orders) =
            (std::mem::take(&mut self.lost_messages), std::mem::take(&mut self.lost_orders));
        let payments = std::mem::take(&mut self.lost_payments);
        self.say("lost messages", ranges(&messages));
        self.say("lost orders, placed and not known any more", orders);
        self.say("lost payments, counted and not known any more", payments);
        let (input, pending) = (self.position.input, self.open.len());
        let _ = write!(self.said, "\n  it goes on after message {input} with {pending} pending orders");
        let resume =
            Resume { now: self.position.millis().saturating_sub(1), last_seq: self.last_seq, pending: 0 };
        let (open, sold) = (self.open.into_values().collect(), self.sold.into_iter().collect());
        let restored = Restored { open, sold, resume };
        let memory = Memory::new(restored, settings.remember_ms, settings.check_after_ms);
        self.ended.into_iter().for_each(|(at, order_id, known)| memory.restore_ended(at, order_id, known));
        self.payments.iter().for_each(|(at, payment_id, content)| {
            memory.restore_payment(*at, payment_id, *content);
        });
        Ok((Partition::restore(settings.shop(), memory, self.position)?, self.said))
    }

    fn say<T: Display>(&mut self, what: &str, lost: impl IntoIterator<Item = T>) {
        let lost = lost.into_iter().map(|lost| lost.to_string()).collect::<Vec<_>>();
        if !lost.is_empty() {
            let _ = write!(self.said, "\n  {what}: {}", lost.join(" "));
        }
    }
}

/// Numbers, those that follow each other as one range.
fn ranges(numbers: &BTreeSet<u64>) -> Vec<String> {
    let mut ranges = Vec::<(u64, u64)>::new();
    for &number in numbers {
        match ranges.last_mut().filter(|(_, end)| *end + 1 == number) {
            Some((_, end)) => *end = number,
            None => ranges.push((number, number)),
        }
    }
    let text = |(begin, end)| if begin == end { format!("{begin}") } else { format!("{begin}-{end}") };
    ranges.into_iter().map(text).collect()
}

/// All lines of results that answer messages from number `begin` on.
async fn results(
    broker: &Broker,
    number: u32,
    last: &LastResult,
    begin: u64,
) -> Result<Vec<(u64, Line)>, Failure> {
    let first = first_result(broker, number, last.sequence, begin).await?;
    client::read_results(broker, number, first..=last.sequence).await
}

/// The number of the first result that answers a message from number `begin` on.
async fn first_result(broker: &Broker, number: u32, last: u64, begin: u64) -> Result<u64, Failure> {
    let name = names::results(number);
    let (stream, first) = (broker.stream(&name).await?, recovery::first(&broker.state(&name).await?));
    let read = |found: Result<StreamMessage, RawMessageError>| match found {
        Ok(message) => LastResult::of(number, &message).map(Some),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    };
    let subject = names::results_subject(number);
    // The first one that answers a later message in full. What is missing counts as the next one that is there.
    let (mut low, mut high) = (first, last + 1);
    while low < high {
        let middle = low.midpoint(high);
        match read(stream.get_first_raw_message_by_subject(&subject, middle).await)? {
            Some(result) if result.input < begin => low = middle + 1,
            _ => high = middle,
        }
    }
    // Those right before it may answer parts of that message.
    while low > first && read(stream.get_raw_message(low - 1).await)?.is_some_and(|result| result.ahead > 0) {
        low -= 1;
    }
    Ok(low)
}
