//! From requests to commands, from commands to the threads that run them, and back.

use super::*;
use crate::protocol::parser::MAX_REQUEST;

/// A thread that has given so many bytes of replies to another one does something else before it goes on.
const REPLIES_AT_ONCE: usize = 1024 * 1024;

impl Desk {
    pub(crate) fn dispatch(&mut self, slot: usize, request: &Request<'_>) {
        if request.len() == 0 {
            return;
        }
        let (is_resp3, found) = (self.sessions[slot].is_resp3, table::find(request));
        let refusal = match found {
            // A browser, which a web page has sent here: what follows may be commands.
            Err(_) if request.is(0, "post") || request.is(0, "host:") => {
                self.sessions[slot].ending = Ending::Now;
                return;
            }
            Err(refusal) => refusal,
            Ok(command) => match self.begin(&Request { command, is_resp3, client: slot, ..*request }) {
                Ok(()) => return self.stats.add(Figure::Commands, 1),
                Err(refusal) => refusal,
            },
        };
        self.refuse(slot, &refusal);
    }

    fn refuse(&mut self, slot: usize, refusal: &Failure) {
        self.stats.add(Figure::Errors, 1);
        let session = &mut self.sessions[slot];
        session.is_refused = true;
        session.reply(|reply| reply.error(refusal));
    }

    /// Runs a command, or queues it for EXEC.
    fn begin(&mut self, request: &Request<'_>) -> Outcome {
        let command = &COMMANDS[usize::from(request.command)];
        if let Err(refusal) = self.admit(command, request) {
            return Err(if !matches!(command.run, Run::Exec) {
                refusal
            } else {
                self.sessions[request.client].queued = None;
                let code = if refusal.0 == "OOM" { "OOM " } else { "" };
                let why = format!("Transaction discarded because of: {code}{}", refusal.1);
                Failure("EXECABORT", why.into())
            });
        }
        let session = &mut self.sessions[request.client];
        let Some(queued) = session.queued.as_mut().filter(|_| !command.flags.contains(Flags::AT_ONCE)) else {
            return self.run(command, request);
        };
        if command.flags.contains(Flags::ONLY_0_IN_MULTI) && request.arg(1) != b"0" {
            return Err("Command not allowed inside a transaction".into());
        }
        if queued.memory() > MAX_REQUEST {
            return Err("the transaction is too big".into());
        }
        queued.add(None, request);
        Ok(session.reply(|reply| reply.simple("QUEUED")))
    }

    /// Replies an array of the replies to what has been queued. All that is for one thread runs there in one
    /// piece: here at once, and elsewhere in one batch.
    fn execute(&mut self, slot: usize) -> Outcome {
        let session = &mut self.sessions[slot];
        let mut queued = session.queued.take().ok_or("EXEC without MULTI")?;
        if session.is_refused {
            return Err(Failure("EXECABORT", "Transaction discarded because of previous errors.".into()));
        }
        session.reply(|reply| reply.array(queued.len()));
        session.held = Some(Vec::new());
        self.mailbox.close_full_batches();
        queued.run(usize::MAX, |_, queued, _| {
            let is_resp3 = self.sessions[slot].is_resp3;
            let request = Request { client: slot, is_resp3, is_joined: true, ..*queued };
            self.run(&COMMANDS[usize::from(request.command)], &request)
                .unwrap_or_else(|refusal| self.refuse(slot, &refusal));
        });
        Ok(self.release(slot))
    }

    /// All places in an array are reserved: messages may follow.
    fn release(&mut self, slot: usize) {
        let session = &mut self.sessions[slot];
        if let Some(messages) = session.held.take().filter(|it| !it.is_empty()) {
            session.reply(|reply| reply.out.extend(messages));
        }
    }

    fn run(&mut self, command: &Command, request: &Request<'_>) -> Outcome {
        // Redis looks at this last: the command itself does.
        if command.flags.contains(Flags::PAIRS) && request.len().is_multiple_of(2) {
            return Err(wrong_arity(command.name));
        }
        match command.run {
            Run::Client(_) => self.run_here(request),
            Run::Exec => self.execute(request.client)?,
            Run::Key(_) => self.run_on_key(request),
            Run::EachKey(_, step, fold) => {
                let home = self.expect(Some((fold, (request.len() - 1) / step)), request);
                for (key, part) in (1..request.len()).step_by(step).zip(0..) {
                    let (hash, thread) = self.shared.placement.of(request.arg(key));
                    let spans = [request.spans[0], request.spans[key], request.spans[key + step - 1]];
                    let one = Request { spans: &spans[..1 + step], hash, ..*request };
                    self.run_part(thread, Address { part, ..home }, &one);
                }
            }
            Run::Threads(choose, _, fold) => {
                let threads = choose(self, request)?;
                let home = self.expect(Some((fold, threads.len())), request);
                for (thread, part) in threads.into_iter().zip(0..) {
                    self.run_part(thread, Address { part, ..home }, request);
                }
            }
            Run::Container => {}
        }
        self.publish_events();
        Ok(())
    }

    fn run_on_key(&mut self, request: &Request<'_>) {
        let (hash, thread) = self.shared.placement.of(request.arg(1));
        let request = Request { hash, ..*request };
        if thread == self.number {
            self.run_here(&request);
        } else {
            let home = self.expect(None, &request);
            self.forward(thread, home, &request);
        }
    }

    fn admit(&mut self, command: &Command, request: &Request<'_>) -> Outcome {
        let (session, flags, name) = (&self.sessions[request.client], command.flags, command.name);
        let (args, least) = (request.len(), usize::from(command.arity.unsigned_abs()));
        if args < least || args > least && command.arity > 0 {
            return Err(wrong_arity(name));
        }
        if !flags.contains(Flags::NO_AUTH) && !self.trusts(request.client) {
            return Err(Failure("NOAUTH", "Authentication required.".into()));
        }
        let (limit, memory) = (self.settings.max_memory, self.memory_of_others + self.stats.memory());
        let grows = |flags: Flags| flags.contains(Flags::DENYOOM);
        let may_grow = match &session.queued {
            Some(queued) if matches!(command.run, Run::Exec) => queued.commands().any(|it| grows(it.flags)),
            Some(_) if !flags.contains(Flags::AT_ONCE) => true,
            _ => grows(flags),
        };
        if limit > 0 && memory as u64 > limit && may_grow {
            return Err(Failure("OOM", "command not allowed when used memory > 'maxmemory'.".into()));
        }
        if session.subscriptions() > 0 && !session.is_resp3 && !flags.contains(Flags::SUBSCRIBED) {
            let allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET";
            return Err(format!("Can't execute '{name}': only {allowed} are allowed in this context").into());
        }
        Ok(())
    }

    /// Runs a command in this thread. Its reply follows all that the client has asked for before.
    fn run_here(&mut self, request: &Request<'_>) {
        let mut out = self.sessions[request.client].replies.open();
        self.perform(request, &mut Reply { out: &mut out, is_resp3: request.is_resp3 });
        self.sessions[request.client].replies.close(out);
    }

    /// Reserves the place for a reply that comes later; with `parts`, in that many parts, which are folded.
    fn expect(&mut self, parts: Option<(Fold, usize)>, request: &Request<'_>) -> Address {
        let session = &mut self.sessions[request.client];
        let gather = parts.map(|(fold, parts)| Gather::new(fold, parts, request.is_resp3));
        Address { session: session.id, reply: session.replies.expect(gather), part: 0 }
    }

    /// Runs a part of a command in its thread, which may be this one.
    fn run_part(&mut self, thread: usize, home: Address, request: &Request<'_>) {
        if thread != self.number {
            return self.forward(thread, home, request);
        }
        let mut part = Vec::new();
        self.perform(request, &mut Reply { out: &mut part, is_resp3: request.is_resp3 });
        self.answer(home, &part);
    }

    fn forward(&mut self, thread: usize, home: Address, request: &Request<'_>) {
        self.stats.add(Figure::Forwarded, 1);
        self.mailbox.forward(thread, Some(home), request);
    }

    /// Takes a message of another thread.
    pub(crate) fn take(&mut self, from: usize, message: Message) {
        match message {
            Message::Work(batch) => self.work(from, batch),
            Message::Done(batch) => batch.replies().for_each(|(home, reply)| self.answer(home, reply)),
        }
    }

    /// Does what another thread asks for, and sends the replies back.
    fn work(&mut self, from: usize, mut batch: Batch) {
        let rest = batch.run(REPLIES_AT_ONCE, |_, request, reply| self.perform(request, reply));
        self.publish_events();
        if batch.is_wanted() {
            self.mailbox.send(from, Message::Done(batch));
        }
        self.mailbox.put_back(from, rest);
    }

    /// Runs a command, or this thread's part of it. An error stands in place of its reply.
    fn perform(&mut self, request: &Request<'_>, reply: &mut Reply<'_>) {
        let start = reply.out.len();
        let outcome = match COMMANDS[usize::from(request.command)].run {
            Run::Key(run) | Run::EachKey(run, ..) => run(&mut self.keyspace, request, reply),
            Run::Client(run) | Run::Threads(_, run, _) => run(self, request, reply),
            Run::Exec | Run::Container => Ok(()),
        };
        if let Err(failure) = outcome {
            reply.out.truncate(start);
            reply.error(&failure);
            self.stats.add(Figure::Errors, 1);
        }
    }

    /// Puts a reply, or a part of one, into its place. The client may have left.
    fn answer(&mut self, Address { session: id, reply: number, part }: Address, reply: &[u8]) {
        if let Some(session) = self.sessions.get_mut(id.slot).filter(|it| it.id == id) {
            session.replies.add(number, part, reply);
            self.touch(id.slot);
        }
    }

    pub(crate) fn publish_events(&mut self) {
        if self.keyspace.events.pending.len() == 0 {
            return;
        }
        std::mem::take(&mut self.keyspace.events.pending).run(usize::MAX, |_, request, reply| {
            let shared = Arc::clone(&self.shared);
            for thread in (0..shared.threads()).filter(|&it| shared.channels(it) > 0) {
                if thread == self.number {
                    self.perform(request, reply);
                } else {
                    self.mailbox.forward(thread, None, request);
                }
            }
        });
    }
}
