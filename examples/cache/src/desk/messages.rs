//! What is run in this thread, for its own clients and for other threads, and what others answer.

use super::*;

impl Desk {
    /// Does what another thread asks for, and sends the replies back.
    pub(crate) fn work(&mut self, from: usize, mut batch: Batch) {
        let is_wanted = batch.run(|request, reply| self.perform(request, reply));
        self.publish_events();
        if is_wanted {
            self.mailbox.send(from, Message::Done(batch));
        }
    }

    /// Runs a command, or this thread's part of it. An error stands in place of its reply.
    pub(super) fn perform(&mut self, request: &Request<'_>, reply: &mut Reply<'_>) {
        let (start, sample) = (reply.out.len(), self.stats.start());
        let outcome = match COMMANDS[usize::from(request.command)].run {
            Run::Key(run) | Run::EachKey(run, ..) => run(&mut self.keyspace, request, reply),
            Run::Client(run) | Run::Threads(_, run, _) => run(self, request, reply),
            Run::Container => Ok(()),
        };
        self.stats.stop(sample, request.command);
        if let Err(failure) = outcome {
            reply.out.truncate(start);
            reply.error(&failure);
            self.stats.count(request.command, Of::Failed);
            self.stats.add(Figure::Errors, 1);
        }
    }

    /// Another thread has answered.
    pub(crate) fn done(&mut self, batch: &Batch) {
        batch.replies().for_each(|(home, reply)| self.answer(home, reply));
    }

    /// Puts a reply, or a part of one, into its place. The client may have left.
    pub(super) fn answer(&mut self, Address { session: id, reply: number, part }: Address, reply: &[u8]) {
        if let Some(session) = self.sessions.get_mut(id.slot).filter(|it| it.id == id) {
            session.replies.add(number, part, reply);
            self.touch(id.slot);
        }
    }

    /// Publishes what has happened to keys.
    pub(crate) fn publish_events(&mut self) {
        if self.keyspace.events.pending.is_empty() {
            return;
        }
        std::mem::take(&mut self.keyspace.events.pending).run(|request, _| {
            for thread in 0..self.shared.threads() {
                if self.shared.channels(thread) == 0 {
                    continue;
                }
                if thread == self.number {
                    pubsub::deliver(self, request.arg(1), request.arg(2));
                } else {
                    self.mailbox.batch_for(thread).add(None, request);
                }
            }
        });
    }
}
