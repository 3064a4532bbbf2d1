//! From requests to commands, and from commands to the threads that run them.

use crate::commands::table::{COMMANDS, METRICS};
use crate::commands::{Command, Flags, OnKey, Run, wrong_arity};
use crate::desk::Desk;
use crate::protocol::{Failure, Outcome, Reply, Request, is_error};
use crate::session::gather::{Fold, Gather};
use crate::session::{Address, Ending};
use crate::stats::{Count, Of};

/// The parts of a command: one for each of these threads, or one for each key, to which this many
/// arguments belong.
#[derive(Clone, Copy)]
enum Parts<'a> {
    Threads(&'a [usize]),
    Keys(usize),
}

impl Desk {
    /// Runs one request, or sends it to the threads that can.
    pub(crate) fn dispatch(&mut self, slot: usize, request: &Request<'_>) {
        if request.len() == 0 {
            return;
        }
        let found = self.lookup.find(request);
        let number = found.as_ref().ok().copied();
        let Err(failure) = found.and_then(|number| self.run(slot, number, request)) else { return };
        self.stats.add(Count::Errors, 1);
        if let Some(number) = number {
            self.stats.add_of(number, Of::Rejected, 1);
        }
        self.append(slot, |reply| reply.error(&failure));
    }

    fn run(&mut self, slot: usize, number: u16, request: &Request<'_>) -> Outcome {
        let command = &COMMANDS[usize::from(number)];
        self.admit(slot, command, request)?;
        let sample = self.stats.start();
        match command.run {
            Run::Key(run) => self.run_for_key(slot, number, run, request),
            Run::EachKey(_, step, fold) => self.run_parts((slot, number), fold, Parts::Keys(step), request),
            Run::Threads(choose, _, fold) => {
                let threads = choose(self, request)?;
                self.run_parts((slot, number), fold, Parts::Threads(&threads), request);
            }
            Run::Client(run) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let is_resp3 = self.sessions[slot].is_resp3;
                let mut reply = Reply { out: &mut scratch, is_resp3 };
                reply.try_with(|reply| run(self, slot, request, reply));
                self.note_reply(number, &scratch);
                self.append(slot, |reply| reply.out.extend_from_slice(&scratch));
                self.keep_scratch(scratch);
            }
            Run::Container => {}
        }
        self.stats.add_of(number, Of::Calls, 1);
        self.stats.stop(sample, number);
        Ok(())
    }

    /// Whether a client may run a command now.
    fn admit(&mut self, slot: usize, command: &Command, request: &Request<'_>) -> Outcome {
        let session = &self.sessions[slot];
        let (flags, name) = (command.flags, command.name);
        if !command.accepts(request.len()) {
            return Err(wrong_arity(name));
        }
        if !session.is_authenticated && !flags.has(Flags::NO_AUTH) {
            return Err(Failure("NOAUTH", "Authentication required.".into()));
        }
        if flags.has(Flags::DENYOOM) && self.is_out_of_memory() {
            return Err(Failure("OOM", "command not allowed when used memory > 'maxmemory'.".into()));
        }
        if session.has_subscribed() && !session.is_resp3 && !flags.has(Flags::SUBSCRIBED) {
            let allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET";
            return Err(format!("Can't execute '{name}': only {allowed} are allowed in this context").into());
        }
        Ok(())
    }

    fn is_out_of_memory(&self) -> bool {
        let limit = self.settings.max_memory;
        limit > 0 && {
            self.publish_memory();
            self.shared.used_memory() > limit
        }
    }

    /// Replies to a client, after all that it has asked for before.
    pub(crate) fn append(&mut self, slot: usize, write: impl FnOnce(&mut Reply<'_>)) {
        let session = &mut self.sessions[slot];
        let is_resp3 = session.is_resp3;
        session.replies.append(|out| write(&mut Reply { out, is_resp3 }));
    }

    pub(crate) fn note_reply(&mut self, number: u16, reply: &[u8]) {
        if is_error(reply) {
            self.stats.add_of(number, Of::Failed, 1);
            self.stats.add(Count::Errors, 1);
        }
    }

    fn run_for_key(&mut self, slot: usize, number: u16, run: OnKey, request: &Request<'_>) {
        let (hash, thread) = self.shared.placement.of(request.arg(1));
        let request = Request { hash, ..*request };
        let name = self.sessions[slot].id;
        let session = &mut self.sessions[slot];
        let is_resp3 = session.is_resp3;
        if thread != self.number {
            let home = Address { session: name, reply: session.replies.expect(None), part: 0 };
            return self.forward(thread, home, (number, is_resp3), &request);
        }
        let mut has_failed = false;
        session.replies.append(|out| {
            let start = out.len();
            Reply { out, is_resp3 }.try_with(|reply| run(&mut self.keyspace, &request, reply));
            has_failed = is_error(&out[start..]);
        });
        self.note_reply(number, if has_failed { b"-" } else { b"" });
        self.publish_events();
    }

    /// Runs a part of a command in each of these threads, or, if `step` arguments belong to each key,
    /// in each key's thread.
    fn run_parts(&mut self, (slot, number): (usize, u16), fold: Fold, to: Parts<'_>, request: &Request<'_>) {
        let (spans, session) = (request.spans, &mut self.sessions[slot]);
        let (session_id, is_resp3) = (session.id, session.is_resp3);
        let parts = match to {
            Parts::Keys(step) => (spans.len() - 1) / step,
            Parts::Threads(threads) => threads.len(),
        };
        let mut gather = Gather::new(fold, parts, is_resp3);
        gather.about.extend(request.from(1).filter(|_| fold == Fold::Info).map(<[u8]>::to_ascii_lowercase));
        let reply = session.replies.expect(Some(gather));
        for part in 0..parts {
            let home = Address { session: session_id, reply, part: part as u32 };
            match to {
                Parts::Threads(threads) => self.run_in(threads[part], home, (number, is_resp3), request),
                Parts::Keys(step) => {
                    let key = 1 + part * step;
                    let (hash, thread) = self.shared.placement.of(request.arg(key));
                    let one = [spans[0], spans[key], spans[key + step - 1]];
                    let one = Request { bytes: request.bytes, spans: &one[..1 + step], hash };
                    self.run_in(thread, home, (number, is_resp3), &one);
                }
            }
        }
        self.publish_events();
    }

    /// Runs a part of a command in its thread, which may be this one.
    fn run_in(&mut self, thread: usize, home: Address, how: (u16, bool), request: &Request<'_>) {
        if thread != self.number {
            return self.forward(thread, home, how, request);
        }
        let mut part = Vec::new();
        self.run_part(how.0, request, &mut Reply { out: &mut part, is_resp3: how.1 });
        self.answer(home, how.0, &part);
    }

    fn forward(&mut self, to: usize, home: Address, (number, is_resp3): (u16, bool), request: &Request<'_>) {
        self.stats.add(Count::Forwarded, 1);
        self.mailbox.batch_for(to).add(Some(home), (number, is_resp3, request.hash), request.from(0));
    }

    /// The choice of commands that concern all threads.
    pub(crate) fn everywhere(&self, _: &Request<'_>) -> Result<Vec<usize>, Failure> {
        Ok((0..self.shared.threads()).collect())
    }

    /// Asks all threads for the figures that a metrics request gets.
    pub(crate) fn ask_for_metrics(&mut self, slot: usize) {
        let request = Request { bytes: &[], spans: &[], hash: 0 };
        let (number, threads) = (self.lookup.named(METRICS.as_bytes()), self.everywhere(&request));
        if let (Some(number), Ok(threads)) = (number, threads) {
            self.run_parts((slot, number), Fold::Metrics, Parts::Threads(&threads), &request);
        }
        self.sessions[slot].ending = Ending::WhenAnswered;
    }
}
