//! What other threads ask for, and what they answer.

use crate::commands::Run;
use crate::commands::pubsub::{self, PUBLISH};
use crate::commands::table::COMMANDS;
use crate::desk::Desk;
use crate::mail::Message;
use crate::mail::batch::Batch;
use crate::protocol::{Reply, Request};
use crate::session::Address;
use crate::session::gather::Fold;
use crate::stats::{info, metrics};

/// Room that is kept for replies in the making.
const KEPT_SCRATCH: usize = 64 * 1024;

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
        reply.try_with(|reply| match COMMANDS[usize::from(command)].run {
            Run::Key(run) | Run::EachKey(run, ..) => run(&mut self.keyspace, request, reply),
            Run::Threads(_, run, _) => run(self, request, reply),
            Run::Client(_) | Run::Container => Ok(()),
        });
    }

    /// Another thread has answered.
    pub(crate) fn done(&mut self, batch: Batch) {
        for (address, item, reply) in batch.replies() {
            self.answer(address, item.command, reply);
        }
        self.mailbox.keep(batch);
    }

    /// Puts a reply, or a part of one, into its place. With its last part, a reply is whole.
    pub(crate) fn answer(
        &mut self,
        Address { session: name, reply: number, part }: Address,
        command: u16,
        reply: &[u8],
    ) {
        self.note_reply(command, reply);
        let Some(session) = self.sessions.get_mut(name.slot).filter(|it| it.id == name) else { return };
        if let Some(gather) = session.replies.add(number, part, reply) {
            let mut whole = std::mem::take(&mut self.scratch);
            match gather.fold {
                Fold::Info => info::write(self, &gather, &mut whole),
                Fold::Metrics => metrics::write(self, &gather, &mut whole),
                _ => gather.write(&mut whole, self.chance()),
            }
            self.sessions[name.slot].replies.fill(number, &whole);
            self.keep_scratch(whole);
        }
        self.touch(name.slot);
    }

    pub(crate) fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(KEPT_SCRATCH);
        self.scratch = scratch;
    }

    /// Publishes what has happened to keys.
    pub(crate) fn publish_events(&mut self) {
        if self.keyspace.events.pending.is_empty() {
            return;
        }
        let mut pending = std::mem::take(&mut self.keyspace.events.pending);
        pending.messages(self.keyspace.events.wanted, |channel, text| {
            for thread in 0..self.shared.threads() {
                if !self.shared.has_subscribers(thread) {
                    continue;
                }
                if thread == self.number {
                    pubsub::deliver(self, channel, text);
                } else {
                    let args = [PUBLISH.as_bytes(), channel, text].into_iter();
                    self.mailbox.batch_for(thread).add(None, (self.publish, false, 0), args);
                }
            }
        });
        pending.clear();
        self.keyspace.events.pending = pending;
    }
}
