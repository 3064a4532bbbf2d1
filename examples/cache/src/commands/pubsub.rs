//! Channels: subscriptions, messages, and the events of keys as messages.
//!
//! A thread knows the subscribers among its own clients. The others know whether it has any.

use std::collections::HashMap;

use super::glob::matches;
use super::*;
use crate::session::{Ending, SessionId};
use crate::stats::Figure;

/// A subscriber for which more bytes than this wait is cut off: nothing else slows publishers down.
const MAX_WAITING: usize = 32 * 1024 * 1024;
/// Keys that are due wait while more bytes than this wait for a subscriber of events that does read.
pub(crate) const PORTION: usize = 1024 * 1024;

/// The subscribers of channels, and those of patterns of channels.
pub(crate) type Channels = [HashMap<Box<[u8]>, Vec<SessionId>>; 2];

pub(super) fn subscribe<const KIND: usize>(
    desk: &mut Desk,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let id = desk.sessions[request.client].id;
    let session = &mut desk.sessions[request.client];
    for channel in request.from(1) {
        if session.channels[KIND].insert(channel.into()) {
            session.channel_bytes += bytes_of(channel);
            desk.channels[KIND].entry(channel.into()).or_default().push(id);
        }
        confirm(reply, name(request), Some(channel), session.subscriptions());
    }
    Ok(count(desk))
}

pub(super) fn unsubscribe<const KIND: usize>(
    desk: &mut Desk,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let slot = request.client;
    let mut channels: Vec<Box<[u8]>> = request.from(1).map(Box::from).collect();
    if request.len() == 1 {
        channels.extend(desk.sessions[slot].channels[KIND].iter().cloned());
    }
    if channels.is_empty() {
        confirm(reply, name(request), None, desk.sessions[slot].subscriptions());
    }
    for channel in channels {
        leave(desk, slot, KIND, &channel);
        confirm(reply, name(request), Some(&channel), desk.sessions[slot].subscriptions());
    }
    Ok(count(desk))
}

fn confirm(reply: &mut Reply<'_>, what: &str, channel: Option<&[u8]>, subscriptions: usize) {
    reply.list(b'>', 3);
    reply.bulk(what);
    reply.bulk_or_null(channel);
    reply.integer(subscriptions as i64);
}

/// Tells the other threads how many channels and patterns this one has.
fn count(desk: &Desk) {
    let [channels, patterns] = desk.channels.each_ref().map(HashMap::len);
    desk.shared.set_channels(desk.number, channels + patterns);
    desk.stats.set(Figure::Patterns, patterns);
}

/// Ends one subscription of a client.
fn leave(desk: &mut Desk, slot: usize, kind: usize, channel: &[u8]) {
    let session = &mut desk.sessions[slot];
    if session.channels[kind].remove(channel) {
        session.channel_bytes -= bytes_of(channel);
    }
    if let Some(subscribers) = desk.channels[kind].get_mut(channel) {
        subscribers.retain(|&it| it != session.id);
        if subscribers.is_empty() {
            desk.channels[kind].remove(channel);
        }
    }
}

/// What a subscription takes: the channel's name twice, and its places in the client's set and in the
/// thread's list.
fn bytes_of(channel: &[u8]) -> usize {
    2 * (channel.len() + size_of::<Box<[u8]>>()) + size_of::<Vec<SessionId>>() + size_of::<SessionId>()
}

pub(crate) fn leave_all(desk: &mut Desk, slot: usize) {
    for (kind, channels) in std::mem::take(&mut desk.sessions[slot].channels).into_iter().enumerate() {
        channels.iter().for_each(|channel| leave(desk, slot, kind, channel));
    }
    count(desk);
}

/// The threads with subscribers, and this one: then there is a reply in any case.
pub(super) fn subscribed(desk: &Desk, _: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let is_chosen = |&thread: &usize| thread == desk.number || desk.shared.channels(thread) > 0;
    Ok((0..desk.shared.threads()).filter(is_chosen).collect())
}

/// PUBLISH in one thread: replies the number of its subscriptions that get the message.
pub(crate) fn publish(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (channel, text) = (request.arg(1), request.arg(2));
    let is_event = channel.starts_with(b"__key");
    let [channels, patterns] = &desk.channels;
    let by_pattern = patterns.iter().filter(|(pattern, _)| matches(pattern, channel));
    let all = channels.get(channel).map(|to| (None, to)).into_iter();
    let (all, mut sent) = (all.chain(by_pattern.map(|(pattern, to)| (Some(&pattern[..]), to))), 0);
    for (pattern, id) in all.flat_map(|(pattern, to)| to.iter().map(move |id| (pattern, id))) {
        let session = &mut desk.sessions[id.slot];
        session.push(|reply| {
            reply.list(b'>', 3 + usize::from(pattern.is_some()));
            reply.bulk(if pattern.is_some() { "pmessage" } else { "message" });
            pattern.into_iter().chain([channel, text]).for_each(|part| reply.bulk(part));
        });
        sent += 1;
        let waiting = session.waiting();
        if is_event && waiting > PORTION && session.behind_since.is_none() {
            session.behind_since = Some(desk.keyspace.time.tick());
            desk.behind.push(*id);
        }
        if waiting > MAX_WAITING && session.ending != Ending::Now {
            session.ending = Ending::Now;
            desk.stats.add(Figure::SlowClosed, 1);
        }
        if !std::mem::replace(&mut session.is_dirty, true) {
            desk.dirty.push(id.slot);
        }
    }
    Ok(reply.integer(sent))
}

/// PUBSUB CHANNELS and NUMPAT: the thread's channels that match, or its patterns.
pub(super) fn names<const KIND: usize>(
    desk: &mut Desk,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let pattern = request.from(2).next().unwrap_or(b"*");
    let all = desk.channels[KIND].keys();
    Ok(reply.bulks(&all.filter(|name| matches(pattern, name)).collect::<Vec<_>>()))
}

/// PUBSUB NUMSUB: each channel with the number of its subscribers in this thread.
pub(super) fn numbers(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    reply.array(2 * (request.len() - 2));
    for channel in request.from(2) {
        reply.bulk(channel);
        reply.bulk_integer(desk.channels[0].get(channel).map_or(0, Vec::len) as i64);
    }
    Ok(())
}
