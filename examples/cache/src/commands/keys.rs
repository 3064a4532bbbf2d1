//! Commands on keys, whatever their values and deadlines are.

use super::glob::matches;
use super::*;
use crate::stats::Figure;
use crate::store::TABLES;

/// SCAN passes this many tables for each key that it is asked for, and at least `LEAST_TABLES`: empty
/// tables are passed quickly.
const TABLES_PER_KEY: usize = 16;
const LEAST_TABLES: usize = 4 * 1024;
/// Keys that a SCAN returns if it is not asked for a number.
const SCAN_COUNT: usize = 10;

pub(super) fn kind(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    Ok(reply.simple(if is_there { "string" } else { "none" }))
}

pub(super) fn exists(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(i64::from(keys.look_up(request.hash, request.arg(1)).is_some())))
}

pub(super) fn delete(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let place = keys.find(request.hash, request.arg(1));
    if let Some(place) = place {
        keys.remove(place);
        keys.events.add(Class::GENERIC, "del", request.arg(1));
    }
    Ok(reply.integer(i64::from(place.is_some())))
}

pub(super) fn dbsize(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(desk.stats.get(Figure::Keys) as i64))
}

pub(super) fn check_flush(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let is_valid = match request.len() {
        1 => true,
        2 => request.is(1, "sync") || request.is(1, "async"),
        _ => false,
    };
    if is_valid { everywhere(desk, request) } else { Err(SYNTAX.into()) }
}

/// FLUSHALL, with or without ASYNC: the keys are gone at once, their memory comes back step by step.
pub(super) fn flush(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.keyspace.flush();
    Ok(reply.ok())
}

pub(super) fn matching(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let all = (0..TABLES).flat_map(|table| desk.keyspace.living(table));
    Ok(reply.bulks(&all.filter(|key| matches(request.arg(1), key)).collect::<Vec<_>>()))
}

/// One of the thread's keys: one of the first table from a random one on that has any.
pub(super) fn random(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let start = fastrand::usize(..TABLES);
    let mut tables = (start..TABLES).chain(0..start);
    let found = tables.find_map(|table| fastrand::choice(desk.keyspace.living(table).collect::<Vec<_>>()));
    Ok(match found {
        Some(key) => reply.bulk(key),
        None => reply.null(),
    })
}

/// The arguments of SCAN.
struct Scan<'a> {
    /// The cursor's table and thread.
    table: usize,
    thread: usize,
    pattern: &'a [u8],
    count: usize,
    /// The type that is asked for: all keys here are strings.
    kind: &'a [u8],
}

impl<'a> Scan<'a> {
    fn parse(request: &Request<'a>, threads: usize) -> Result<Self, Failure> {
        let cursor = std::str::from_utf8(request.arg(1)).ok().and_then(|cursor| cursor.parse::<u64>().ok());
        let cursor = cursor.ok_or("invalid cursor")?;
        let (table, thread) = ((cursor / threads as u64) as usize, (cursor % threads as u64) as usize);
        let mut scan = Self { table, thread, pattern: b"*", count: SCAN_COUNT, kind: b"string" };
        for at in (2..request.len()).step_by(2) {
            let value = request.from(at + 1).next().ok_or(SYNTAX)?;
            match &request.arg(at).to_ascii_lowercase()[..] {
                b"count" => scan.count = usize::try_from(integer(value)?.max(0)).unwrap_or(usize::MAX),
                b"match" => scan.pattern = value,
                b"type" => scan.kind = value,
                _ => return Err(SYNTAX.into()),
            }
        }
        if scan.count > 0 { Ok(scan) } else { Err(SYNTAX.into()) }
    }
}

/// The thread of a cursor.
pub(super) fn scanned(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    Scan::parse(request, desk.shared.threads()).map(|scan| vec![scan.thread])
}

/// A cursor is a table and a thread. A table is replied as a whole: a key stays in its table, so a
/// scan meets each key that is there all the time exactly once.
pub(super) fn scan(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let threads = desk.shared.threads();
    let mut scan = Scan::parse(request, threads)?;
    let end =
        scan.table.saturating_add(scan.count.saturating_mul(TABLES_PER_KEY).max(LEAST_TABLES)).min(TABLES);
    let (mut found, mut seen) = (Vec::new(), 0);
    while scan.table < end && seen < scan.count {
        let keys: Vec<_> = desk.keyspace.living(scan.table).collect();
        seen += keys.len();
        let is_wanted = |key: &&[u8]| scan.kind.eq_ignore_ascii_case(b"string") && matches(scan.pattern, key);
        found.extend(keys.into_iter().filter(is_wanted));
        scan.table += 1;
    }
    let is_last = scan.table >= TABLES;
    let cursor = if is_last { (scan.thread + 1) % threads } else { scan.table * threads + scan.thread };
    reply.array(2);
    reply.bulk_integer(cursor as i64);
    Ok(reply.bulks(&found))
}
