//! Commands on keys, whatever their values and deadlines are.

use super::glob::matches;
use super::*;
use crate::keyspace::TABLES;
use crate::protocol::parse_i64;
use crate::stats::Figure;

/// The longest string that Redis embeds into its object.
const MAX_EMBEDDED: usize = 44;
const APART: &str = "Keys in request don't hash to the same slot";
const SCAN_COUNT: usize = 10;

pub(super) fn kind(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    Ok(reply.simple(if is_there { "string" } else { "none" }))
}

pub(super) fn exists(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(i64::from(keys.look_up(request.hash, request.arg(1)).is_some())))
}

/// OBJECT, MEMORY USAGE. The encoding is the one that Redis has for such a value.
pub(super) fn inspect(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let Some(place) = keys.find(request.hash, request.arg(2)) else { return Ok(reply.null()) };
    let (entry, what) = (keys.get(place), name(request));
    Ok(match entry.value() {
        _ if what == "memory|usage" => reply.integer(entry.counts()[2] as i64),
        value if parse_i64(value).is_some() => reply.bulk("int"),
        value => reply.bulk(if value.len() > MAX_EMBEDDED { "raw" } else { "embstr" }),
    })
}

pub(super) fn del(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let found = keys.find(request.hash, request.arg(1)).map(|place| delete(keys, request, place));
    Ok(reply.integer(i64::from(found.is_some())))
}

/// The slot of all keys. It does not matter how many threads there are: what works with one works with many.
fn slot(desk: &Desk, request: &Request<'_>) -> Result<u64, Failure> {
    let are_pairs = table::COMMANDS[usize::from(request.command)].flags.contains(Flags::PAIRS);
    let keys = request.from(1).step_by(1 + usize::from(are_pairs));
    let mut slots: Vec<_> = keys.map(|key| desk.shared.placement.slot(key)).collect();
    slots.dedup();
    if slots.len() > 1 { Err(Failure("CROSSSLOT", APART.into())) } else { Ok(slots[0]) }
}

pub(super) fn together(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    slot(desk, request).map(|slot| vec![desk.shared.placement.thread(slot)])
}

/// RENAME and RENAMENX. The deadline goes with the value.
pub(super) fn rename(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let [from, to] = [1, 2].map(|at| (desk.shared.placement.of(request.arg(at)).0, request.arg(at)));
    let (keys, only_new) = (&mut desk.keyspace, name(request) == "renamenx");
    // First, because a look-up may remove a key that has expired, and so move others.
    let is_there = keys.find(to.0, to.1).is_some();
    let place = keys.find(from.0, from.1).ok_or("no such key")?;
    let is_done = !(only_new && is_there);
    if is_done && from.1 != to.1 {
        let entry = keys.remove(place);
        keys.find(to.0, to.1).map(|place| keys.remove(place));
        let place = keys.set_value(to.0, to.1, entry.value(), None);
        if let Some(deadline) = entry.expires {
            keys.set_deadline(place, deadline);
        }
        keys.events.add(Class::GENERIC, "rename_from", from.1);
        keys.events.add(Class::GENERIC, "rename_to", to.1);
    }
    Ok(if only_new { reply.integer(i64::from(is_done)) } else { reply.ok() })
}

/// WATCH. The client moves to the thread of the keys: so EXEC looks at them there, and all that is in the
/// transaction for that thread runs in the same piece.
pub(super) fn watch(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (slot, session) = (slot(desk, request), &mut desk.sessions[request.client]);
    if session.queued.is_some() {
        return Err("WATCH inside MULTI is not allowed".into());
    }
    let slot = slot?;
    let thread = desk.shared.placement.thread(slot);
    if !session.watched.is_empty() && session.slot != slot {
        return Err(Failure("CROSSSLOT", APART.into()));
    }
    if thread != desk.number {
        return Ok(desk.move_to(request.client, thread));
    }
    session.slot = slot;
    for key in request.from(1) {
        let hash = desk.shared.placement.of(key).0;
        session.watched.push((hash, desk.keyspace.version(hash)));
    }
    Ok(reply.ok())
}

pub(super) fn unwatch(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.sessions[request.client].watched = Vec::new();
    Ok(reply.ok())
}

/// MSETNX: sets all keys, or none.
pub(super) fn set_new(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let pairs = || (1..request.len()).step_by(2).map(|at| (request.arg(at), request.arg(at + 1)));
    let (placement, keys) = (&desk.shared.placement, &mut desk.keyspace);
    let is_new = pairs().all(|(key, _)| keys.find(placement.of(key).0, key).is_none());
    for (key, value) in pairs().filter(|_| is_new) {
        let hash = placement.of(key).0;
        let found = keys.find(hash, key);
        keys.set_value(hash, key, value, found);
        keys.events.add(Class::STRING, "set", key);
    }
    Ok(reply.integer(i64::from(is_new)))
}

pub(super) fn check_flush(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let has_option = request.len() == 2 && (request.is(1, "sync") || request.is(1, "async"));
    if has_option || request.len() == 1 { everywhere(desk, request) } else { Err(SYNTAX.into()) }
}

pub(super) fn matching(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let all = (0..TABLES).flat_map(|table| desk.keyspace.living(table));
    Ok(reply.bulks(&all.filter(|key| fits(request.arg(1), key)).collect::<Vec<_>>()))
}

/// As in Redis, one star alone is any key, and other patterns of stars are any but the empty one.
fn fits(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || matches(pattern, key)
}

/// One of the thread's keys: one of the first table from a random one on that has any.
pub(super) fn random(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let start = fastrand::usize(..TABLES);
    let mut tables = (start..TABLES).chain(0..start);
    let found = tables.find_map(|table| fastrand::choice(desk.keyspace.living(table).collect::<Vec<_>>()));
    Ok(reply.bulk_or_null(found))
}

/// The table and the thread of SCAN's cursor: of the threads from there on, the first one that has keys.
fn cursor(desk: &Desk, request: &Request<'_>) -> Result<(usize, usize), Failure> {
    let cursor = std::str::from_utf8(request.arg(1)).ok().and_then(|cursor| cursor.parse::<u64>().ok());
    let (cursor, threads) = (cursor.ok_or("invalid cursor")? as usize, desk.shared.threads());
    let (table, thread) = (cursor / threads, cursor % threads);
    Ok((table, if table == 0 { with_keys(desk, thread).unwrap_or(thread) } else { thread }))
}

/// The first thread that has keys. A thread's number of keys is never too small.
fn with_keys(desk: &Desk, from: usize) -> Option<usize> {
    (from..desk.shared.threads()).find(|&it| desk.shared.stats[it].get(Figure::Keys) > 0)
}

pub(super) fn scanned(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    cursor(desk, request).map(|(_, thread)| vec![thread])
}

/// A table is replied as a whole: a key stays in its table, so a scan meets each key that is there
/// all the time exactly once. Empty tables, and threads without keys, are passed at once.
pub(super) fn scan(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let ((mut table, _), threads) = (cursor(desk, request)?, desk.shared.threads());
    let (mut pattern, mut count, mut kind) = (&b"*"[..], SCAN_COUNT, &b"string"[..]);
    for at in (2..request.len()).step_by(2) {
        let value = request.from(at + 1).next().ok_or(SYNTAX)?;
        match &request.arg(at).to_ascii_lowercase()[..] {
            b"count" => count = usize::try_from(integer(value)?).ok().filter(|&it| it > 0).ok_or(SYNTAX)?,
            b"match" => pattern = value,
            b"type" => kind = value,
            _ => return Err(SYNTAX.into()),
        }
    }
    let (mut found, mut seen) = (Vec::new(), 0);
    while table < TABLES && (seen < count || desk.keyspace.living(table).next().is_none()) {
        let keys: Vec<_> = desk.keyspace.living(table).collect();
        seen += keys.len();
        let is_wanted = |key: &&[u8]| kind.eq_ignore_ascii_case(b"string") && fits(pattern, key);
        found.extend(keys.into_iter().filter(is_wanted));
        table += 1;
    }
    let next_thread = || with_keys(desk, desk.number + 1).unwrap_or(0);
    let cursor = if table >= TABLES { next_thread() } else { table * threads + desk.number };
    reply.array(2);
    reply.bulk_integer(cursor as i64);
    Ok(reply.bulks(&found))
}
