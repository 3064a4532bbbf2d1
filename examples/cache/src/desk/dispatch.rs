//! From requests to commands, and from commands to the threads that run them.

use crate::commands::table::{COMMANDS, Found, METRICS};
use crate::commands::{Command, Failure, Flags, OnKey, Run, Threads, lossy, wrong_arity};
use crate::desk::Desk;
use crate::protocol::reply::{Reply, is_error};
use crate::protocol::request::Request;
use crate::session::gather::{Fold, Gather};
use crate::session::{Address, Ending};
use crate::stats::{Count, Of};

/// Bytes of names and arguments that the text of an error repeats.
const QUOTED: usize = 128;

/// Why a command is not run: the code and the text of an error.
type Refusal = (&'static str, Failure);

impl Desk {
    /// Runs one request, or sends it to those who can.
    pub(crate) fn dispatch(&mut self, slot: u32, request: &Request<'_>) {
        if request.len() == 0 {
            return;
        }
        let number = match self.lookup.find(request) {
            Found::Command(number) => number,
            other => return self.refuse(slot, None, unknown(request, &other)),
        };
        let command = &COMMANDS[usize::from(number)];
        if let Err(refusal) = self.admit(slot, command, request) {
            return self.refuse(slot, Some(number), refusal);
        }
        self.stats.add_of(number, Of::Calls, 1);
        let sample = self.stats.start();
        match command.run {
            Run::Key(run) => self.run_for_key(slot, number, run, request),
            Run::EachKey(_, step, fold) => self.run_parts(slot, number, (fold, step, Vec::new()), request),
            Run::Threads(check, _, fold) => match check(self, request) {
                Ok(threads) => self.run_parts(slot, number, self.chosen(threads, fold), request),
                Err(text) => self.refuse(slot, Some(number), ("ERR", text)),
            },
            Run::Client(run) => self.reply_with(slot, number, |desk, reply| run(desk, slot, request, reply)),
            Run::Container => {}
        }
        self.stats.stop(sample, number);
    }

    /// Whether a client may run a command now.
    fn admit(&mut self, slot: u32, command: &Command, request: &Request<'_>) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get_mut(slot) else { return Ok(()) };
        let has_pairs = !matches!(command.run, Run::EachKey(_, 2, _)) || request.len() % 2 == 1;
        if !command.accepts(request.len()) || !has_pairs {
            return Err(("ERR", wrong_arity(command.name)));
        }
        if !session.is_authenticated && !command.flags.has(Flags::NO_AUTH) {
            return Err(("NOAUTH", "Authentication required.".to_owned()));
        }
        let is_subscriber = session.has_subscribed() && !session.is_resp3;
        if command.flags.has(Flags::DENYOOM) && self.is_out_of_memory() {
            return Err(("OOM", "command not allowed when used memory > 'maxmemory'.".to_owned()));
        }
        if is_subscriber && !command.flags.has(Flags::SUBSCRIBED) {
            let text =
                "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
            return Err(("ERR", format!("Can't execute '{}': {text}", command.name)));
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

    fn refuse(&mut self, slot: u32, number: Option<u16>, (code, text): Refusal) {
        self.stats.add(Count::Errors, 1);
        if let Some(number) = number {
            self.stats.add_of(number, Of::Rejected, 1);
        }
        if let Some(session) = self.sessions.get_mut(slot) {
            let is_resp3 = session.is_resp3;
            session.replies.append(|out| Reply { out, is_resp3 }.coded_error(code, text));
        }
    }

    /// Replies at once.
    fn reply_with(&mut self, slot: u32, number: u16, write: impl FnOnce(&mut Self, &mut Reply<'_>)) {
        let is_resp3 = self.sessions.get_mut(slot).is_some_and(|session| session.is_resp3);
        let mut scratch = std::mem::take(&mut self.scratch);
        write(self, &mut Reply { out: &mut scratch, is_resp3 });
        if is_error(&scratch) {
            self.stats.note_failure(number);
        }
        if let Some(session) = self.sessions.get_mut(slot) {
            session.replies.append(|out| out.extend_from_slice(&scratch));
        }
        self.keep_scratch(scratch);
    }

    fn run_for_key(&mut self, slot: u32, number: u16, run: OnKey, request: &Request<'_>) {
        let (hash, thread) = self.shared.placement.of(request.arg(1));
        let name = self.sessions.name(slot);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let is_resp3 = session.is_resp3;
        if thread != self.number {
            let home = Address { session: name, reply: session.replies.expect(None), part: 0 };
            return self.forward(thread, home, (number, is_resp3), &request.with_hash(hash));
        }
        let mut has_failed = false;
        session.replies.append(|out| {
            let start = out.len();
            run(&mut self.keyspace, &request.with_hash(hash), &mut Reply { out, is_resp3 });
            has_failed = is_error(&out[start..]);
        });
        if has_failed {
            self.stats.note_failure(number);
        }
        self.publish_events();
    }

    fn forward(&mut self, to: usize, home: Address, (number, is_resp3): (u16, bool), request: &Request<'_>) {
        self.stats.add(Count::Forwarded, 1);
        self.mailbox.batch_for(to).add(Some(home), (number, is_resp3, request.hash), request.from(0));
    }

    /// Runs a command in parts: one for each of the threads, or, if so many arguments belong to a
    /// key, one for each key, in the key's thread.
    fn run_parts(
        &mut self,
        slot: u32,
        number: u16,
        (fold, step, threads): (Fold, usize, Vec<usize>),
        request: &Request<'_>,
    ) {
        let parts = (request.len().saturating_sub(1)).checked_div(step).unwrap_or(threads.len());
        let Some((home, is_resp3)) = self.expect_parts(slot, (fold, parts), request) else { return };
        for part in 0..parts {
            let spans = (step > 0).then(|| request.part(1 + part * step, step));
            let one = spans.as_ref().map_or(*request, |spans| request.with_spans(&spans[..1 + step]));
            let (hash, thread) = match threads.get(part) {
                Some(&thread) => (0, thread),
                None => self.shared.placement.of(one.arg(1)),
            };
            self.run_in(
                thread,
                Address { part: part as u32, ..home },
                (number, is_resp3),
                &one.with_hash(hash),
            );
        }
        self.publish_events();
    }

    /// Reserves the place of a reply in parts. Returns its address, and the client's protocol.
    fn expect_parts(
        &mut self,
        slot: u32,
        (fold, parts): (Fold, usize),
        request: &Request<'_>,
    ) -> Option<(Address, bool)> {
        let name = self.sessions.name(slot);
        let session = self.sessions.get_mut(slot)?;
        let mut gather = Gather::new(fold, parts, session.is_resp3);
        gather.about.extend(request.from(1).filter(|_| fold == Fold::Info).map(<[u8]>::to_ascii_lowercase));
        let reply = session.replies.expect(Some(gather));
        Some((Address { session: name, reply, part: 0 }, session.is_resp3))
    }

    fn run_in(&mut self, thread: usize, home: Address, how: (u16, bool), request: &Request<'_>) {
        if thread != self.number {
            return self.forward(thread, home, how, request);
        }
        let mut part = Vec::new();
        self.run_part(how.0, request, &mut Reply { out: &mut part, is_resp3: how.1 });
        self.answer(home, how.0, &part);
    }

    /// The threads that a command is for, and how their replies become one.
    fn chosen(&self, threads: Threads, fold: Fold) -> (Fold, usize, Vec<usize>) {
        let all = 0..self.shared.threads();
        match threads {
            Threads::All => (fold, 0, all.collect()),
            // This thread, too: then there is a reply even if nobody has subscribed.
            Threads::Subscribed => {
                let is_chosen = |it: &usize| *it == self.number || self.shared.has_subscribers(*it);
                (fold, 0, all.filter(is_chosen).collect())
            }
            Threads::One(thread) => (Fold::Same, 0, vec![thread]),
        }
    }

    /// Asks all threads for what a metrics request gets.
    pub(crate) fn ask_for_metrics(&mut self, slot: u32) {
        let Some(number) = self.lookup.named(METRICS.as_bytes()) else { return };
        let request = Request::new(&[], &[], 0);
        self.run_parts(slot, number, self.chosen(Threads::All, Fold::Metrics), &request);
        if let Some(session) = self.sessions.get_mut(slot) {
            session.ending = Ending::WhenAnswered;
        }
    }
}

/// The error for a command that does not exist.
fn unknown(request: &Request<'_>, found: &Found) -> Refusal {
    let cut = |arg: &[u8], len: usize| lossy(&arg[..arg.len().min(len)]).into_owned();
    let name = cut(request.arg(0), QUOTED);
    if *found == Found::UnknownSubcommand {
        let (sub, container) = (cut(request.arg(1), QUOTED), name.to_uppercase());
        return ("ERR", format!("unknown subcommand '{sub}'. Try {container} HELP."));
    }
    let mut args = String::new();
    for arg in request.from(1) {
        if args.len() >= QUOTED {
            break;
        }
        args += &format!("'{}' ", cut(arg, QUOTED - args.len()));
    }
    ("ERR", format!("unknown command '{name}', with args beginning with: {args}"))
}
