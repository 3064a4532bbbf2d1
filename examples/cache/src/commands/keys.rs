//! Commands on keys, whatever their values and deadlines are.

use crate::commands::glob::matches;
use crate::commands::options::integer;
use crate::commands::{Check, Failure, Threads};
use crate::desk::Desk;
use crate::events::Class;
use crate::keyspace::Keyspace;
use crate::protocol::number::parse_u64;
use crate::protocol::reply::{Reply, SYNTAX};
use crate::protocol::request::Request;
use crate::session::gather::put_number;

/// SCAN looks at so many slots for each key that it is asked for, and at least at so many: free slots
/// are passed quickly.
const SLOTS_PER_KEY: usize = 16;
const LEAST_SLOTS: usize = 4 * 1024;
/// Keys that a SCAN returns if it is not asked for a number.
const SCAN_COUNT: usize = 10;

pub(crate) fn kind(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    reply.simple(if is_there { "string" } else { "none" });
}

pub(crate) fn exists(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let is_there = keys.look_up(request.hash, request.arg(1)).is_some();
    reply.integer(i64::from(is_there));
}

pub(crate) fn delete(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) {
    let place = keys.find(request.hash, request.arg(1));
    if let Some(place) = place {
        keys.remove(request.hash, place);
        keys.events.add(Class::GENERIC, "del", request.arg(1));
    }
    reply.integer(i64::from(place.is_some()));
}

/// The check of commands that concern all threads.
pub(crate) const fn everywhere(_: &Desk, _: &Request<'_>) -> Result<Threads, Failure> {
    Ok(Threads::All)
}

const _: Check = everywhere;

pub(crate) fn dbsize(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.integer(desk.keyspace.len() as i64);
}

pub(crate) fn check_flush(_: &Desk, request: &Request<'_>) -> Result<Threads, Failure> {
    let is_valid = match request.len() {
        1 => true,
        2 => request.is(1, "sync") || request.is(1, "async"),
        _ => false,
    };
    if is_valid { Ok(Threads::All) } else { Err(SYNTAX.to_owned()) }
}

/// FLUSHALL, with or without ASYNC: the keys are gone at once, their memory comes back step by step.
pub(crate) fn flush(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) {
    desk.keyspace.flush();
    reply.ok();
}

pub(crate) fn matching(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) {
    let (pattern, start) = (request.arg(1), reply.out.len());
    put_number(reply.out, 0);
    let mut found = 0_u64;
    desk.keyspace.walk(0, usize::MAX, |key| {
        if matches(pattern, key) {
            reply.bulk(key);
            found += 1;
        }
        true
    });
    reply.out[start..start + size_of::<u64>()].copy_from_slice(&found.to_le_bytes());
}

/// The number of the thread's keys, and one of them.
pub(crate) fn random(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) {
    let place = desk.chance().checked_rem(u64::from(desk.keyspace.end())).unwrap_or(0) as u32;
    let mut chosen = None;
    let mut choose = |key: &[u8]| {
        chosen = Some(key.to_vec());
        false
    };
    // From there on, and if nothing follows, from the start.
    if desk.keyspace.walk(place, usize::MAX, &mut choose).is_none() {
        desk.keyspace.walk(0, usize::MAX, choose);
    }
    put_number(reply.out, chosen.as_ref().map_or(0, |_| desk.keyspace.len() as u64));
    reply.out.extend(chosen.unwrap_or_default());
}

/// The arguments of SCAN.
struct Scan<'a> {
    /// The cursor's place and thread.
    place: u32,
    thread: usize,
    pattern: Option<&'a [u8]>,
    count: usize,
    /// Whether a type was asked for that no key here has.
    is_of_another_type: bool,
}

impl<'a> Scan<'a> {
    fn parse(request: &Request<'a>, threads: usize) -> Result<Self, Failure> {
        let cursor = parse_u64(request.arg(1)).ok_or("invalid cursor")?;
        let place = u32::try_from(cursor / threads as u64).unwrap_or(u32::MAX);
        let thread = (cursor % threads as u64) as usize;
        let mut scan = Self { place, thread, pattern: None, count: SCAN_COUNT, is_of_another_type: false };
        for at in (2..request.len()).step_by(2) {
            if at + 1 >= request.len() {
                return Err(SYNTAX.to_owned());
            }
            let value = request.arg(at + 1);
            if request.is(at, "count") {
                scan.count = usize::try_from(integer(value)?).ok().filter(|&it| it > 0).ok_or(SYNTAX)?;
            } else if request.is(at, "match") {
                scan.pattern = Some(value);
            } else if request.is(at, "type") {
                scan.is_of_another_type = !value.eq_ignore_ascii_case(b"string");
            } else {
                return Err(SYNTAX.to_owned());
            }
        }
        Ok(scan)
    }
}

pub(crate) fn check_scan(desk: &Desk, request: &Request<'_>) -> Result<Threads, Failure> {
    Scan::parse(request, desk.shared.threads()).map(|scan| Threads::One(scan.thread))
}

/// A cursor is a place and a thread: a key's place does not change, so a scan meets each key that
/// is there all the time exactly once.
pub(crate) fn scan(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) {
    let threads = desk.shared.threads();
    let Ok(scan) = Scan::parse(request, threads) else { return reply.error(SYNTAX) };
    let slots = scan.count.saturating_mul(SLOTS_PER_KEY).max(LEAST_SLOTS);
    let (mut found, mut seen) = (Vec::new(), 0);
    let next = desk.keyspace.walk(scan.place, slots, |key| {
        seen += 1;
        if !scan.is_of_another_type && scan.pattern.is_none_or(|pattern| matches(pattern, key)) {
            found.push(key.to_vec());
        }
        seen < scan.count
    });
    let cursor = match next {
        Some(place) => u64::from(place) * threads as u64 + scan.thread as u64,
        None => (scan.thread as u64 + 1) % threads as u64,
    };
    reply.array(2);
    reply.bulk_integer(cursor as i64);
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
}
