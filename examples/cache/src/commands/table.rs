//! All commands, and how they are found by their names.

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::*;
use crate::stats::{Figure, info::info};

const NONE: Flags = Flags::empty();
const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = WRITE.union(Flags::DENYOOM);
const EARLY: Flags = Flags::NO_AUTH;
const TALK: Flags = Flags::SUBSCRIBED;
const NOW: Flags = Flags::AT_ONCE;

/// The keys are gone at once. Their memory comes back step by step.
const FLUSH: OnDesk = |desk, _, reply| {
    desk.keyspace.flush();
    Ok(reply.ok())
};
const OK: OnDesk = |_, _, reply| Ok(reply.ok());
const EMPTY: OnDesk = |_, _, reply| Ok(reply.array(0));
const ID: OnDesk = |desk, request, reply| Ok(reply.integer(desk.sessions[request.client].id.number as i64));
const DBSIZE: OnDesk = |desk, _, reply| Ok(reply.integer(desk.stats.get(Figure::Keys) as i64));

const fn command(name: &'static str, arity: i8, flags: Flags, run: Run) -> Command {
    Command { name, arity, flags, run }
}

/// Every command. Its number is its place here.
pub(crate) static COMMANDS: &[Command] = &[
    command("publish", 3, NONE, Run::Threads(pubsub::subscribed, pubsub::publish, Fold::Sum)),
    command("mget", -2, READ, Run::EachKey(strings::get, 1, Fold::List)),
    command("command", -1, NONE, Run::Client(client::command)),
    command("get", 2, READ, Run::Key(strings::get)),
    command("set", -3, GROW, Run::Key(strings::set)),
    command("setex", 4, GROW, Run::Key(strings::set)),
    command("psetex", 4, GROW, Run::Key(strings::set)),
    command("setnx", 3, GROW, Run::Key(strings::set)),
    command("getset", 3, GROW, Run::Key(strings::set)),
    command("append", 3, GROW, Run::Key(strings::write_part)),
    command("setrange", 4, GROW, Run::Key(strings::write_part)),
    command("strlen", 2, READ, Run::Key(strings::part)),
    command("getrange", 4, READ, Run::Key(strings::part)),
    command("incrbyfloat", 3, GROW, Run::Key(strings::incr_by_float)),
    command("getex", -2, WRITE, Run::Key(strings::getex)),
    command("getdel", 2, WRITE, Run::Key(strings::getdel)),
    command("incr", 2, GROW, Run::Key(strings::incr::<false>)),
    command("decr", 2, GROW, Run::Key(strings::incr::<true>)),
    command("incrby", 3, GROW, Run::Key(strings::incr::<false>)),
    command("decrby", 3, GROW, Run::Key(strings::incr::<true>)),
    command("mset", -3, GROW.union(Flags::PAIRS), Run::EachKey(strings::set, 2, Fold::Same)),
    command("msetnx", -3, GROW.union(Flags::PAIRS), Run::Threads(keys::together, keys::set_new, Fold::Same)),
    command("rename", 3, WRITE, Run::Threads(keys::together, keys::rename, Fold::Same)),
    command("renamenx", 3, WRITE, Run::Threads(keys::together, keys::rename, Fold::Same)),
    command("expire", -3, WRITE, Run::Key(expiry::expire::<1_000, false>)),
    command("pexpire", -3, WRITE, Run::Key(expiry::expire::<1, false>)),
    command("expireat", -3, WRITE, Run::Key(expiry::expire::<1_000, true>)),
    command("pexpireat", -3, WRITE, Run::Key(expiry::expire::<1, true>)),
    command("ttl", 2, READ, Run::Key(expiry::ttl::<1_000, false>)),
    command("pttl", 2, READ, Run::Key(expiry::ttl::<1, false>)),
    command("expiretime", 2, READ, Run::Key(expiry::ttl::<1_000, true>)),
    command("pexpiretime", 2, READ, Run::Key(expiry::ttl::<1, true>)),
    command("persist", 2, WRITE, Run::Key(expiry::persist)),
    command("type", 2, READ, Run::Key(keys::kind)),
    command("del", -2, WRITE, Run::EachKey(keys::del, 1, Fold::Sum)),
    command("unlink", -2, WRITE, Run::EachKey(keys::del, 1, Fold::Sum)),
    command("exists", -2, READ, Run::EachKey(keys::exists, 1, Fold::Sum)),
    command("touch", -2, READ, Run::EachKey(keys::exists, 1, Fold::Sum)),
    command("object", -2, NONE, Run::Container),
    command("object|encoding", 3, READ, Run::Key(keys::inspect)),
    command("memory", -2, NONE, Run::Container),
    command("memory|usage", -3, READ, Run::Key(keys::inspect)),
    command("dbsize", 1, READ, Run::Threads(everywhere, DBSIZE, Fold::Sum)),
    command("flushdb", -1, WRITE, Run::Threads(keys::check_flush, FLUSH, Fold::Same)),
    command("flushall", -1, WRITE, Run::Threads(keys::check_flush, FLUSH, Fold::Same)),
    command("keys", 2, READ, Run::Threads(everywhere, keys::matching, Fold::Elements)),
    command("randomkey", 1, READ, Run::Threads(everywhere, keys::random, Fold::Any)),
    command("scan", -2, READ, Run::Threads(keys::scanned, keys::scan, Fold::Same)),
    command("subscribe", -2, TALK, Run::Client(pubsub::subscribe::<0>)),
    command("unsubscribe", -1, TALK, Run::Client(pubsub::unsubscribe::<0>)),
    command("psubscribe", -2, TALK, Run::Client(pubsub::subscribe::<1>)),
    command("punsubscribe", -1, TALK, Run::Client(pubsub::unsubscribe::<1>)),
    command("pubsub", -2, NONE, Run::Container),
    command("pubsub|channels", -2, NONE, Run::Threads(everywhere, pubsub::names::<0>, Fold::Distinct)),
    command("pubsub|numpat", 2, NONE, Run::Threads(everywhere, pubsub::names::<1>, Fold::Count)),
    command("pubsub|numsub", -2, NONE, Run::Threads(everywhere, pubsub::numbers, Fold::Pairs)),
    command("ping", -1, TALK, Run::Client(client::ping)),
    command("echo", 2, NONE, Run::Client(|_, request, reply| Ok(reply.bulk(request.arg(1))))),
    command("hello", -1, EARLY, Run::Client(client::hello)),
    command("auth", -2, EARLY, Run::Client(client::auth)),
    command("quit", -1, EARLY.union(TALK).union(NOW), Run::Client(client::quit)),
    command("multi", 1, NOW, Run::Client(client::multi)),
    command("exec", 1, NOW, Run::Exec),
    command("watch", -2, NOW, Run::Client(keys::watch)),
    command("unwatch", 1, NONE, Run::Client(keys::unwatch)),
    command("discard", 1, NOW, Run::Client(client::discard)),
    command("select", 2, Flags::ONLY_0_IN_MULTI, Run::Client(client::select)),
    command("client", -2, NONE, Run::Container),
    command("client|id", 2, NONE, Run::Client(ID)),
    command("client|reply", 3, NONE, Run::Client(client::mute)),
    command("client|no-evict", 3, NONE, Run::Client(client::on_or_off)),
    command("client|setname", 3, NONE, Run::Client(client::set_name)),
    command("client|getname", 2, NONE, Run::Client(client::get_name)),
    command("client|setinfo", 4, NONE, Run::Client(client::set_info)),
    command("time", 1, NONE, Run::Client(client::time)),
    command("info", -1, NONE, Run::Client(info)),
    // There are no functions to flush, but Redis's own test suite begins with it.
    command("function", -2, NONE, Run::Container),
    command("function|flush", -2, NONE, Run::Client(OK)),
    // Nothing is recorded.
    command("slowlog", -2, NONE, Run::Container),
    command("slowlog|get", -2, NONE, Run::Client(EMPTY)),
    command("slowlog|len", 2, NONE, Run::Client(|_, _, reply| Ok(reply.integer(0)))),
    command("slowlog|reset", 2, NONE, Run::Client(OK)),
    command("latency", -2, NONE, Run::Container),
    command("latency|latest", 2, NONE, Run::Client(EMPTY)),
    command("|help", 2, NONE, Run::Client(client::help)),
    command("config", -2, NONE, Run::Container),
    command("config|get", -3, NONE, Run::Client(config::get)),
    command("config|set", -4, NONE, Run::Threads(config::set, config::apply, Fold::Same)),
];

/// The number of PUBLISH: events are published, too.
pub(crate) const PUBLISH: u16 = 0;
/// The number of MGET, which does not run at once.
pub(crate) const MGET: u16 = 1;
/// The number of COMMAND, which runs without a subcommand, too.
const COMMAND: u16 = 2;

const MAX_NAME: usize = 16;
/// Bytes of names and arguments that the text of an error repeats.
const QUOTED: usize = 128;

static NUMBERS: LazyLock<HashMap<u128, u16>> = LazyLock::new(|| {
    let names = COMMANDS.iter().map(|command| pack(command.name.as_bytes()).unwrap_or_default());
    names.zip(0..).collect()
});

/// A name in lower case, as a number. `None` if no command has so long a name.
fn pack(name: &[u8]) -> Option<u128> {
    let mut packed = [0; MAX_NAME];
    packed.get_mut(..name.len())?.copy_from_slice(name);
    packed.make_ascii_lowercase();
    // Zeros are what follows a name.
    (name.last() != Some(&0)).then_some(u128::from_be_bytes(packed))
}

fn number(name: &[u8]) -> Option<u16> {
    NUMBERS.get(&pack(name)?).copied()
}

/// The number of the command, or of the subcommand, that a request names.
pub(crate) fn find(request: &Request<'_>) -> Result<u16, Failure> {
    let name = request.arg(0);
    let found = number(name).filter(|_| !name.contains(&b'|')).ok_or_else(|| unknown(request))?;
    let is_container = found == COMMAND || matches!(COMMANDS[usize::from(found)].run, Run::Container);
    if !is_container || request.len() < 2 {
        return Ok(found);
    }
    let container = if request.is(1, "help") { b"" } else { name };
    number(&[container, b"|", request.arg(1)].concat()).ok_or_else(|| unknown_subcommand(request))
}

fn unknown_subcommand(request: &Request<'_>) -> Failure {
    let (sub, container) = (cut(request.arg(1), QUOTED), cut(request.arg(0), QUOTED).to_uppercase());
    format!("unknown subcommand '{sub}'. Try {container} HELP.").into()
}

fn cut(arg: &[u8], len: usize) -> String {
    quoted(&arg[..arg.len().min(len)])
}

fn unknown(request: &Request<'_>) -> Failure {
    let (name, mut args, mut left) = (cut(request.arg(0), QUOTED), String::new(), QUOTED);
    for arg in request.from(1) {
        if left == 0 {
            break;
        }
        let quoted = format!("'{}' ", cut(arg, left));
        left = left.saturating_sub(quoted.chars().count());
        args += &quoted;
    }
    format!("unknown command '{name}', with args beginning with: {args}").into()
}
