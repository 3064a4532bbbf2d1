//! From requests to commands, from commands to the threads that run them, and back.

use super::*;
use crate::clock::Step;
use crate::commands::table::MGET;
use crate::protocol::Span;
use crate::protocol::parser::MAX_REQUEST;

/// A thread that has given so many bytes of replies, to another one or to an MGET of its own client, does
/// something else before it goes on.
const REPLIES_AT_ONCE: usize = 1024 * 1024;

/// A batch with longer replies goes back to the thread that has made them, once they have been copied.
const LONG_REPLIES: usize = 128 * 1024;

/// Once a thread has given so many bytes of replies to a transaction, its commands that only read are refused.
const TRANSACTION_REPLIES: usize = 512 * 1024 * 1024;

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
                // It is counted where it runs.
                Ok(()) if matches!(self.sessions[slot].ending, Ending::MovesTo(_)) => return,
                Ok(()) => return self.stats.count(command, Of::Calls),
                Err(refusal) => {
                    self.stats.count(command, Of::Rejected);
                    refusal
                }
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
                let session = &mut self.sessions[request.client];
                session.end_transaction();
                session.watched = Vec::new();
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
        let (mut queued, watched) = session.end_transaction().ok_or("EXEC without MULTI")?;
        if session.is_refused {
            return Err(Failure("EXECABORT", "Transaction discarded because of previous errors.".into()));
        }
        if !watched.iter().all(|&(hash, version)| self.keyspace.version(hash) == version) {
            return Ok(session.reply(|reply| reply.null_array()));
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

    /// Goes on with an MGET: until it is done, the client is owed much and would have to wait, or a step is over. In a
    /// transaction, until it is done.
    pub(super) fn go_on(&mut self, slot: usize, is_joined: bool) {
        let step = Step::begin();
        while let Some(key) = self.sessions[slot].rest.pop_front() {
            let (is_resp3, spans) =
                (self.sessions[slot].is_resp3, [Span::new(0, 0), Span::new(0, key.len())]);
            let request = Request { bytes: &key, spans: &spans, client: slot, ..Request::default() };
            self.run_on_key(&Request { command: MGET, is_resp3, is_joined, ..request }, 1);
            let is_enough = self.sessions[slot].replies.are_too_many(REPLIES_AT_ONCE) || step.is_over();
            if is_enough && !is_joined {
                break;
            }
        }
        if self.sessions[slot].rest.is_empty() && !is_joined {
            self.release(slot);
        }
    }

    /// All places in an array are reserved: messages may follow.
    fn release(&mut self, slot: usize) {
        let session = &mut self.sessions[slot];
        if let Some(messages) = session.held.take().filter(|it| !it.is_empty()) {
            session.append(|reply| reply.out.extend(messages));
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
            // A subcommand's key follows its name.
            Run::Key(_) => self.run_on_key(request, 1 + usize::from(command.name.contains('|'))),
            // Each is a reply by itself: the whole of great values is never copied at once.
            Run::EachKey(_, _, Fold::List) => {
                let session = &mut self.sessions[request.client];
                session.reply(|reply| reply.array(request.len() - 1));
                session.rest = request.from(1).map(Box::from).collect();
                session.held.get_or_insert_default();
                self.go_on(request.client, request.is_joined);
            }
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

    fn run_on_key(&mut self, request: &Request<'_>, key: usize) {
        let (hash, thread) = self.shared.placement.of(request.arg(key));
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
        // WATCH may move a client, and its subscriptions would miss messages meanwhile.
        let is_plain = session.is_resp3 && name != "watch";
        if session.subscriptions() > 0 && !is_plain && !flags.contains(Flags::SUBSCRIBED) {
            let allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET";
            return Err(format!("Can't execute '{name}': only {allowed} are allowed in this context").into());
        }
        Ok(())
    }

    /// Runs a command in this thread. Its reply follows all that the client has asked for before.
    fn run_here(&mut self, request: &Request<'_>) {
        let replies = &mut self.sessions[request.client].replies;
        let (waiting, mut out) = (replies.waiting(), replies.open());
        let start = out.len();
        self.perform(request, &mut Reply { out: &mut out, is_resp3: request.is_resp3 }, waiting);
        let replies = &mut self.sessions[request.client].replies;
        // A confirmation is a message.
        if replies.is_muted && !COMMANDS[usize::from(request.command)].name.ends_with("subscribe") {
            out.truncate(start);
        }
        replies.close(out);
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
        self.perform(request, &mut Reply { out: &mut part, is_resp3: request.is_resp3 }, 0);
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
            Message::Done(batch) => {
                batch.replies().for_each(|(home, reply)| self.answer(home, reply));
                if batch.replies_len() > LONG_REPLIES {
                    self.mailbox.send(from, Message::Used(batch));
                }
            }
            Message::Used(batch) => drop(batch),
        }
    }

    /// Does what another thread asks for, and sends the replies back.
    fn work(&mut self, from: usize, mut batch: Batch) {
        let rest = batch.run(REPLIES_AT_ONCE, |_, request, reply| {
            let start = reply.out.len();
            self.perform(request, reply, start);
        });
        // Ordering: see `events_underway`.
        self.shared.events_underway.fetch_sub(batch.events, Ordering::Relaxed);
        self.publish_events();
        if batch.is_wanted() {
            self.mailbox.send(from, Message::Done(batch));
        }
        self.mailbox.put_back(from, rest);
    }

    /// Runs a command, or this thread's part of it. An error stands in place of its reply. So many bytes wait already
    /// for the client here.
    fn perform(&mut self, request: &Request<'_>, reply: &mut Reply<'_>, waiting: usize) {
        let (start, sample) = (reply.out.len(), self.stats.start());
        let command = &COMMANDS[usize::from(request.command)];
        let is_too_long = request.is_joined && waiting > TRANSACTION_REPLIES;
        let outcome = match command.run {
            _ if is_too_long && command.flags.contains(Flags::READONLY) => {
                Err(format!("the replies to the transaction are longer than {TRANSACTION_REPLIES} bytes")
                    .into())
            }
            Run::Key(run) | Run::EachKey(run, ..) => run(&mut self.keyspace, request, reply),
            Run::Client(run) | Run::Threads(_, run, _) => run(self, request, reply),
            Run::Exec | Run::Container => Ok(()),
        };
        self.stats.stop(sample, request.command);
        if let Err(failure) = outcome {
            reply.out.truncate(start);
            reply.error(&failure);
            self.stats.count(request.command, Of::Failed);
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
                    self.perform(request, reply, 0);
                } else {
                    // Ordering: see `events_underway`.
                    shared.events_underway.fetch_add(request.args_len(), Ordering::Relaxed);
                    self.mailbox.forward(thread, None, request);
                }
            }
        });
    }
}
