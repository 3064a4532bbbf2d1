//! From bytes to requests.

use crate::desk::Desk;
use crate::protocol::parser::Parser;
use crate::session::{Ending, Kind};
use crate::stats::{Count, metrics};

/// Room is made for this much of an announced argument before any of it has come.
const LARGEST_RESERVE: usize = 1024 * 1024;

impl Desk {
    /// A client has sent these bytes.
    pub(crate) fn receive(&mut self, slot: usize, bytes: &[u8]) {
        self.stats.add(Count::BytesIn, bytes.len() as u64);
        self.put_off(slot);
        let mut input = std::mem::take(&mut self.sessions[slot].input);
        if input.is_empty() {
            let consumed = self.consume(slot, bytes);
            input.extend_from_slice(&bytes[consumed..]);
            self.keep_input(slot, input);
        } else {
            input.extend_from_slice(bytes);
            self.consume_input(slot, input);
        }
    }

    /// Takes what a client had sent when it was owed too much.
    pub(crate) fn resume(&mut self, slot: usize) {
        if let Some(session) = self.sessions.get_mut(slot) {
            let input = std::mem::take(&mut session.input);
            self.consume_input(slot, input);
        }
    }

    fn consume_input(&mut self, slot: usize, mut input: Vec<u8>) {
        let consumed = self.consume(slot, &input);
        input.drain(..consumed);
        self.keep_input(slot, input);
    }

    fn keep_input(&mut self, slot: usize, mut input: Vec<u8>) {
        let session = &mut self.sessions[slot];
        if input.is_empty() {
            input = Vec::new();
            session.parser.shrink();
        } else {
            input.reserve_exact(session.parser.wants(input.len()).min(LARGEST_RESERVE));
        }
        session.input = input;
        self.settle(slot);
        self.touch(slot);
    }

    /// Runs the complete requests at the start of a buffer, and returns their length.
    fn consume(&mut self, slot: usize, buffer: &[u8]) -> usize {
        let session = &mut self.sessions[slot];
        let mut consumed = 0;
        if session.kind == Kind::Metrics {
            self.consume_http(slot, buffer);
        } else {
            // Out of the session, for its arguments are read while the session is written.
            let mut parser = std::mem::take(&mut session.parser);
            while self.listens_to(slot) {
                match self.next_request(slot, &mut parser, &buffer[consumed..]) {
                    Some(len) => consumed += len,
                    None => break,
                }
            }
            self.sessions[slot].parser = parser;
        }
        // What a client has sent after its end is dropped.
        if self.sessions[slot].ending == Ending::Open { consumed } else { buffer.len() }
    }

    /// Whether a client is listened to: it is not to end, and not owed too much.
    fn listens_to(&mut self, slot: usize) -> bool {
        let allowance = self.allowance();
        let session = &mut self.sessions[slot];
        session.is_paused = session.is_owed_too_much(allowance);
        session.ending == Ending::Open && !session.is_paused
    }

    /// Runs the first request of a buffer. Returns its length; `None` if it is not complete, or not
    /// a request, which ends the connection.
    fn next_request(&mut self, slot: usize, parser: &mut Parser, buffer: &[u8]) -> Option<usize> {
        match parser.parse(buffer, self.sessions[slot].is_authenticated) {
            Ok(complete) => {
                let complete = complete?;
                self.dispatch(slot, &parser.request(buffer, complete));
                Some(complete.len)
            }
            Err(violation) => {
                self.stats.add(Count::ProtocolErrors, 1);
                self.append(slot, |reply| reply.error(&violation));
                self.sessions[slot].ending = Ending::WhenAnswered;
                None
            }
        }
    }

    /// A request for metrics: whatever its path is, it is answered once.
    fn consume_http(&mut self, slot: usize, buffer: &[u8]) {
        if metrics::is_complete(buffer) {
            self.ask_for_metrics(slot);
        } else if buffer.len() > metrics::MAX_REQUEST {
            self.sessions[slot].ending = Ending::Now;
        }
    }
}
