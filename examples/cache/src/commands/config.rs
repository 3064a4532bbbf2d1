//! The settings: the command line, and CONFIG GET and SET of those that tools ask for.
//!
//! CONFIG SET replaces what all threads share, and each thread takes it over, before it replies.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use super::glob::matches;
use super::*;
use crate::protocol::parse_i64;
use crate::protocol::parser::MAX_BULK;

/// A cache that Redis clients talk to: threads that share nothing, each with a poller, a shard of
/// timers, and its share of the keys
#[derive(Clone, Debug, Parser)]
#[command(name = "cache", version)]
pub(crate) struct Settings {
    /// Where clients connect; port 0 picks one. The first line of output names the address
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379", value_parser = resolve)]
    pub(crate) listen: SocketAddr,
    /// Number of threads [default: one for every two cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// One thread, so that commands on several keys, and WATCH, work for any keys: else their keys need a
    /// common tag, as in a cluster of Redis
    #[arg(long, conflicts_with = "threads")]
    pub(crate) one_thread: bool,
    /// Gives each thread a core of its own: for machines on which nothing else runs on these cores
    #[arg(long)]
    pub(crate) pin: bool,
    /// Password that clients have to give (AUTH, HELLO). Other users of the machine may see this flag
    #[arg(long = "requirepass", value_name = "PASSWORD", default_value = "", hide_default_value = true)]
    #[arg(env = "CACHE_REQUIREPASS", hide_env_values = true)]
    #[arg(value_parser = flag(|text| Ok(Box::<[u8]>::from(text))))]
    pub(crate) password: Box<[u8]>,
    /// File with the password, which takes the place of another one
    #[arg(long = "requirepass-file", value_name = "PATH", value_parser = read_password)]
    pub(crate) password_file: Option<Box<[u8]>>,
    /// Memory for keys and buffers, for example 100mb: beyond it, commands that need more are
    /// refused; 0 is no limit
    #[arg(long = "maxmemory", value_name = "BYTES", default_value = "0", value_parser = flag(parse_bytes))]
    pub(crate) max_memory: u64,
    /// Clients at the same time
    #[arg(long, value_name = "N", default_value = "10000", value_parser = flag(parse_clients))]
    pub(crate) max_clients: usize,
    /// Time after which an idle connection is closed, for example 30s or 5min; 0s is never
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_idle_timeout)]
    pub(crate) idle_timeout: Duration,
    /// Where metrics are served over HTTP; port 0 picks one, and the second line of output names it
    #[arg(long, value_name = "ADDR", value_parser = resolve)]
    pub(crate) metrics: Option<SocketAddr>,
    /// `notify-keyspace-events`
    #[arg(skip)]
    pub(crate) events: Class,
}

/// Parses the value of a flag as CONFIG SET does.
fn flag<T>(parse: fn(&[u8]) -> Result<T, Failure>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| parse(text.as_bytes()).map_err(|Failure(_, why)| why.into())
}

impl Settings {
    /// All values by their names. What is not a field is what it always is.
    fn values(&self) -> [(&'static str, Vec<u8>); 11] {
        let text = |value: &dyn ToString| value.to_string().into_bytes();
        [
            ("maxmemory", text(&self.max_memory)),
            ("maxclients", text(&self.max_clients)),
            ("timeout", text(&self.idle_timeout.as_millis().div_ceil(1_000))),
            ("requirepass", self.password.to_vec()),
            ("notify-keyspace-events", text(&self.events.letters())),
            ("port", text(&self.listen.port())),
            ("proto-max-bulk-len", text(&MAX_BULK)),
            ("appendonly", text(&"no")),
            ("databases", text(&"1")),
            ("maxmemory-policy", text(&"noeviction")),
            ("save", Vec::new()),
        ]
    }

    /// Sets one value. What is not a field can only be set to what it is.
    fn set(&mut self, name: &str, value: &[u8]) -> Outcome {
        let unknown_class = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
        match name {
            "maxmemory" => self.max_memory = parse_bytes(value)?,
            "maxclients" => self.max_clients = parse_clients(value)?,
            "timeout" => self.idle_timeout = Duration::from_secs(within(value, (0, MAX_TIMEOUT))?),
            "requirepass" => self.password = value.into(),
            "notify-keyspace-events" => self.events = Class::parse(value).ok_or(unknown_class)?,
            _ if self.values().iter().any(|(known, is)| *known == name && is == value) => {}
            _ => return Err("can't set immutable config".into()),
        }
        Ok(())
    }

    /// Sets all of a request's values, or none.
    fn set_all(&self, request: &Request<'_>) -> Result<Self, Failure> {
        if request.len() % 2 == 1 {
            return Err(SYNTAX.into());
        }
        let (mut changed, known) = (self.clone(), self.values());
        for at in (2..request.len()).step_by(2) {
            let name = quoted(request.arg(at));
            let Some(value) = known.iter().position(|(known, _)| request.is(at, known)) else {
                return Err(format!("Unknown option or number of arguments for CONFIG SET - '{name}'").into());
            };
            let is_second = (2..at).step_by(2).any(|it| request.is(it, known[value].0));
            let twice = Err("duplicate parameter".into());
            let done = if is_second { twice } else { changed.set(known[value].0, request.arg(at + 1)) };
            done.map_err(|Failure(_, why)| {
                format!("CONFIG SET failed (possibly related to argument '{name}') - {why}")
            })?;
        }
        Ok(changed)
    }
}

fn resolve(text: &str) -> Result<SocketAddr, String> {
    let all = text.to_socket_addrs().map_err(|error| error.to_string())?;
    all.max_by_key(SocketAddr::is_ipv4).ok_or_else(|| "the name has no address".into())
}

fn read_password(path: &str) -> Result<Box<[u8]>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let password = Some(bytes.trim_ascii_end()).filter(|it| !it.is_empty());
    password.map(Box::from).ok_or_else(|| "the file is empty".into())
}

/// In seconds.
const MAX_TIMEOUT: i64 = i32::MAX as i64;

fn parse_idle_timeout(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    // Ticks are milliseconds.
    let is_fine = time.subsec_nanos() % 1_000_000 == 0 && time <= Duration::from_secs(MAX_TIMEOUT as u64);
    is_fine.then_some(time).ok_or_else(|| format!("it must be whole milliseconds, at most {MAX_TIMEOUT}s"))
}

fn within(value: &[u8], (least, most): (i64, i64)) -> Result<u64, Failure> {
    match parse_i64(value) {
        None => Err("argument couldn't be parsed into an integer".into()),
        Some(value) if (least..=most).contains(&value) => Ok(value as u64),
        Some(_) => Err(format!("argument must be between {least} and {most} inclusive").into()),
    }
}

fn parse_clients(text: &[u8]) -> Result<usize, Failure> {
    Ok(within(text, (1, i64::from(u32::MAX)))? as usize)
}

/// A number of bytes, with or without a unit: `100mb`. A kilobyte is 1,024 bytes, a `k` 1,000.
fn parse_bytes(text: &[u8]) -> Result<u64, Failure> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<u64>().ok());
    let units = ["b", "k", "kb", "m", "mb", "g", "gb", ""].into_iter();
    let sizes = [1, 1_000, 1 << 10, 1_000_000, 1 << 20, 1_000_000_000, 1 << 30, 1];
    let unit = units.zip(sizes).find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()));
    let bytes = number.zip(unit).and_then(|(number, (_, size))| number.checked_mul(size));
    bytes.ok_or("argument must be a memory value".into())
}

pub(super) fn get(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let patterns: Vec<_> = request.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_asked = |name: &str| patterns.iter().any(|pattern| matches(pattern, name.as_bytes()));
    let asked: Vec<_> = desk.settings.values().into_iter().filter(|(name, _)| is_asked(name)).collect();
    reply.map(asked.len());
    for (name, value) in asked {
        reply.bulk(name);
        reply.bulk(value);
    }
    Ok(())
}

/// Changes the shared settings. Clients of other threads may do so at the same time.
pub(super) fn set(desk: &Desk, request: &Request<'_>) -> Result<Vec<usize>, Failure> {
    let shared = &desk.shared.settings;
    loop {
        let before = shared.load();
        let replaced = shared.compare_and_swap(&before, Arc::new(before.set_all(request)?));
        if Arc::ptr_eq(&before, &replaced) {
            return everywhere(desk, request);
        }
    }
}

/// Takes over the shared settings, in each thread.
pub(super) fn apply(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.apply();
    Ok(reply.ok())
}
