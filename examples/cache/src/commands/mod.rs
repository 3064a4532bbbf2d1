//! What commands do. [`table`] lists them; `strings`, `expiry` and `keys` work on a thread's keys,
//! `client`, `server`, `config` and `pubsub` on clients and on the server.
//!
//! Semantics and texts are those of Redis 7.0; `tests/differential` compares both.

pub(crate) mod client;
pub(crate) mod config;
mod expiry;
mod glob;
mod keys;
mod options;
pub(crate) mod pubsub;
mod server;
mod strings;
pub(crate) mod table;

use std::borrow::Cow;

use crate::desk::Desk;
use crate::keyspace::Keyspace;
use crate::protocol::{Failure, Outcome, Reply, Request};
use crate::session::gather::Fold;

/// Works on the keys of the thread that has the key.
pub(crate) type OnKey = fn(&mut Keyspace, &Request<'_>, &mut Reply<'_>) -> Outcome;
/// Works on a thread.
pub(crate) type OnThread = fn(&mut Desk, &Request<'_>, &mut Reply<'_>) -> Outcome;
/// Works on the client in this slot, in its own thread.
pub(crate) type OnClient = fn(&mut Desk, usize, &Request<'_>, &mut Reply<'_>) -> Outcome;
/// Looks at a request before any thread runs it, and returns the threads that it is for.
pub(crate) type Choose = fn(&Desk, &Request<'_>) -> Result<Vec<usize>, Failure>;

/// Where a command runs.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// In the thread of its client.
    Client(OnClient),
    /// In the thread of its key, which is the second argument.
    Key(OnKey),
    /// Once for each key, in the thread of the key: this many arguments belong to each.
    EachKey(OnKey, usize, Fold),
    /// In the chosen threads.
    Threads(Choose, OnThread, Fold),
    /// Not at all: it has subcommands.
    Container,
}

/// What a command is, besides what it does: a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const WRITE: Self = Self(1);
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// Refused while there is too little memory.
    pub(crate) const DENYOOM: Self = Self(1 << 2);
    pub(crate) const FAST: Self = Self(1 << 3);
    /// Allowed before a client is authenticated.
    pub(crate) const NO_AUTH: Self = Self(1 << 4);
    pub(crate) const PUBSUB: Self = Self(1 << 5);
    pub(crate) const ADMIN: Self = Self(1 << 6);
    /// Allowed to a RESP2 client that has subscribed. Redis has no name for it.
    pub(crate) const SUBSCRIBED: Self = Self(1 << 7);
    /// Redis's names, by bits.
    const NAMES: [&str; 7] = ["write", "readonly", "denyoom", "fast", "no_auth", "pubsub", "admin"];

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().zip(0..).filter(move |(_, bit)| self.0 >> bit & 1 == 1).map(|(name, _)| name)
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

impl Command {
    pub(crate) fn accepts(&self, args: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        let has_pairs = !matches!(self.run, Run::EachKey(_, 2, _)) || args % 2 == 1;
        has_pairs && if self.arity < 0 { args >= least } else { args == least }
    }

    /// The first key, the last one, counted from the end if negative, and the distance of keys.
    fn keys(&self) -> (i64, i64, i64) {
        match self.run {
            Run::Key(_) => (1, 1, 1),
            Run::EachKey(_, step, _) => (1, -1, step as i64),
            _ => (0, 0, 0),
        }
    }
}

/// The error for a wrong number of arguments.
pub(crate) fn wrong_arity(name: &str) -> Failure {
    format!("wrong number of arguments for '{name}' command").into()
}

/// Arguments in the text of an error.
pub(crate) fn lossy(arg: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(arg)
}
