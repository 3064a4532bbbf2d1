//! Commands on deadlines.

use super::options::{Words, conditions, invalid_expiry};
use super::*;
use crate::clock::Deadline;

/// Whether a key with the deadline `old` may get the deadline `new`. No deadline is the latest.
fn allow(conditions: Words, old: Option<i64>, new: i64) -> bool {
    let refusals = [
        (Words::NX, old.is_some()),
        (Words::XX, old.is_none()),
        (Words::GT, old.is_none_or(|old| new <= old)),
        (Words::LT, old.is_some_and(|old| new >= old)),
    ];
    !refusals.iter().any(|&(word, applies)| applies && conditions.contains(word))
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT: the unit in milliseconds, and whether it counts from 1970 and not from now.
pub(super) fn expire<const UNIT: i64, const IS_DATE: bool>(
    keys: &mut Keyspace,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let key = request.arg(1);
    let conditions = conditions(request)?;
    let now = keys.time.wall();
    let base = if IS_DATE { 0 } else { now };
    let after = integer(request.arg(2))?.checked_mul(UNIT);
    let new = after.and_then(|after| after.checked_add(base)).ok_or_else(|| invalid_expiry(name(request)))?;
    let allowed = keys.find(request.hash, key).filter(|&place| {
        let old = keys.get(place).expires.map(|old| keys.time.wall_of(old));
        allow(conditions, old, new)
    });
    if let Some(place) = allowed.filter(|_| new <= now) {
        delete(keys, request, place);
    } else if let Some(place) = allowed {
        let relative = keys.time.after(new - base).filter(|_| !IS_DATE);
        keys.set_deadline(place, relative.unwrap_or_else(|| Deadline::at(new)));
        keys.events.add(Class::GENERIC, "expire", key);
    }
    Ok(reply.integer(i64::from(allowed.is_some())))
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME. -2 means no key, -1 a key without a deadline.
pub(super) fn ttl<const UNIT: i64, const IS_DATE: bool>(
    keys: &mut Keyspace,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let expires = keys.look_up(request.hash, request.arg(1)).map(|place| keys.get(place).expires);
    let base = if IS_DATE { 0 } else { keys.time.wall() };
    Ok(reply.integer(match expires {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => {
            let left = keys.time.wall_of(deadline).saturating_sub(base).max(0);
            left.saturating_add(UNIT / 2) / UNIT
        }
    }))
}

pub(super) fn persist(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_done = keys.find(request.hash, request.arg(1)).is_some_and(|place| keys.persist(place));
    if is_done {
        keys.events.add(Class::GENERIC, "persist", request.arg(1));
    }
    Ok(reply.integer(i64::from(is_done)))
}
