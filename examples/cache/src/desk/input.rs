//! From bytes to requests.

use crate::desk::Desk;
use crate::protocol::parser::{Parser, Violation};
use crate::protocol::reply::Reply;
use crate::protocol::request::Request;
use crate::session::{Ending, Kind};
use crate::stats::{Count, metrics};

impl Desk {
    /// A client has sent these bytes.
    pub(crate) fn receive(&mut self, slot: u32, bytes: &[u8]) {
        self.stats.add(Count::BytesIn, bytes.len() as u64);
        self.put_off(slot);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let mut input = std::mem::take(&mut session.input);
        if input.is_empty() {
            let consumed = self.consume(slot, bytes);
            input.extend_from_slice(&bytes[consumed..]);
        } else {
            input.extend_from_slice(bytes);
            let consumed = self.consume(slot, &input);
            input.drain(..consumed);
        }
        self.keep_input(slot, input);
    }

    /// Takes what a client had sent when it was owed too much.
    pub(crate) fn resume(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let mut input = std::mem::take(&mut session.input);
        let consumed = self.consume(slot, &input);
        input.drain(..consumed);
        self.keep_input(slot, input);
    }

    fn keep_input(&mut self, slot: u32, mut input: Vec<u8>) {
        if let Some(session) = self.sessions.get_mut(slot) {
            if input.is_empty() {
                input = Vec::new();
                session.parser.shrink();
            } else {
                input.reserve_exact(session.parser.wants(input.len()).min(LARGEST_RESERVE));
            }
            session.input = input;
        }
        self.settle(slot);
        self.touch(slot);
    }

    /// Runs the complete requests at the start of a buffer, and returns their length.
    fn consume(&mut self, slot: u32, buffer: &[u8]) -> usize {
        let Some(session) = self.sessions.get_mut(slot) else { return buffer.len() };
        if session.kind == Kind::Metrics {
            return self.consume_http(slot, buffer);
        }
        // Out of the session, for its arguments are read while the session is written.
        let mut parser = std::mem::take(&mut session.parser);
        let mut consumed = 0;
        while self.listens_to(slot) {
            match self.next_request(slot, &mut parser, &buffer[consumed..]) {
                Some(len) => consumed += len,
                None => break,
            }
        }
        let Some(session) = self.sessions.get_mut(slot) else { return buffer.len() };
        session.parser = parser;
        // Nobody reads what a client has sent after its end.
        if session.ending == Ending::Open { consumed } else { buffer.len() }
    }

    /// Whether a client is listened to: it is not to end, and not owed too much.
    fn listens_to(&mut self, slot: u32) -> bool {
        let allowance = self.allowance();
        let Some(session) = self.sessions.get_mut(slot) else { return false };
        session.is_paused = session.is_owed_too_much(allowance);
        session.ending == Ending::Open && !session.is_paused
    }

    /// Runs the first request of a buffer. Returns its length; `None` if it is not complete, or not
    /// a request.
    fn next_request(&mut self, slot: u32, parser: &mut Parser, buffer: &[u8]) -> Option<usize> {
        let is_trusted = self.sessions.get_mut(slot)?.is_authenticated;
        match parser.parse(buffer, is_trusted) {
            Ok(complete) => {
                let complete = complete?;
                let (bytes, spans) = parser.request(buffer, complete);
                self.dispatch(slot, &Request::new(bytes, spans, 0));
                Some(complete.len)
            }
            Err(violation) => {
                self.reject(slot, &violation);
                None
            }
        }
    }

    /// Tells a client what it did wrong, and ends the connection.
    fn reject(&mut self, slot: u32, Violation(text): &Violation) {
        self.stats.add(Count::ProtocolErrors, 1);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.ending = Ending::WhenAnswered;
        session.replies.append(|out| {
            Reply { out, is_resp3: false }.error(format!("Protocol error: {text}"));
        });
    }

    /// A request for metrics: whatever its path is, it is answered once.
    fn consume_http(&mut self, slot: u32, buffer: &[u8]) -> usize {
        if metrics::is_complete(buffer) {
            self.ask_for_metrics(slot);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return buffer.len() };
        if buffer.len() > metrics::MAX_REQUEST {
            session.ending = Ending::Now;
        }
        if session.ending == Ending::Open { 0 } else { buffer.len() }
    }
}

/// Room is made for so much of an announced argument before any of it has come.
const LARGEST_RESERVE: usize = 1024 * 1024;
