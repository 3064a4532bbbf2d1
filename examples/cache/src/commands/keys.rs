//! Commands on keys, whatever their values and deadlines are.

use super::glob::matches;
use super::*;
use crate::keyspace::TABLES;
use crate::stats::Figure;

const SCAN_COUNT: usize = 10;

pub(super) fn kind(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    Ok(reply.simple(if is_there { "string" } else { "none" }))
}

pub(super) fn exists(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(i64::from(keys.look_up(request.hash, request.arg(1)).is_some())))
}

pub(super) fn del(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let found = keys.find(request.hash, request.arg(1)).map(|place| delete(keys, request, place));
    Ok(reply.integer(i64::from(found.is_some())))
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
