//! What commands do. [`table`] lists them; `strings`, `expiry` and `keys` work on a thread's keys,
//! `client`, `config` and `pubsub` on clients and on the server.
//!
//! Semantics and texts are those of Redis 7.0; `tests/differential` compares both.

pub(crate) mod client;
pub(crate) mod config;
mod expiry;
mod glob;
mod keys;
mod options;
pub(crate) mod pubsub;
mod strings;
pub(crate) mod table;

use bitflags::bitflags;

use crate::desk::Desk;
use crate::events::Class;
use crate::keyspace::{Keyspace, Place};
use crate::protocol::{Failure, Outcome, Reply, Request, SYNTAX};
use crate::session::gather::Fold;
use options::integer;

/// Works on the keys of the thread that has the key.
pub(crate) type OnKey = fn(&mut Keyspace, &Request<'_>, &mut Reply<'_>) -> Outcome;
/// Works on a thread, or on the client of the request in its own thread.
pub(crate) type OnDesk = fn(&mut Desk, &Request<'_>, &mut Reply<'_>) -> Outcome;
/// Looks at a request before any thread runs it, and returns the threads that it is for.
pub(crate) type Choose = fn(&Desk, &Request<'_>) -> Result<Vec<usize>, Failure>;

#[derive(Clone, Copy)]
pub(crate) enum Run {
    Client(OnDesk),
    /// In the thread of its key, which is the second argument.
    Key(OnKey),
    /// Once for each key, in the thread of the key: this many arguments belong to each.
    EachKey(OnKey, usize, Fold),
    Threads(Choose, OnDesk, Fold),
    /// What the client has queued.
    Exec,
    /// Not at all: it has subcommands.
    Container,
}

bitflags! {
    /// What a command is, besides what it does, by Redis's names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Flags: u16 {
        const WRITE = 1;
        const READONLY = 1 << 1;
        const DENYOOM = 1 << 2;
        /// Allowed before a client is authenticated.
        const NO_AUTH = 1 << 3;
        /// Allowed to a RESP2 client that has subscribed. Redis has no name for it.
        const SUBSCRIBED = 1 << 4;
        /// Not allowed in a transaction, but with the argument 0. Redis has no name for it.
        const ONLY_0_IN_MULTI = 1 << 5;
        /// Not queued in a transaction. Redis has no name for it.
        const AT_ONCE = 1 << 6;
        /// Its arguments are keys and values by turns. Redis has no name for it.
        const PAIRS = 1 << 7;
    }
}

pub(crate) struct Command {
    /// In lower case; a subcommand's follows its container's after a bar.
    pub(crate) name: &'static str,
    /// The number of arguments with the name; negative for this many or more.
    pub(crate) arity: i8,
    pub(crate) flags: Flags,
    pub(crate) run: Run,
}

fn everywhere(desk: &Desk, _: &Request<'_>) -> Result<Vec<usize>, Failure> {
    Ok((0..desk.shared.threads()).collect())
}

fn delete(keys: &mut Keyspace, request: &Request<'_>, place: Place) {
    keys.remove(place);
    keys.events.add(Class::GENERIC, "del", request.arg(1));
}

fn name(request: &Request<'_>) -> &'static str {
    table::COMMANDS[usize::from(request.command)].name
}

pub(crate) fn wrong_arity(name: &str) -> Failure {
    format!("wrong number of arguments for '{name}' command").into()
}

/// An argument for the text of an error: a character for each byte, which `Reply::error` makes a byte
/// again. As in Redis, it ends before a zero.
fn quoted(arg: &[u8]) -> String {
    arg.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
}
