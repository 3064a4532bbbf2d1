//! Commands on values.

use super::options::{OF_GETEX, OF_SET, Options, Words};
use super::*;

pub(super) fn get(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    write_value(keys, request, reply);
    Ok(())
}

/// Replies the value. Returns the place of the key.
fn write_value(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Option<Place> {
    let found = keys.look_up(request.hash, request.arg(1));
    reply.bulk_or_null(found.map(|place| keys.get(place).value()));
    found
}

/// SET, SETEX, PSETEX, SETNX, GETSET, and one key of MSET.
pub(super) fn set(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (name, key) = (name(request), request.arg(1));
    let (value, options) = match name {
        "set" => (request.arg(2), Options::parse(request, 3, OF_SET)?),
        "mset" => (request.arg(2), Options::default()),
        "setnx" => (request.arg(2), Options { words: Words::NX, time: b"" }),
        "getset" => (request.arg(2), Options { words: Words::GET, time: b"" }),
        "setex" => (request.arg(3), Options { words: Words::EX, time: request.arg(2) }),
        _ => (request.arg(3), Options { words: Words::PX, time: request.arg(2) }),
    };
    let expiry = options.deadline(keys, name)?;
    let replies_old = options.has(Words::GET);
    let found = if replies_old { write_value(keys, request, reply) } else { keys.find(request.hash, key) };
    let is_set = !(options.has(Words::NX) && found.is_some() || options.has(Words::XX) && found.is_none());
    match name {
        "setnx" => reply.integer(i64::from(is_set)),
        _ if replies_old => {}
        _ if is_set => reply.ok(),
        _ => reply.null(),
    }
    if !is_set {
        return Ok(());
    }
    let place = keys.set_value(request.hash, key, value, found);
    keys.events.add(Class::STRING, "set", key);
    if let Some(deadline) = expiry {
        keys.set_deadline(place, deadline);
        keys.events.add(Class::GENERIC, "expire", key);
    } else if !options.has(Words::KEEPTTL) {
        keys.persist(place);
    }
    Ok(())
}

pub(super) fn getex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let options = Options::parse(request, 2, OF_GETEX)?;
    let Some(place) = write_value(keys, request, reply) else { return Ok(()) };
    match options.deadline(keys, name(request))? {
        Some(at) if at.is_date() && keys.time.wall_of(at) <= keys.time.wall() => delete(keys, request, place),
        Some(at) => {
            keys.set_deadline(place, at);
            keys.events.add(Class::GENERIC, "expire", request.arg(1));
        }
        None if options.has(Words::PERSIST) && keys.persist(place) => {
            keys.events.add(Class::GENERIC, "persist", request.arg(1));
        }
        None => {}
    }
    Ok(())
}

pub(super) fn getdel(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let found = write_value(keys, request, reply);
    Ok(found.into_iter().for_each(|place| delete(keys, request, place)))
}

/// INCR and INCRBY; with a negative sign, DECR and DECRBY.
pub(super) fn incr<const IS_NEGATIVE: bool>(
    keys: &mut Keyspace,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let mut by = request.from(2).next().map_or(Ok(1), integer)?;
    if IS_NEGATIVE {
        by = by.checked_neg().ok_or("decrement would overflow")?;
    }
    let found = keys.find(request.hash, request.arg(1));
    let old = found.map_or(Ok(0), |place| integer(keys.get(place).value()))?;
    let new = old.checked_add(by).ok_or("increment or decrement would overflow")?;
    keys.set_value(request.hash, request.arg(1), itoa::Buffer::new().format(new).as_bytes(), found);
    keys.events.add(Class::STRING, "incrby", request.arg(1));
    Ok(reply.integer(new))
}
