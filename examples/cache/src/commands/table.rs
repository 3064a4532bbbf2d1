//! All commands, and how they are found by their names.

use crate::commands::{Command, Flags, Run, client, config, expiry, keys, pubsub, server, strings};
use crate::protocol::request::Request;
use crate::session::gather::Fold;

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const SLOW_READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FAST_GROW: Flags = GROW.and(Flags::FAST);
const FAST: Flags = Flags::FAST;
const EARLY: Flags = Flags::NO_AUTH.and(Flags::FAST);
const CHANNELS: Flags = Flags::PUBSUB.and(Flags::SUBSCRIBED);

const NO_KEY: (i8, i8, i8) = (0, 0, 0);
const ONE_KEY: (i8, i8, i8) = (1, 1, 1);
const ALL_KEYS: (i8, i8, i8) = (1, -1, 1);
const KEY_VALUES: (i8, i8, i8) = (1, -1, 2);

const fn command(name: &'static str, arity: i8, flags: Flags, run: Run) -> Command {
    let keys = match run {
        Run::Key(_) => ONE_KEY,
        Run::EachKey(_, 2, _) => KEY_VALUES,
        Run::EachKey(..) => ALL_KEYS,
        _ => NO_KEY,
    };
    Command { name, arity, flags, keys, run }
}

/// Every command. Its number is its place here.
pub(crate) static COMMANDS: &[Command] = &[
    command("get", 2, READ, Run::Key(strings::get)),
    command("set", -3, GROW, Run::Key(strings::set)),
    command("setex", 4, GROW, Run::Key(strings::setex)),
    command("psetex", 4, GROW, Run::Key(strings::setex)),
    command("getex", -2, WRITE, Run::Key(strings::getex)),
    command("getdel", 2, WRITE, Run::Key(strings::getdel)),
    command("incr", 2, FAST_GROW, Run::Key(strings::incr)),
    command("decr", 2, FAST_GROW, Run::Key(strings::incr)),
    command("incrby", 3, FAST_GROW, Run::Key(strings::incr)),
    command("decrby", 3, FAST_GROW, Run::Key(strings::incr)),
    command("mget", -2, READ, Run::EachKey(strings::get, 1, Fold::List)),
    command("mset", -3, GROW, Run::EachKey(strings::set_plain, 2, Fold::Ok)),
    command("expire", -3, WRITE, Run::Key(expiry::expire)),
    command("pexpire", -3, WRITE, Run::Key(expiry::expire)),
    command("expireat", -3, WRITE, Run::Key(expiry::expire)),
    command("pexpireat", -3, WRITE, Run::Key(expiry::expire)),
    command("ttl", 2, READ, Run::Key(expiry::ttl)),
    command("pttl", 2, READ, Run::Key(expiry::ttl)),
    command("expiretime", 2, READ, Run::Key(expiry::ttl)),
    command("pexpiretime", 2, READ, Run::Key(expiry::ttl)),
    command("persist", 2, WRITE, Run::Key(expiry::persist)),
    command("type", 2, READ, Run::Key(keys::kind)),
    command("del", -2, Flags::WRITE, Run::EachKey(keys::delete, 1, Fold::Sum)),
    command("unlink", -2, WRITE, Run::EachKey(keys::delete, 1, Fold::Sum)),
    command("exists", -2, READ, Run::EachKey(keys::exists, 1, Fold::Sum)),
    command("dbsize", 1, READ, Run::Threads(keys::everywhere, keys::dbsize, Fold::Sum)),
    command("flushdb", -1, Flags::WRITE, Run::Threads(keys::check_flush, keys::flush, Fold::Ok)),
    command("flushall", -1, Flags::WRITE, Run::Threads(keys::check_flush, keys::flush, Fold::Ok)),
    command("keys", 2, SLOW_READ, Run::Threads(keys::everywhere, keys::matching, Fold::Elements)),
    command("randomkey", 1, SLOW_READ, Run::Threads(keys::everywhere, keys::random, Fold::Random)),
    command("scan", -2, SLOW_READ, Run::Threads(keys::check_scan, keys::scan, Fold::Ok)),
    command(pubsub::PUBLISH, 3, FAST.and(Flags::PUBSUB), {
        Run::Threads(pubsub::check_publish, pubsub::publish, Fold::Sum)
    }),
    command("subscribe", -2, CHANNELS, Run::Client(pubsub::subscribe)),
    command("unsubscribe", -1, CHANNELS, Run::Client(pubsub::unsubscribe)),
    command("ping", -1, FAST.and(Flags::SUBSCRIBED), Run::Client(client::ping)),
    command("echo", 2, FAST, Run::Client(client::echo)),
    command("hello", -1, EARLY, Run::Client(client::hello)),
    command("auth", -2, EARLY, Run::Client(client::auth)),
    command("quit", -1, EARLY.and(Flags::SUBSCRIBED), Run::Client(client::quit)),
    command("select", 2, FAST, Run::Client(client::select)),
    command("client", -2, Flags::NONE, Run::Container),
    command("client|id", 2, Flags::NONE, Run::Client(client::id)),
    command("client|setname", 3, Flags::NONE, Run::Client(client::set_name)),
    command("client|getname", 2, Flags::NONE, Run::Client(client::get_name)),
    command("client|setinfo", 4, Flags::NONE, Run::Client(client::set_info)),
    command("time", 1, FAST, Run::Client(server::time)),
    command("info", -1, Flags::NONE, Run::Threads(keys::everywhere, server::count, Fold::Info)),
    command(METRICS, 1, Flags::ADMIN, Run::Threads(keys::everywhere, server::count, Fold::Metrics)),
    command("command", -1, Flags::NONE, Run::Client(server::command)),
    command("command|count", 2, Flags::NONE, Run::Client(server::command_count)),
    command("command|list", -2, Flags::NONE, Run::Client(server::command_list)),
    command("command|info", -2, Flags::NONE, Run::Client(server::command_info)),
    command("command|docs", -2, Flags::NONE, Run::Client(server::command_docs)),
    // There are no functions to flush, but Redis's own test suite begins with it.
    command("function", -2, Flags::NONE, Run::Container),
    command("function|flush", -2, Flags::NONE, Run::Client(server::function_flush)),
    command("config", -2, Flags::ADMIN, Run::Container),
    command("config|get", -3, Flags::ADMIN, Run::Client(config::get)),
    command("config|set", -4, Flags::ADMIN, Run::Threads(config::check, config::set, Fold::Ok)),
    command("config|resetstat", 2, Flags::ADMIN, Run::Threads(keys::everywhere, config::resetstat, Fold::Ok)),
];

/// What the metrics' connections ask for. No client can: it names no command with a bar.
pub(crate) const METRICS: &str = "|metrics";

/// Finds commands by their names.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// Names and numbers, in the order of names.
    sorted: Vec<(u128, u16)>,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Command(u16),
    /// The container is known, the subcommand is not.
    UnknownSubcommand,
    Unknown,
}

/// The longest name.
const MAX_NAME: usize = 16;

impl Lookup {
    pub(crate) fn new() -> Self {
        let packed = COMMANDS.iter().map(|command| pack(command.name.as_bytes()).unwrap_or_default());
        let mut sorted: Vec<_> = packed.zip(0..).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The number of a command.
    pub(crate) fn named(&self, name: &[u8]) -> Option<u16> {
        let name = pack(name)?;
        let at = self.sorted.binary_search_by_key(&name, |&(name, _)| name).ok()?;
        Some(self.sorted[at].1)
    }

    pub(crate) fn find(&self, request: &Request<'_>) -> Found {
        let name = request.arg(0);
        let Some(number) = self.named(name).filter(|_| !name.contains(&b'|')) else { return Found::Unknown };
        let has_subcommands = matches!(COMMANDS[usize::from(number)].run, Run::Container)
            || name.eq_ignore_ascii_case(b"command");
        if !has_subcommands || request.len() < 2 {
            return Found::Command(number);
        }
        let full_name = [name, b"|", request.arg(1)].concat();
        self.named(&full_name).map_or(Found::UnknownSubcommand, Found::Command)
    }
}

/// A name in lower case, as a number. `None` if no command has so long a name.
fn pack(name: &[u8]) -> Option<u128> {
    let mut packed = [0; MAX_NAME];
    packed.get_mut(..name.len())?.copy_from_slice(name);
    packed.make_ascii_lowercase();
    Some(u128::from_be_bytes(packed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::request::Span;

    fn find(name: &str, sub: Option<&str>) -> Found {
        let bytes = [name, sub.unwrap_or_default()].concat();
        let mut spans = vec![Span::new(0, name.len())];
        spans.extend(sub.map(|_| Span::new(name.len(), bytes.len())));
        Lookup::new().find(&Request::new(bytes.as_bytes(), &spans, 0))
    }

    #[test]
    fn every_command_is_found_in_any_case() {
        for (number, command) in COMMANDS.iter().enumerate().filter(|(_, command)| command.name != METRICS) {
            let upper = command.name.to_uppercase();
            let (name, sub) =
                upper.split_once('|').map_or((&upper[..], None), |(name, sub)| (name, Some(sub)));
            assert_eq!(find(name, sub), Found::Command(number as u16), "{upper}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in ["", "gett", "ge", "client|id", "a-name-of-more-than-sixteen-bytes"] {
            assert_eq!(find(name, Some("x")), Found::Unknown, "{name}");
        }
        assert_eq!(find("client", Some("nothing")), Found::UnknownSubcommand);
        assert_eq!(find("command", Some("a subcommand with a long name")), Found::UnknownSubcommand);
    }
}
