//! The settings: CONFIG GET and SET of those that tools ask for.
//!
//! Each thread has its own copy, which CONFIG SET changes in every thread before it replies.

use std::time::Duration;

use super::glob::matches;
use super::*;
use crate::protocol::parse_i64;
use crate::protocol::parser::{MAX_BULK, MAX_REQUEST};

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

/// The settings that can be set.
const SETTINGS: [(&str, Get, Set); 5] = [
    ("maxmemory", |it| text(it.max_memory), |it, value| Ok(it.max_memory = parse_bytes(value)?)),
    ("maxclients", |it| text(it.max_clients), |it, value| Ok(it.max_clients = within(value, 1)? as usize)),
    ("timeout", Settings::timeout, |it, value| Ok(it.idle_timeout = Duration::from_secs(within(value, 0)?))),
    ("requirepass", |it| it.password.clone(), |it, value| Ok(it.password = value.to_vec())),
    ("notify-keyspace-events", |it| text(it.events.letters()), |it, value| Ok(it.events = events(value)?)),
];

/// Those that can only be read.
const CONSTANTS: [(&str, Get); 10] = [
    ("port", |it| text(it.port)),
    ("proto-max-bulk-len", |_| text(MAX_BULK)),
    ("client-query-buffer-limit", |_| text(MAX_REQUEST)),
    ("appendonly", |_| text("no")),
    ("databases", |_| text("1")),
    ("maxmemory-policy", |_| text("noeviction")),
    ("save", |_| text("")),
    ("lazyfree-lazy-user-flush", |_| text("yes")),
    ("hash-max-listpack-entries", |_| text("128")),
    ("cluster-enabled", |_| text("no")),
];

/// The names of all settings, and how they are read.
fn all() -> impl Iterator<Item = (&'static str, Get)> {
    SETTINGS.into_iter().map(|(name, get, _)| (name, get)).chain(CONSTANTS)
}

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

/// A number of bytes, with or without a unit: `100mb`. A kilobyte is 1,024 bytes, a `k` 1,000.
pub(crate) fn parse_bytes(text: &[u8]) -> Result<u64, Failure> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<u64>().ok());
    let unit: Option<u64> = match &unit.to_ascii_lowercase()[..] {
        b"" | b"b" => Some(1),
        b"k" => Some(1_000),
        b"kb" => Some(1 << 10),
        b"m" => Some(1_000_000),
        b"mb" => Some(1 << 20),
        b"g" => Some(1_000_000_000),
        b"gb" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes.ok_or("argument must be a memory value".into())
}

impl Settings {
    /// In whole seconds.
    fn timeout(&self) -> Vec<u8> {
        text(self.idle_timeout.as_millis().div_ceil(1_000))
    }

    /// Sets one value. `None` if there is no such setting.
    fn set(&mut self, name: &[u8], value: &[u8]) -> Option<Outcome> {
        let is_it = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if let Some((.., set)) = SETTINGS.iter().find(|(known, ..)| is_it(known)) {
            return Some(set(self, value));
        }
        let (_, get) = CONSTANTS.iter().find(|(known, _)| is_it(known))?;
        let is_same = get(self) == value;
        Some(if is_same { Ok(()) } else { Err("can't set immutable config".into()) })
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

pub(super) fn get(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let patterns: Vec<_> = request.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_asked = |name: &str| patterns.iter().any(|pattern| matches(pattern, name.as_bytes()));
    let asked: Vec<_> = all().filter(|(name, _)| is_asked(name)).collect();
    reply.map(asked.len());
    for (name, get) in asked {
        reply.bulk(name);
        reply.bulk(get(&desk.settings));
    }
    Ok(())
}

pub(super) fn check(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    desk.settings.set_all(request).and_then(|_| everywhere(desk, request))
}

pub(super) fn set(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.apply(desk.settings.set_all(request)?);
    Ok(reply.ok())
}
