//! The settings: CONFIG GET and SET of those that tools ask for.
//!
//! Each thread has its own copy, which CONFIG SET changes in every thread before it replies.

use std::time::Duration;

use crate::commands::glob::matches;
use crate::commands::lossy;
use crate::desk::Desk;
use crate::events::Class;
use crate::protocol::parser::{MAX_BULK, MAX_REQUEST};
use crate::protocol::{Failure, Outcome, Reply, Request, SYNTAX, parse_i64};

/// What can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes; 0 is no limit.
    pub(crate) max_memory: u64,
    pub(crate) max_clients: usize,
    /// Zero is no limit.
    pub(crate) idle_timeout: Duration,
    /// Empty if clients need none.
    pub(crate) password: Vec<u8>,
    /// `notify-keyspace-events`.
    pub(crate) events: Class,
    /// It can be read, and not set.
    pub(crate) port: u16,
}

type Get = fn(&Settings) -> Vec<u8>;
type Set = fn(&mut Settings, &[u8]) -> Outcome;

/// Each setting, as it is read and as it is set. The others can only be set to what they are.
const SETTINGS: [(&str, Get, Option<Set>); 15] = [
    ("maxmemory", |it| text(it.max_memory), Some(|it, value| Ok(it.max_memory = parse_bytes(value)?))),
    (
        "maxclients",
        |it| text(it.max_clients),
        Some(|it, value| Ok(it.max_clients = within(value, 1)? as usize)),
    ),
    (
        "timeout",
        |it| text(it.idle_timeout.as_millis().div_ceil(1_000)),
        Some(|it, value| Ok(it.idle_timeout = Duration::from_secs(within(value, 0)?))),
    ),
    ("requirepass", |it| it.password.clone(), Some(|it, value| Ok(it.password = value.to_vec()))),
    (
        "notify-keyspace-events",
        |it| text(it.events.letters()),
        Some(|it, value| Ok(it.events = events(value)?)),
    ),
    ("port", |it| text(it.port), None),
    ("proto-max-bulk-len", |_| text(MAX_BULK), None),
    ("client-query-buffer-limit", |_| text(MAX_REQUEST), None),
    ("appendonly", |_| text("no"), None),
    ("databases", |_| text("1"), None),
    ("maxmemory-policy", |_| text("noeviction"), None),
    ("save", |_| text(""), None),
    ("lazyfree-lazy-user-flush", |_| text("yes"), None),
    ("hash-max-listpack-entries", |_| text("128"), None),
    ("cluster-enabled", |_| text("no"), None),
];

fn text(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn events(value: &[u8]) -> Result<Class, Failure> {
    Class::parse(value).ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into())
}

/// The greatest number that a setting takes.
const MOST: i64 = 1 << 30;

fn within(value: &[u8], least: i64) -> Result<u64, Failure> {
    match parse_i64(value) {
        None => Err("argument couldn't be parsed into an integer".into()),
        Some(value) if (least..=MOST).contains(&value) => Ok(value as u64),
        Some(_) => Err(format!("argument must be between {least} and {MOST} inclusive").into()),
    }
}

/// The units of a number of bytes.
const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", KIB),
    ("m", 1_000_000),
    ("mb", KIB * KIB),
    ("g", 1_000_000_000),
    ("gb", KIB * KIB * KIB),
];
const KIB: u64 = 1024;

/// A number of bytes, with or without a unit: `100mb`.
pub(crate) fn parse_bytes(text: &[u8]) -> Result<u64, Failure> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<u64>().ok());
    let unit = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()));
    let bytes = number.zip(unit).and_then(|(number, (_, unit))| number.checked_mul(*unit));
    bytes.ok_or("argument must be a memory value".into())
}

impl Settings {
    /// Sets one value. `None` if there is no such setting.
    fn set(&mut self, name: &[u8], value: &[u8]) -> Option<Outcome> {
        let (_, get, set) =
            SETTINGS.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()))?;
        Some(match set {
            Some(set) => set(self, value),
            None if get(self) == value => Ok(()),
            None => Err("can't set immutable config".into()),
        })
    }

    /// Sets all of a request's values, or none.
    fn set_all(&self, request: &Request<'_>) -> Result<Self, Failure> {
        if request.len() % 2 == 1 {
            return Err(SYNTAX.into());
        }
        let mut changed = self.clone();
        for at in (2..request.len()).step_by(2) {
            let name = lossy(request.arg(at));
            let Some(result) = changed.set(request.arg(at), request.arg(at + 1)) else {
                return Err(format!("Unknown option or number of arguments for CONFIG SET - '{name}'").into());
            };
            result.map_err(|Failure(_, why)| {
                format!("CONFIG SET failed (possibly related to argument '{name}') - {why}")
            })?;
        }
        Ok(changed)
    }
}

pub(crate) fn get(desk: &mut Desk, _: usize, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let patterns: Vec<_> = request.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_asked = |name: &str| patterns.iter().any(|pattern| matches(pattern, name.as_bytes()));
    let asked: Vec<_> = SETTINGS.iter().filter(|(name, ..)| is_asked(name)).collect();
    reply.map(asked.len());
    for (name, get, _) in asked {
        reply.bulk(name);
        reply.bulk(get(&desk.settings));
    }
    Ok(())
}

pub(crate) fn check(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    desk.settings.set_all(request).and_then(|_| desk.everywhere(request))
}

pub(crate) fn set(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.apply(desk.settings.set_all(request)?);
    Ok(reply.ok())
}
