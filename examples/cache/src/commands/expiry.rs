//! Commands on deadlines.

use crate::clock::Deadline;
use crate::commands::options::{Unit, integer, invalid_expiry};
use crate::commands::{Failure, lossy};
use crate::events::Class;
use crate::keyspace::Keyspace;
use crate::protocol::reply::Reply;
use crate::protocol::request::Request;

/// When EXPIRE and its kin are to change a deadline.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    if_none: bool,
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Conditions {
    fn parse(request: &Request<'_>) -> Result<Self, Failure> {
        let mut it = Self::default();
        for at in 3..request.len() {
            let flag = match () {
                () if request.is(at, "nx") => &mut it.if_none,
                () if request.is(at, "xx") => &mut it.if_some,
                () if request.is(at, "gt") => &mut it.if_later,
                () if request.is(at, "lt") => &mut it.if_earlier,
                () => return Err(format!("Unsupported option {}", lossy(request.arg(at)))),
            };
            *flag = true;
        }
        if it.if_none && (it.if_some || it.if_later || it.if_earlier) {
            return Err("NX and XX, GT or LT options at the same time are not compatible".to_owned());
        }
        if it.if_later && it.if_earlier {
            return Err("GT and LT options at the same time are not compatible".to_owned());
        }
        Ok(it)
    }

    /// Whether a key with the deadline `old` may get the deadline `new`. No deadline is the latest.
    fn allow(self, old: Option<i64>, new: i64) -> bool {
        !(self.if_none && old.is_some()
            || self.if_some && old.is_none()
            || self.if_later && old.is_none_or(|old| new <= old)
            || self.if_earlier && old.is_some_and(|old| new >= old))
    }
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
pub(crate) fn expire(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    match try_expire(keys, request) {
        Ok(is_done) => reply.integer(i64::from(is_done)),
        Err(text) => reply.error(text),
    }
}

fn try_expire(keys: &mut Keyspace, request: &Request<'_>) -> Result<bool, Failure> {
    let unit = Unit::of_command(request.arg(0));
    let conditions = Conditions::parse(request)?;
    let base = if unit.is_date { 0 } else { keys.time.wall() };
    let after = integer(request.arg(2))?.checked_mul(unit.milliseconds);
    let when = after.and_then(|after| Some((after, after.checked_add(base)?)));
    let (after, new) = when.ok_or_else(|| invalid_expiry(request))?;
    let key = request.arg(1);
    let Some(place) = keys.find(request.hash, key) else { return Ok(false) };
    let old = keys.get(place).and_then(|entry| entry.expires).map(|old| keys.time.wall_of(old));
    if !conditions.allow(old, new) {
        return Ok(false);
    }
    if new <= keys.time.wall() {
        keys.remove(request.hash, place);
        keys.events.add(Class::GENERIC, "del", key);
        return Ok(true);
    }
    let relative = keys.time.after(after).filter(|_| !unit.is_date);
    keys.set_deadline(place, relative.unwrap_or_else(|| Deadline::at(new)));
    keys.events.add(Class::GENERIC, "expire", key);
    Ok(true)
}

/// No key.
const MISSING: i64 = -2;
/// A key without a deadline.
const NEVER: i64 = -1;

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
pub(crate) fn ttl(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let unit = Unit::of_command(request.arg(0));
    let Some((_, entry)) = keys.look_up(request.hash, request.arg(1)) else { return reply.integer(MISSING) };
    let Some(deadline) = entry.expires else { return reply.integer(NEVER) };
    let base = if unit.is_date { 0 } else { keys.time.wall() };
    let left = keys.time.wall_of(deadline).saturating_sub(base).max(0);
    let rounded = left.saturating_add(unit.milliseconds / 2) / unit.milliseconds;
    reply.integer(rounded);
}

pub(crate) fn persist(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let is_done = keys.find(request.hash, request.arg(1)).is_some_and(|place| keys.persist(place));
    if is_done {
        keys.events.add(Class::GENERIC, "persist", request.arg(1));
    }
    reply.integer(i64::from(is_done));
}
