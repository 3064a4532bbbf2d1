//! From bytes to requests.

use super::*;
use crate::clock::Step;
use crate::worker::READ_AT_ONCE;

/// Room is made for this much of an announced argument before any of it has come. When it is full, for
/// `GROWTH` times as much as has come: few bytes are copied more than once.
const LARGEST_RESERVE: usize = 1024 * 1024;
const GROWTH: usize = 7;
/// Besides: for the options that follow a value.
const TAIL: usize = 64;

impl Desk {
    /// A client has sent these bytes; none if it is listened to again, or if they stand in its input.
    pub(crate) fn receive(&mut self, slot: usize, bytes: &[u8]) {
        self.stats.add(Figure::BytesIn, bytes.len());
        self.put_off(slot);
        let mut input = std::mem::take(&mut self.sessions[slot].input);
        if input.is_empty() {
            let consumed = self.consume(slot, bytes);
            input.extend_from_slice(&bytes[consumed..]);
        } else {
            input.extend_from_slice(bytes);
            let consumed = self.consume(slot, &input);
            input.drain(..consumed);
        }
        let session = &mut self.sessions[slot];
        if input.is_empty() {
            session.parser.shrink();
        } else {
            let wants = session.parser.wants(input.len());
            if input.capacity() - input.len() < wants.min(READ_AT_ONCE) {
                input.reserve_exact(TAIL + wants.min(LARGEST_RESERVE.max(input.len() * GROWTH)));
            }
            session.input = input;
        }
        if session.has_requests {
            self.resuming.push(slot);
        }
        self.settle(slot);
        self.touch(slot);
    }

    /// Runs the complete requests at the start of a buffer, and returns their length.
    fn consume(&mut self, slot: usize, buffer: &[u8]) -> usize {
        // Out of the session, for its arguments are read while the session is written.
        let mut parser = std::mem::take(&mut self.sessions[slot].parser);
        let (mut consumed, step) = (0, Step::begin());
        self.sessions[slot].has_requests = false;
        self.go_on(slot, false);
        while self.listens_to(slot)
            && let Some(len) = self.next_request(slot, &mut parser, &buffer[consumed..])
        {
            consumed += len;
            if step.is_over() {
                self.sessions[slot].has_requests = true;
                break;
            }
        }
        let session = &mut self.sessions[slot];
        session.parser = parser;
        // What a client has sent after its end is dropped.
        if matches!(session.ending, Ending::Open | Ending::MovesTo(_)) { consumed } else { buffer.len() }
    }

    /// Whether a client is listened to: it is not to end, it is not owed too much, and the other threads
    /// keep up.
    fn listens_to(&mut self, slot: usize) -> bool {
        let allowance = self.allowance();
        let session = &mut self.sessions[slot];
        let has_more = !session.rest.is_empty();
        session.is_paused = has_more || session.replies.are_too_many(allowance) || self.mailbox.is_clogged;
        session.ending == Ending::Open && !session.is_paused
    }

    /// Runs the first request of a buffer. Returns its length; `None` if it is not complete, or left to
    /// another thread, or not a request, which ends the connection.
    fn next_request(&mut self, slot: usize, parser: &mut Parser, buffer: &[u8]) -> Option<usize> {
        match parser.parse(buffer, self.trusts(slot)) {
            Ok(complete) => {
                let len = complete?;
                self.sessions[slot].begin();
                self.dispatch(slot, &parser.request(buffer));
                Some(len).filter(|_| !matches!(self.sessions[slot].ending, Ending::MovesTo(_)))
            }
            Err(violation) => {
                self.stats.add(Figure::ProtocolErrors, 1);
                let session = &mut self.sessions[slot];
                session.begin();
                session.reply(|reply| reply.error(&violation));
                session.ending = Ending::WhenAnswered;
                None
            }
        }
    }
}
