//! The settings: CONFIG GET and SET of those that tools ask for.
//!
//! Each thread has its own copy, which CONFIG SET changes in every thread before it replies.

use std::time::Duration;

use crate::commands::glob::matches;
use crate::commands::{Failure, Threads, lossy};
use crate::desk::Desk;
use crate::events::Class;
use crate::protocol::number::parse_i64;
use crate::protocol::parser::{MAX_BULK, MAX_REQUEST};
use crate::protocol::reply::{Reply, SYNTAX};
use crate::protocol::request::Request;

/// What can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes; 0 is no limit.
    pub(crate) max_memory: u64,
    pub(crate) max_clients: usize,
    /// Zero is no limit.
    pub(crate) idle_timeout: Duration,
    pub(crate) password: Option<Vec<u8>>,
    /// `notify-keyspace-events`.
    pub(crate) events: Class,
    /// Said, and not set.
    pub(crate) port: u16,
}

/// What cannot be set but may be asked for, and set to what it is.
const FIXED: [(&str, &str); 7] = [
    ("appendonly", "no"),
    ("databases", "1"),
    ("maxmemory-policy", "noeviction"),
    ("save", ""),
    ("lazyfree-lazy-user-flush", "yes"),
    ("hash-max-listpack-entries", "128"),
    ("cluster-enabled", "no"),
];

impl Settings {
    /// All names with their values.
    fn all(&self) -> Vec<(&'static str, Vec<u8>)> {
        let text = |value: String| value.into_bytes();
        let mut all: Vec<_> = FIXED.iter().map(|&(name, value)| (name, value.as_bytes().to_vec())).collect();
        all.extend([
            ("maxmemory", text(self.max_memory.to_string())),
            ("maxclients", text(self.max_clients.to_string())),
            ("timeout", text(self.idle_timeout.as_millis().div_ceil(1_000).to_string())),
            ("requirepass", self.password.clone().unwrap_or_default()),
            ("notify-keyspace-events", text(self.events.letters())),
            ("port", text(self.port.to_string())),
            ("proto-max-bulk-len", text(MAX_BULK.to_string())),
            ("client-query-buffer-limit", text(MAX_REQUEST.to_string())),
        ]);
        all
    }

    /// Sets one value. The error says what is wrong with it; `None` if there is no such setting.
    fn set(&mut self, name: &[u8], value: &[u8]) -> Option<Result<(), Failure>> {
        let name = name.to_ascii_lowercase();
        Some(match &name[..] {
            b"maxmemory" => parse_bytes(value)
                .map(|bytes| self.max_memory = bytes)
                .ok_or_else(|| "argument must be a memory value".to_owned()),
            b"maxclients" => within(value, 1, 1 << 30).map(|it| self.max_clients = it as usize),
            b"timeout" => within(value, 0, 1 << 30).map(|it| self.idle_timeout = Duration::from_secs(it)),
            b"requirepass" => {
                self.password = Some(value.to_vec()).filter(|password| !password.is_empty());
                Ok(())
            }
            b"notify-keyspace-events" => Class::parse(value)
                .map(|events| self.events = events)
                .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
            _ => {
                let (_, fixed) = self.all().into_iter().find(|(known, _)| known.as_bytes() == name)?;
                if fixed == value { Ok(()) } else { Err("can't set immutable config".to_owned()) }
            }
        })
    }

    /// Sets all of a request's values, or none.
    fn set_all(&self, request: &Request<'_>) -> Result<Self, Failure> {
        if request.len() % 2 == 1 {
            return Err(SYNTAX.to_owned());
        }
        let mut changed = self.clone();
        for at in (2..request.len()).step_by(2) {
            let name = lossy(request.arg(at));
            match changed.set(request.arg(at), request.arg(at + 1)) {
                Some(Ok(())) => {}
                None => {
                    return Err(format!("Unknown option or number of arguments for CONFIG SET - '{name}'"));
                }
                Some(Err(why)) => {
                    return Err(format!("CONFIG SET failed (possibly related to argument '{name}') - {why}"));
                }
            }
        }
        Ok(changed)
    }
}

fn within(value: &[u8], least: i64, most: i64) -> Result<u64, Failure> {
    match parse_i64(value) {
        None => Err("argument couldn't be parsed into an integer".to_owned()),
        Some(value) if (least..=most).contains(&value) => Ok(value as u64),
        Some(_) => Err(format!("argument must be between {least} and {most} inclusive")),
    }
}

/// A number of bytes, with or without a unit: `100mb`.
pub(crate) fn parse_bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let unit = match &unit.to_ascii_lowercase()[..] {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(unit)
}

pub(crate) fn get(desk: &mut Desk, _: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    let patterns: Vec<_> = request.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let mut all = desk.settings.all();
    all.retain(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())));
    reply.map(all.len());
    for (name, value) in all {
        reply.bulk(name.as_bytes());
        reply.bulk(&value);
    }
}

pub(crate) fn check(desk: &Desk, request: &Request<'_>) -> Result<Threads, Failure> {
    desk.settings.set_all(request).map(|_| Threads::All)
}

pub(crate) fn set(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) {
    match desk.settings.set_all(request) {
        Ok(settings) => {
            desk.apply(settings);
            reply.ok();
        }
        Err(text) => reply.error(text),
    }
}

pub(crate) fn resetstat(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) {
    desk.reset_counts();
    reply.ok();
}
