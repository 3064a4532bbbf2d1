//! What other threads ask for, and what they answer.

use crate::commands::Run;
use crate::commands::pubsub::{self, PUBLISH};
use crate::commands::table::COMMANDS;
use crate::desk::Desk;
use crate::mail::Message;
use crate::mail::batch::Batch;
use crate::protocol::reply::{Reply, is_error};
use crate::protocol::request::Request;
use crate::session::gather::{Fold, Gather};
use crate::session::{Address, SessionId};
use crate::stats::{info, metrics};

impl Desk {
    /// Does what another thread asks for, and sends the replies back.
    pub(crate) fn work(&mut self, from: usize, mut batch: Batch) {
        let is_wanted = batch.run(|item, request, reply| {
            let sample = self.stats.start();
            self.run_part(item.command, request, reply);
            self.stats.stop(sample, item.command);
        });
        self.publish_events();
        if is_wanted { self.mailbox.send(from, Message::Done(batch)) } else { self.mailbox.keep(batch) }
    }

    /// Runs this thread's part of a command.
    pub(crate) fn run_part(&mut self, command: u16, request: &Request<'_>, reply: &mut Reply<'_>) {
        match COMMANDS[usize::from(command)].run {
            Run::Key(run) | Run::EachKey(run, ..) => run(&mut self.keyspace, request, reply),
            Run::Threads(_, run, _) => run(self, request, reply),
            Run::Client(_) | Run::Container => {}
        }
    }

    /// Another thread has answered.
    pub(crate) fn done(&mut self, batch: Batch) {
        for (address, item, reply) in batch.replies() {
            self.answer(address, item.command, reply);
        }
        self.mailbox.keep(batch);
    }

    /// Puts a reply, or a part of one, into its place.
    pub(crate) fn answer(&mut self, address: Address, command: u16, reply: &[u8]) {
        if is_error(reply) {
            self.stats.note_failure(command);
        }
        let Some(session) = self.sessions.named(address.session) else { return };
        if let Some(gather) = session.replies.add(address.reply, address.part, reply) {
            self.finish(address.session, address.reply, &gather);
        }
        self.touch(address.session.slot);
    }

    /// All parts of a reply are there.
    pub(crate) fn finish(&mut self, name: SessionId, number: u64, gather: &Gather) {
        let mut whole = std::mem::take(&mut self.scratch);
        match gather.fold {
            Fold::Info => info::write(self, gather, &mut whole),
            Fold::Metrics => metrics::write(self, gather, &mut whole),
            Fold::Random => gather.write(&mut whole, self.chance()),
            _ => gather.write(&mut whole, 0),
        }
        if let Some(session) = self.sessions.named(name) {
            session.replies.fill(number, &whole);
        }
        self.keep_scratch(whole);
    }

    pub(crate) fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(KEPT_SCRATCH);
        self.scratch = scratch;
    }

    /// Publishes what has happened to keys.
    pub(crate) fn publish_events(&mut self) {
        if self.keyspace.events.is_empty() {
            return;
        }
        let threads = self.shared.threads();
        let publish = self.lookup.named(PUBLISH.as_bytes()).unwrap_or_default();
        for (channel, text) in self.keyspace.events.take_messages() {
            for thread in 0..threads {
                if !self.shared.has_subscribers(thread) {
                    continue;
                }
                if thread == self.number {
                    pubsub::deliver(self, &channel, &text);
                    continue;
                }
                let args = [PUBLISH.as_bytes(), &channel, &text].into_iter();
                self.mailbox.batch_for(thread).add(None, (publish, false, 0), args);
            }
        }
    }
}

/// Room that is kept for replies in the making.
const KEPT_SCRATCH: usize = 64 * 1024;
