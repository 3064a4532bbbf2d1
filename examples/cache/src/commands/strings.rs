//! Commands on values.

use crate::commands::Failure;
use crate::commands::options::{Options, Unit, deadline, integer};
use crate::events::Class;
use crate::keyspace::Keyspace;
use crate::protocol::reply::Reply;
use crate::protocol::request::Request;

/// Writes the error, if there is one.
fn report(result: Result<(), Failure>, reply: &mut Reply<'_>) {
    if let Err(text) = result {
        reply.error(text);
    }
}

pub(crate) fn get(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    write_value(keys, request, reply);
}

/// Replies the value. Returns the place of the key.
fn write_value(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Option<u32> {
    let (place, entry) = keys.look_up(request.hash, request.arg(1)).unzip();
    match entry {
        Some(entry) => reply.bulk(entry.value()),
        None => {
            reply.null();
            keys.events.add_miss(request.arg(1));
        }
    }
    place
}

pub(crate) fn set(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let result = Options::parse(request, 3, true);
    report(result.and_then(|options| set_with(keys, request, request.arg(2), options, reply)), reply);
}

/// SETEX, PSETEX.
pub(crate) fn setex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let expiry = Some((request.arg(2), Unit::of_command(request.arg(0))));
    let options = Options { expiry, ..Options::default() };
    report(set_with(keys, request, request.arg(3), options, reply), reply);
}

/// One key of MSET.
pub(crate) fn set_plain(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    report(set_with(keys, request, request.arg(2), Options::default(), reply), reply);
}

fn set_with(
    keys: &mut Keyspace,
    request: &Request<'_>,
    value: &[u8],
    options: Options<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let expiry = options.expiry.map(|expiry| deadline(&keys.time, request, expiry)).transpose()?;
    let found = match options.returns_old {
        true => write_value(keys, request, reply),
        false => keys.find(request.hash, request.arg(1)),
    };
    let is_set = !(options.if_missing && found.is_some() || options.if_present && found.is_none());
    if is_set {
        let place = put(keys, request, value, found);
        match expiry {
            Some(deadline) => keys.set_deadline(place, deadline),
            None => _ = options.keeps_deadline || keys.persist(place),
        }
        note_set(keys, request, expiry.is_some());
    }
    if !options.returns_old {
        if is_set { reply.ok() } else { reply.null() }
    }
    Ok(())
}

fn note_set(keys: &mut Keyspace, request: &Request<'_>, has_deadline: bool) {
    keys.events.add(Class::STRING, "set", request.arg(1));
    if has_deadline {
        keys.events.add(Class::GENERIC, "expire", request.arg(1));
    }
}

fn put(keys: &mut Keyspace, request: &Request<'_>, value: &[u8], found: Option<u32>) -> u32 {
    if found.is_none() {
        keys.events.add_new(request.arg(1));
    }
    keys.set_value(request.hash, request.arg(1), value, found)
}

pub(crate) fn getex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    report(try_getex(keys, request, reply), reply);
}

fn try_getex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let options = Options::parse(request, 2, false)?;
    let (start, key) = (reply.out.len(), request.arg(1));
    let Some(place) = write_value(keys, request, reply) else { return Ok(()) };
    let expiry = options.expiry.map(|expiry| deadline(&keys.time, request, expiry)).transpose();
    match expiry.inspect_err(|_| reply.out.truncate(start))? {
        Some(at) if at.is_date() && keys.time.wall_of(at) <= keys.time.wall() => {
            keys.remove(request.hash, place);
            keys.events.add(Class::GENERIC, "del", key);
        }
        Some(at) => {
            keys.set_deadline(place, at);
            keys.events.add(Class::GENERIC, "expire", key);
        }
        None if options.persists && keys.persist(place) => keys.events.add(Class::GENERIC, "persist", key),
        None => {}
    }
    Ok(())
}

pub(crate) fn getdel(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    if let Some(place) = write_value(keys, request, reply) {
        keys.remove(request.hash, place);
        keys.events.add(Class::GENERIC, "del", request.arg(1));
    }
}

/// INCR, DECR, INCRBY, DECRBY.
pub(crate) fn incr(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    report(try_incr(keys, request, reply), reply);
}

fn try_incr(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut by = request.from(2).next().map_or(Ok(1), integer)?;
    if request.arg(0)[0].eq_ignore_ascii_case(&b'd') {
        by = by.checked_neg().ok_or("decrement would overflow")?;
    }
    let found = keys.find(request.hash, request.arg(1));
    let old = found.and_then(|place| keys.get(place)).map_or(Ok(0), |entry| integer(entry.value()))?;
    let new = old.checked_add(by).ok_or("increment or decrement would overflow")?;
    put(keys, request, itoa::Buffer::new().format(new).as_bytes(), found);
    keys.events.add(Class::STRING, "incrby", request.arg(1));
    reply.integer(new);
    Ok(())
}
