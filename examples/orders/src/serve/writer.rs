//! The writer: the one thread that decides. It gathers requests and due checks into a *group*, and
//! decides them in the books at once. Then it hands the group to the committer (`committer.rs`), and
//! decides the next one meanwhile.
//!
//! | instant of a crash | what the restart finds |
//! |---|---|
//! | before a group's commit | nothing of the group; no client has an answer, and sends again |
//! | within the commit | all of the group or nothing (the store's promise) |
//! | after the commit, before the answers | all of it; a client that sends again gets "duplicate" |
//! | after the answers | all of it |
//!
//! Groups are committed one after the other. So a group that is decided while another one is being
//! committed is there only if that one is.
//!
//! After a commit that failed, it is not known whether the group is durable. No client gets an answer, and
//! the program ends: the next start reads what is there, as after a crash.

use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{self as channel, Receiver, Sender, select_biased};
use tokio::sync::oneshot;

use crate::store::{Disk, Open, StoreError};

use super::books::{Books, Checked, Shop, Stock};
use super::clock::{self, ShopClock};
use super::committer::{self, Decided, Reply};
use super::lines::{Answer, NewOrder, NewPayment};
use super::metrics::Metrics;

/// The greatest number of lines in one commit, and of checks in one commit, about.
const GROUP: usize = 8_192;
/// How many checks of a commit may have been overdue at the start. The others fell due since, and do
/// not wait for these.
const CATCH_UP: usize = GROUP / 2;
/// A program with pending orders commits its time at least this often.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// What a handler asks of the writer. A dropped `reply` means that the store failed, or the program ends:
/// the request may be durable or not.
pub(crate) enum Message {
    Orders {
        lines: Vec<Result<NewOrder, Answer>>,
        reply: oneshot::Sender<Vec<Answer>>,
    },
    Payments {
        lines: Vec<Result<NewPayment, Answer>>,
        reply: oneshot::Sender<Vec<Answer>>,
    },
    /// Asks for a pending order, if it is in memory.
    Order {
        order_id: u64,
        reply: oneshot::Sender<Option<Open>>,
    },
    Stock {
        item: String,
        reply: oneshot::Sender<Stock>,
    },
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

pub(crate) struct Writer {
    store: Arc<Disk>,
    books: Books,
    clock: ShopClock,
    /// What is decided and not handed over.
    group: Group,
    /// A group is being committed.
    committing: bool,
    last_commit: Instant,
    /// More checks may be due than the group had room for.
    more: bool,
    metrics: Arc<Metrics>,
}

/// What is decided, apart from the changes.
#[derive(Default)]
struct Group {
    lines: usize,
    replies: Vec<Reply>,
    checked: Vec<Checked>,
    /// How many of these were overdue at the start.
    caught_up: usize,
}

impl Group {
    /// How many more checks it may hold that fall due now, if others are overdue or not.
    fn room(&self, is_behind: bool) -> usize {
        let share = if is_behind || self.caught_up > 0 { GROUP - CATCH_UP } else { GROUP };
        share.saturating_sub(self.checked.len() - self.caught_up)
    }
}

/// What the writer waits for.
enum Event {
    Message(Message),
    Committed(Result<(), StoreError>),
    /// A check or the heartbeat is due.
    Due,
    /// No sender is left.
    End,
}

impl Writer {
    /// Reads what the store has.
    pub(crate) fn recover(shop: Shop, store: Arc<Disk>, metrics: Arc<Metrics>) -> Result<Self, StoreError> {
        let (start, wall) = (Instant::now(), clock::wall());
        let books = Books::recover(shop, &*store, wall)?;
        let clock = ShopClock::new(books.began(), start);
        metrics.set("orders_pending", books.pending() as f64);
        let group = Group::default();
        Ok(Self { store, books, clock, group, committing: false, last_commit: start, more: true, metrics })
    }

    /// Decides until it is told to stop, or a commit fails.
    pub(crate) fn run(mut self, messages: &Receiver<Message>) -> Result<(), StoreError> {
        let (store, metrics) = (Arc::clone(&self.store), Arc::clone(&self.metrics));
        thread::scope(|scope| {
            // One group at most is on its way.
            let ((groups, inbox), (results, done)) = (channel::bounded(1), channel::bounded(1));
            thread::Builder::new()
                .name("committer".to_owned())
                .spawn_scoped(scope, move || committer::run(&store, &inbox, &results, &metrics))?;
            self.work(messages, &groups, &done)
        })
    }

    fn work(
        &mut self,
        messages: &Receiver<Message>,
        groups: &Sender<Decided>,
        done: &Receiver<Result<(), StoreError>>,
    ) -> Result<(), StoreError> {
        let (mut stopping, never) = (false, channel::never());
        loop {
            match self.wait(if stopping { &never } else { messages }, done) {
                Event::Message(message) => stopping = self.gather(message, messages)?,
                Event::Committed(result) => {
                    result?;
                    (self.committing, self.last_commit) = (false, Instant::now());
                }
                Event::Due => {}
                Event::End => stopping = true,
            }
            if !stopping {
                self.check(self.clock.now())?;
                if self.books.has_room() {
                    self.books.read_on(&*self.store)?;
                }
            }
            if !self.committing {
                self.hand_over(groups);
            }
            if stopping && !self.committing {
                return Ok(());
            }
        }
    }

    /// Waits for a message (if the group has room) or the committer, at most until a check is due or
    /// the time has to be committed.
    fn wait(&self, messages: &Receiver<Message>, done: &Receiver<Result<(), StoreError>>) -> Event {
        let (never, timer) = (channel::never(), self.next_due().map_or_else(channel::never, channel::after));
        let messages = if self.group.lines < GROUP { messages } else { &never };
        select_biased! {
            recv(done) -> result => Event::Committed(result.expect("the committer has not panicked")),
            recv(messages) -> message => message.map_or(Event::End, Event::Message),
            recv(timer) -> _ => Event::Due,
        }
    }

    /// How long it is until there is something to do without a message.
    fn next_due(&self) -> Option<Duration> {
        let is_behind = self.books.is_behind();
        let check = match self.group.room(is_behind) {
            0 => None,
            _ if self.more => Some(Duration::ZERO),
            _ => self.books.next_check().map(|at| self.clock.until(at)),
        };
        let catch_up = (is_behind && self.group.caught_up < CATCH_UP).then_some(Duration::ZERO);
        let read_on = self.books.has_room().then_some(Duration::ZERO);
        let heartbeat = HEARTBEAT.saturating_sub(self.last_commit.elapsed());
        let heartbeat = (self.books.pending() > 0 && !self.committing).then_some(heartbeat);
        check.into_iter().chain(catch_up).chain(read_on).chain(heartbeat).min()
    }

    /// Decides a message, and others that have come in. Returns whether the writer shall stop.
    fn gather(&mut self, first: Message, messages: &Receiver<Message>) -> Result<bool, StoreError> {
        let mut next = Some(first);
        while let Some(message) = next {
            self.group.lines += message.lines();
            let Some(reply) = self.decide(message)? else { return Ok(true) };
            self.group.replies.push(reply);
            next = if self.group.lines < GROUP { messages.try_recv().ok() } else { None };
        }
        Ok(false)
    }

    fn decide(&mut self, message: Message) -> Result<Option<Reply>, StoreError> {
        let now = self.clock.now();
        Ok(Some(match message {
            Message::Orders { lines, reply } => {
                // As the rules say. What the group has no room for is made later, if checks were missed.
                self.check(now)?;
                Reply::Lines(reply, self.books.place(&*self.store, lines, now)?)
            }
            Message::Payments { lines, reply } => Reply::Lines(reply, self.pay(lines, now)?),
            Message::Order { order_id, reply } => Reply::Order(reply, self.books.order(order_id)),
            Message::Stock { item, reply } => Reply::Stock(reply, self.books.stock(&item)),
            Message::Stop => return Ok(None),
        }))
    }

    fn pay(&mut self, lines: Vec<Result<NewPayment, Answer>>, now: u64) -> Result<Vec<Answer>, StoreError> {
        lines.into_iter().map(|line| self.books.pay_line(&*self.store, line, now)).collect()
    }

    /// Decides the checks that were due before `now`, as far as the group has room: those that fell due
    /// in this run, and by turns those that were overdue at its start.
    fn check(&mut self, now: u64) -> Result<(), StoreError> {
        let room = self.group.room(self.books.is_behind());
        let Group { checked, caught_up, .. } = &mut self.group;
        self.more = self.books.check(&*self.store, now, room, |check| checked.push(check))?;
        let before = checked.len();
        self.books.catch_up(&*self.store, now, CATCH_UP - *caught_up, |check| checked.push(check))?;
        *caught_up += checked.len() - before;
        Ok(())
    }

    /// Hands what is decided to the committer, if there is anything.
    fn hand_over(&mut self, groups: &Sender<Decided>) {
        let changes = self.books.take_changes(self.clock.now());
        let Group { replies, checked, .. } = mem::take(&mut self.group);
        let heartbeat = self.books.pending() > 0 && self.last_commit.elapsed() >= HEARTBEAT;
        let commit = heartbeat || !changes.is_empty();
        if commit || !replies.is_empty() {
            let pending = self.books.pending();
            // The committer ends after this thread, or with an error that comes next.
            let _ = groups.send(Decided { changes, commit, replies, checked, pending });
            self.committing = true;
        }
    }
}
