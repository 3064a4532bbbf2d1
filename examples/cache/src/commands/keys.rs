//! Commands on keys, whatever their values and deadlines are.

use crate::commands::glob::matches;
use crate::commands::options::integer;
use crate::desk::Desk;
use crate::events::Class;
use crate::keyspace::Keyspace;
use crate::protocol::{Failure, Outcome, Reply, Request, SYNTAX};

/// SCAN passes this many slots for each key that it is asked for, and at least `LEAST_SLOTS`: free
/// slots are passed quickly.
const SLOTS_PER_KEY: usize = 16;
const LEAST_SLOTS: usize = 4 * 1024;
/// Keys that a SCAN returns if it is not asked for a number.
const SCAN_COUNT: usize = 10;

pub(crate) fn kind(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    Ok(reply.simple(if is_there { "string" } else { "none" }))
}

pub(crate) fn exists(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(i64::from(keys.look_up(request.hash, request.arg(1)).is_some())))
}

pub(crate) fn delete(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let place = keys.find(request.hash, request.arg(1));
    if let Some(place) = place {
        keys.remove(request.hash, place);
        keys.events.add(Class::GENERIC, "del", request.arg(1));
    }
    Ok(reply.integer(i64::from(place.is_some())))
}

pub(crate) fn dbsize(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(desk.keyspace.store.slab.len() as i64))
}

pub(crate) fn check_flush(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let is_valid = match request.len() {
        1 => true,
        2 => request.is(1, "sync") || request.is(1, "async"),
        _ => false,
    };
    if is_valid { desk.everywhere(request) } else { Err(SYNTAX.into()) }
}

/// FLUSHALL, with or without ASYNC: the keys are gone at once, their memory comes back step by step.
pub(crate) fn flush(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.keyspace.flush();
    Ok(reply.ok())
}

pub(crate) fn matching(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (mut found, mut bytes) = (0, Vec::new());
    let mut elements = Reply { out: &mut bytes, is_resp3: false };
    desk.keyspace.walk(0, usize::MAX, |key| {
        if matches(request.arg(1), key) {
            elements.bulk(key);
            found += 1;
        }
        true
    });
    reply.array(found);
    reply.out.extend(bytes);
    Ok(())
}

/// One of the thread's keys.
pub(crate) fn random(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let place = desk.chance().checked_rem(u64::from(desk.keyspace.store.slab.end())).unwrap_or(0) as u32;
    // The first key from there on or, if none follows, from the start.
    for start in [place, 0] {
        let mut is_found = false;
        desk.keyspace.walk(start, usize::MAX, |key| {
            reply.bulk(key);
            is_found = true;
            false
        });
        if is_found {
            return Ok(());
        }
    }
    Ok(reply.null())
}

/// The arguments of SCAN.
struct Scan<'a> {
    /// The cursor's place and thread.
    place: u32,
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
        let place = u32::try_from(cursor / threads as u64).unwrap_or(u32::MAX);
        let thread = (cursor % threads as u64) as usize;
        let mut scan = Self { place, thread, pattern: b"*", count: SCAN_COUNT, kind: b"string" };
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
pub(crate) fn scanned(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    Scan::parse(request, desk.shared.threads()).map(|scan| vec![scan.thread])
}

/// A cursor is a place and a thread: a key's place does not change, so a scan meets each key that
/// is there all the time exactly once.
pub(crate) fn scan(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let threads = desk.shared.threads() as u64;
    let scan = Scan::parse(request, threads as usize)?;
    let slots = scan.count.saturating_mul(SLOTS_PER_KEY).max(LEAST_SLOTS);
    let (mut found, mut seen) = (Vec::new(), 0);
    let next = desk.keyspace.walk(scan.place, slots, |key| {
        seen += 1;
        if scan.kind.eq_ignore_ascii_case(b"string") && matches(scan.pattern, key) {
            found.push(key.to_vec());
        }
        seen < scan.count
    });
    let thread = scan.thread as u64;
    let cursor = next.map_or((thread + 1) % threads, |place| u64::from(place) * threads + thread);
    reply.array(2);
    reply.bulk_integer(cursor as i64);
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}
