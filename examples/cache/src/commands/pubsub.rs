//! Channels: subscriptions, messages, and the events of keys as messages.
//!
//! A thread knows the subscribers among its own clients. The others know whether it has any.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::commands::{Failure, Threads};
use crate::desk::Desk;
use crate::protocol::reply::Reply;
use crate::protocol::request::Request;
use crate::session::{Ending, SessionId};
use crate::stats::Count;

pub(crate) const PUBLISH: &str = "publish";
/// A subscriber for whom more bytes than this wait is cut off: nothing else slows publishers down.
const MAX_WAITING: usize = 32 * 1024 * 1024;

/// A thread's subscribers.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    subscribers: HashMap<Box<[u8]>, Vec<SessionId>>,
}

impl Channels {
    pub(crate) fn len(&self) -> usize {
        self.subscribers.len()
    }

    fn add(&mut self, channel: &[u8], subscriber: SessionId) {
        self.subscribers.entry(channel.into()).or_default().push(subscriber);
    }

    fn remove(&mut self, channel: &[u8], subscriber: SessionId) {
        let Some(subscribers) = self.subscribers.get_mut(channel) else { return };
        subscribers.retain(|&it| it != subscriber);
        if subscribers.is_empty() {
            self.subscribers.remove(channel);
        }
    }
}

pub(crate) fn subscribe(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    let name = desk.sessions.name(slot);
    for channel in request.from(1) {
        let Some(session) = desk.sessions.get_mut(slot) else { return };
        if !session.channels.iter().any(|known| **known == *channel) {
            session.channels.push(channel.into());
            desk.channels.add(channel, name);
        }
        confirm(reply, "subscribe", Some(channel), session.channels.len());
    }
    publish_count(desk);
}

pub(crate) fn unsubscribe(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    let Some(session) = desk.sessions.get_mut(slot) else { return };
    let all = session.channels.clone();
    let named: Vec<_> = request.from(1).map(Box::from).collect();
    let channels = if request.len() > 1 { named } else { all };
    if channels.is_empty() {
        confirm(reply, "unsubscribe", None, 0);
    }
    for channel in channels {
        let left = leave(desk, slot, &channel);
        confirm(reply, "unsubscribe", Some(&channel), left);
    }
    publish_count(desk);
}

fn confirm(reply: &mut Reply<'_>, what: &str, channel: Option<&[u8]>, subscriptions: usize) {
    reply.push(3);
    reply.bulk(what.as_bytes());
    match channel {
        Some(channel) => reply.bulk(channel),
        None => reply.null(),
    }
    reply.integer(subscriptions as i64);
}

/// Ends one subscription of a client. Returns how many it has left.
fn leave(desk: &mut Desk, slot: u32, channel: &[u8]) -> usize {
    let name = desk.sessions.name(slot);
    desk.channels.remove(channel, name);
    let Some(session) = desk.sessions.get_mut(slot) else { return 0 };
    session.channels.retain(|known| **known != *channel);
    session.channels.len()
}

/// Ends all subscriptions of a client that leaves.
pub(crate) fn leave_all(desk: &mut Desk, slot: u32) {
    let channels = desk.sessions.get_mut(slot).map(|session| std::mem::take(&mut session.channels));
    let name = desk.sessions.name(slot);
    for channel in channels.unwrap_or_default() {
        desk.channels.remove(&channel, name);
    }
    publish_count(desk);
}

/// Tells the other threads whether this one has subscribers.
fn publish_count(desk: &Desk) {
    // Ordering: Release, pairs with the Acquire in `subscribed`. A client that has read the
    // confirmation, which is written later, can rely on it in any other thread.
    desk.shared.channels[desk.number].store(desk.channels.len(), Ordering::Release);
}

pub(crate) fn check_publish(_: &Desk, _: &Request<'_>) -> Result<Threads, Failure> {
    Ok(Threads::Subscribed)
}

/// PUBLISH in one thread: replies the number of its clients that got the message.
pub(crate) fn publish(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) {
    reply.integer(deliver(desk, request.arg(1), request.arg(2)) as i64);
}

/// Sends a message to this thread's subscribers of a channel.
pub(crate) fn deliver(desk: &mut Desk, channel: &[u8], text: &[u8]) -> usize {
    let subscribers = desk.channels.subscribers.get(channel).cloned().unwrap_or_default();
    for &name in &subscribers {
        let Some(session) = desk.sessions.named(name) else { continue };
        let is_resp3 = session.is_resp3;
        session.replies.append(|out| {
            let mut reply = Reply { out, is_resp3 };
            reply.push(3);
            [b"message", channel, text].into_iter().for_each(|part| reply.bulk(part));
        });
        if session.replies.waiting() > MAX_WAITING {
            session.ending = Ending::Now;
            desk.stats.add(Count::SlowClosed, 1);
        }
        desk.touch(name.slot);
    }
    subscribers.len()
}
