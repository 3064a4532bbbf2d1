//! Commands on values.

use crate::commands::options::{
    GET, KEEPTTL, NX, OF_GETEX, OF_SET, Options, PERSIST, Unit, XX, deadline, integer,
};
use crate::events::Class;
use crate::keyspace::Keyspace;
use crate::protocol::{Outcome, Reply, Request};

pub(crate) fn get(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    write_value(keys, request, reply);
    Ok(())
}

/// Replies the value. Returns the place of the key.
fn write_value(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Option<u32> {
    let Some((place, entry)) = keys.look_up(request.hash, request.arg(1)) else {
        reply.null();
        keys.events.add(Class::MISS, "keymiss", request.arg(1));
        return None;
    };
    reply.bulk(entry.value());
    Some(place)
}

pub(crate) fn set(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let options = Options::parse(request, 3, OF_SET)?;
    set_with(keys, request, request.arg(2), &options, reply)
}

/// SETEX, PSETEX.
pub(crate) fn setex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let expiry = Some((request.arg(2), Unit::of_command(request.arg(0))));
    set_with(keys, request, request.arg(3), &Options { words: 0, expiry }, reply)
}

/// One key of MSET.
pub(crate) fn set_plain(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    set_with(keys, request, request.arg(2), &Options::default(), reply)
}

fn set_with(
    keys: &mut Keyspace,
    request: &Request<'_>,
    value: &[u8],
    options: &Options<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let expiry = options.expiry.map(|expiry| deadline(&keys.time, request, expiry)).transpose()?;
    let replies_old = options.has(GET);
    let found = match replies_old {
        true => write_value(keys, request, reply),
        false => keys.find(request.hash, request.arg(1)),
    };
    if options.has(NX) && found.is_some() || options.has(XX) && found.is_none() {
        if !replies_old {
            reply.null();
        }
        return Ok(());
    }
    let place = put(keys, request, value, found);
    keys.events.add(Class::STRING, "set", request.arg(1));
    if let Some(deadline) = expiry {
        keys.set_deadline(place, deadline);
        keys.events.add(Class::GENERIC, "expire", request.arg(1));
    } else if !options.has(KEEPTTL) {
        keys.persist(place);
    }
    if !replies_old {
        reply.ok();
    }
    Ok(())
}

fn put(keys: &mut Keyspace, request: &Request<'_>, value: &[u8], found: Option<u32>) -> u32 {
    if found.is_none() {
        keys.events.add(Class::NEW, "new", request.arg(1));
    }
    keys.set_value(request.hash, request.arg(1), value, found)
}

pub(crate) fn getex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let options = Options::parse(request, 2, OF_GETEX)?;
    let Some(place) = write_value(keys, request, reply) else { return Ok(()) };
    let event = match options.expiry.map(|expiry| deadline(&keys.time, request, expiry)).transpose()? {
        Some(at) if at.is_date() && keys.time.wall_of(at) <= keys.time.wall() => {
            keys.remove(request.hash, place);
            "del"
        }
        Some(at) => {
            keys.set_deadline(place, at);
            "expire"
        }
        None if options.has(PERSIST) && keys.persist(place) => "persist",
        None => return Ok(()),
    };
    keys.events.add(Class::GENERIC, event, request.arg(1));
    Ok(())
}

pub(crate) fn getdel(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    if let Some(place) = write_value(keys, request, reply) {
        keys.remove(request.hash, place);
        keys.events.add(Class::GENERIC, "del", request.arg(1));
    }
    Ok(())
}

/// INCR, DECR, INCRBY, DECRBY.
pub(crate) fn incr(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let mut by = request.from(2).next().map_or(Ok(1), integer)?;
    if request.arg(0)[0].eq_ignore_ascii_case(&b'd') {
        by = by.checked_neg().ok_or("decrement would overflow")?;
    }
    let found = keys.find(request.hash, request.arg(1));
    let old = found.and_then(|place| keys.get(place)).map_or(Ok(0), |entry| integer(entry.value()))?;
    let new = old.checked_add(by).ok_or("increment or decrement would overflow")?;
    put(keys, request, itoa::Buffer::new().format(new).as_bytes(), found);
    keys.events.add(Class::STRING, "incrby", request.arg(1));
    Ok(reply.integer(new))
}
