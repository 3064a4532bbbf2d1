//! Channels: subscriptions, messages, and the events of keys as messages.
//!
//! A thread knows the subscribers among its own clients. The others know whether it has any.

use std::collections::HashMap;

use super::*;
use crate::session::{Ending, SessionId};
use crate::stats::Figure;

/// A subscriber for which more bytes than this wait is cut off: nothing else slows publishers down.
const MAX_WAITING: usize = 32 * 1024 * 1024;

pub(crate) type Channels = HashMap<Box<[u8]>, Vec<SessionId>>;

pub(super) fn subscribe(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let name = desk.sessions[request.client].id;
    let session = &mut desk.sessions[request.client];
    for channel in request.from(1) {
        if session.channels.insert(channel.into()) {
            session.channel_bytes += bytes_of(channel);
            desk.channels.entry(channel.into()).or_default().push(name);
        }
        confirm(reply, "subscribe", Some(channel), session.channels.len());
    }
    desk.shared.set_channels(desk.number, desk.channels.len());
    Ok(())
}

pub(super) fn unsubscribe(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let mut channels: Vec<Box<[u8]>> = request.from(1).map(Box::from).collect();
    if request.len() == 1 {
        channels.extend(desk.sessions[request.client].channels.iter().cloned());
    }
    if channels.is_empty() {
        confirm(reply, "unsubscribe", None, 0);
    }
    for channel in channels {
        let left = leave(desk, request.client, &channel);
        confirm(reply, "unsubscribe", Some(&channel), left);
    }
    Ok(())
}

fn confirm(reply: &mut Reply<'_>, what: &str, channel: Option<&[u8]>, subscriptions: usize) {
    reply.list(b'>', 3);
    reply.bulk(what);
    reply.bulk_or_null(channel);
    reply.integer(subscriptions as i64);
}

/// Ends one subscription of a client. Returns how many it has left.
fn leave(desk: &mut Desk, slot: usize, channel: &[u8]) -> usize {
    let name = desk.sessions[slot].id;
    if let Some(subscribers) = desk.channels.get_mut(channel) {
        subscribers.retain(|&it| it != name);
        if subscribers.is_empty() {
            desk.channels.remove(channel);
        }
    }
    desk.shared.set_channels(desk.number, desk.channels.len());
    let session = &mut desk.sessions[slot];
    if session.channels.remove(channel) {
        session.channel_bytes -= bytes_of(channel);
    }
    session.channels.len()
}

/// What a subscription takes: the channel's name twice, and its places in the client's set and in the
/// thread's list.
fn bytes_of(channel: &[u8]) -> usize {
    2 * (channel.len() + size_of::<Box<[u8]>>()) + size_of::<Vec<SessionId>>() + size_of::<SessionId>()
}

pub(crate) fn leave_all(desk: &mut Desk, slot: usize) {
    for channel in std::mem::take(&mut desk.sessions[slot].channels) {
        leave(desk, slot, &channel);
    }
}

/// The threads with subscribers, and this one: then there is a reply in any case.
pub(super) fn subscribed(desk: &Desk, _: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let is_chosen = |&thread: &usize| thread == desk.number || desk.shared.channels(thread) > 0;
    Ok((0..desk.shared.threads()).filter(is_chosen).collect())
}

/// PUBLISH in one thread: replies the number of its clients that get the message.
pub(crate) fn publish(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (channel, text) = (request.arg(1), request.arg(2));
    let Some(subscribers) = desk.channels.get(channel) else { return Ok(reply.integer(0)) };
    for &name in subscribers {
        let session = &mut desk.sessions[name.slot];
        session.push(|reply| {
            reply.list(b'>', 3);
            [b"message", channel, text].into_iter().for_each(|part| reply.bulk(part));
        });
        if session.replies.waiting() > MAX_WAITING && session.ending != Ending::Now {
            session.ending = Ending::Now;
            desk.stats.add(Figure::SlowClosed, 1);
        }
        if !std::mem::replace(&mut session.is_dirty, true) {
            desk.dirty.push(name.slot);
        }
    }
    Ok(reply.integer(subscribers.len() as i64))
}
