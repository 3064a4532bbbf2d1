//! The writer: the one thread that decides. It gathers requests and due checks, decides them in the
//! books, commits them together, and then answers.
//!
//! | instant of a crash | what the restart finds |
//! |---|---|
//! | before the commit | nothing of the group; no client has an answer, and sends again |
//! | within the commit | all of the group or nothing (the store's promise) |
//! | after the commit, before the answers | all of it; who sends again hears "duplicate" |
//! | after the answers | all of it |
//!
//! A commit that fails leaves open whether the group is durable. The writer gives no answer, drops
//! the books, opens the store again and reads it, as after a crash. Meanwhile requests are refused.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::store::{Changes, Disk, EndState, Open, Store, StoreError};

use super::books::{Books, Checked, Full, Shop, Stock};
use super::clock::{self, ShopClock};
use super::lines::{Answer, Fault, NewOrder, NewPayment};
use super::shared::Shared;

/// Lines and checks in one commit: about this many at most.
const GROUP: usize = 8_192;
/// A program with pending orders commits its time at least this often.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);
/// The time between two attempts to open a store that has no room.
const RETRY: Duration = Duration::from_millis(500);

/// What a handler asks of the writer. A dropped `reply` means that the store failed: the request may
/// be durable or not.
pub(crate) enum Message {
    Orders { lines: Vec<Result<NewOrder, Fault>>, reply: oneshot::Sender<Result<Vec<Answer>, Full>> },
    Payments { lines: Vec<Result<NewPayment, Fault>>, reply: oneshot::Sender<Result<Vec<Answer>, Full>> },
    Order { order_id: u64, reply: oneshot::Sender<Option<Open>> },
    Stock { item: String, reply: oneshot::Sender<Stock> },
    Stop,
}

impl Message {
    fn lines(&self) -> usize {
        match self {
            Self::Orders { lines, .. } => lines.len(),
            Self::Payments { lines, .. } => lines.len(),
            Self::Order { .. } | Self::Stock { .. } | Self::Stop => 1,
        }
    }
}

/// An answer that waits for its commit.
enum Reply {
    Lines(oneshot::Sender<Result<Vec<Answer>, Full>>, Result<Vec<Answer>, Full>),
    Order(oneshot::Sender<Option<Open>>, Option<Open>),
    Stock(oneshot::Sender<Stock>, Stock),
}

/// Recovers the store, and decides until it is told to stop. An error is one that opening the store
/// again does not mend.
pub(crate) fn run(
    directory: &Path,
    shop: Shop,
    messages: &Receiver<Message>,
    shared: &Shared,
) -> Result<(), StoreError> {
    loop {
        let failure = match Writer::recover(directory, shop, shared) {
            Ok(mut writer) => match writer.work(messages) {
                Ok(()) => return Ok(()),
                Err(failure) => writer.give_up(failure),
            },
            Err(failure @ StoreError::Full(_)) => failure,
            Err(failure) => return Err(failure),
        };
        eprintln!("error: {failure}; the store is opened again");
        thread::sleep(RETRY);
        // What came in meanwhile is refused. `Stop` among it ends the program by the closed channel.
        loop {
            match messages.try_recv() {
                Ok(Message::Stop) | Err(TryRecvError::Disconnected) => return Ok(()),
                Ok(_) => {}
                Err(TryRecvError::Empty) => break,
            }
        }
    }
}

struct Writer<'a> {
    store: Arc<Disk>,
    books: Books,
    clock: ShopClock,
    shared: &'a Shared,
    last_commit: Instant,
    /// More checks may be due than the last group had room for.
    more: bool,
}

impl<'a> Writer<'a> {
    fn recover(directory: &Path, shop: Shop, shared: &'a Shared) -> Result<Self, StoreError> {
        let (start, wall) = (Instant::now(), clock::wall());
        let store = Arc::new(Disk::open(directory)?);
        let books = Books::recover(shop, &*store, wall)?;
        let clock = ShopClock::new(books.began(), start);
        shared.open(Arc::clone(&store), start.elapsed(), books.pending());
        Ok(Self { store, books, clock, shared, last_commit: start, more: true })
    }

    /// Closes the store, and waits until its last reader is gone.
    fn give_up(self, failure: StoreError) -> StoreError {
        self.shared.close();
        let mut store = self.store;
        while let Err(shared) = Arc::try_unwrap(store) {
            store = shared;
            thread::sleep(Duration::from_millis(1));
        }
        failure
    }

    fn work(&mut self, messages: &Receiver<Message>) -> Result<(), StoreError> {
        loop {
            let first = match self.wait(messages) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let (group, stop) = gather(first, messages);
            self.group(group)?;
            if stop {
                return Ok(());
            }
        }
    }

    /// Waits for a message, until a check is due or the time has to be committed.
    fn wait(&self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        if self.more {
            return messages.recv_timeout(Duration::ZERO);
        }
        let check = self.books.next_check().map(|at| self.clock.until(at));
        let heartbeat = HEARTBEAT.saturating_sub(self.last_commit.elapsed());
        let heartbeat = (self.books.pending() > 0).then_some(heartbeat);
        match check.into_iter().chain(heartbeat).min() {
            Some(wait) => messages.recv_timeout(wait),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Decides a group, commits it, and answers.
    fn group(&mut self, group: Vec<Message>) -> Result<(), StoreError> {
        let mut replies = Vec::with_capacity(group.len());
        for message in group {
            replies.extend(self.decide(message)?);
        }
        let now = self.clock.ends();
        let mut checked = Vec::new();
        self.more = self.books.check(now, GROUP, |check| checked.push(check));
        let changes = self.books.take_changes(now);
        if !changes.is_empty() || self.is_heartbeat_due() {
            self.commit(&changes)?;
        }
        self.publish(&changes, &checked);
        replies.into_iter().for_each(|reply| self.answer(reply));
        Ok(())
    }

    fn decide(&mut self, message: Message) -> Result<Option<Reply>, StoreError> {
        Ok(Some(match message {
            Message::Orders { lines, reply } => {
                Reply::Lines(reply, self.books.place(&*self.store, &lines, self.clock.begins())?)
            }
            Message::Payments { lines, reply } => Reply::Lines(reply, Ok(self.pay(lines)?)),
            Message::Order { order_id, reply } => Reply::Order(reply, self.books.order(order_id)),
            Message::Stock { item, reply } => Reply::Stock(reply, self.books.stock(&item)),
            Message::Stop => return Ok(None),
        }))
    }

    fn pay(&mut self, lines: Vec<Result<NewPayment, Fault>>) -> Result<Vec<Answer>, StoreError> {
        let now = self.clock.ends();
        lines.into_iter().map(|line| self.books.pay_line(&*self.store, line, now)).collect()
    }

    fn is_heartbeat_due(&self) -> bool {
        self.books.pending() > 0 && self.last_commit.elapsed() >= HEARTBEAT
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let begin = Instant::now();
        self.store.commit(changes)?;
        self.last_commit = Instant::now();
        self.shared.metrics.committed(begin.elapsed());
        Ok(())
    }

    /// Counts what is durable now.
    fn publish(&self, changes: &Changes, checked: &[Checked]) {
        let metrics = &self.shared.metrics;
        metrics.pending.set(self.books.pending() as u64);
        checked.iter().for_each(|&checked| metrics.checked(checked));
        for state in [EndState::PaidEarly, EndState::Confirmed, EndState::Released] {
            metrics.ended(state, changes.ended.iter().filter(|ended| ended.state == state).count() as u64);
        }
    }

    /// A client that has gone away gets no answer.
    fn answer(&self, reply: Reply) {
        match reply {
            Reply::Lines(reply, answers) => {
                self.shared.metrics.answered(answers.as_deref().unwrap_or_default());
                let _ = reply.send(answers);
            }
            Reply::Order(reply, order) => drop(reply.send(order)),
            Reply::Stock(reply, stock) => drop(reply.send(stock)),
        }
    }
}

/// The messages of one group, and whether the writer shall stop after it.
fn gather(first: Option<Message>, messages: &Receiver<Message>) -> (Vec<Message>, bool) {
    let (mut group, mut lines, mut next) = (Vec::new(), 0, first);
    while let Some(message) = next {
        if matches!(message, Message::Stop) {
            return (group, true);
        }
        lines += message.lines();
        group.push(message);
        next = if lines < GROUP { messages.try_recv().ok() } else { None };
    }
    (group, false)
}
