//! The same commands to this cache and to Debian's redis-server: the replies are the same.
//!
//! Where a reply depends on the time, both may be a few seconds apart. Lists of keys have no order.
//! What is known to differ is listed in the package's README.

mod random;
mod scripts;
#[path = "../support/mod.rs"]
mod support;

use support::Server;
use support::client::{Client, Value};

/// Two clients, one of each server, that say the same.
pub(crate) struct Pair {
    pub(crate) cache: Client,
    pub(crate) redis: Client,
}

/// What may differ between two replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    Equal,
    /// The same elements.
    Unordered,
    /// Times, which may be this many units apart: a few seconds.
    Near(i64),
}

/// Milliseconds that two times may be apart: the machine is busy.
const APART: i64 = 10_000;

impl Likeness {
    /// How replies to this command may differ.
    pub(crate) fn of(command: &str) -> Self {
        match command.to_ascii_lowercase().as_str() {
            "ttl" | "expiretime" => Self::Near(APART / 1_000),
            "pttl" | "pexpiretime" => Self::Near(APART),
            "keys" | "config" | "pubsub" => Self::Unordered,
            _ => Self::Equal,
        }
    }

    fn holds(self, cache: &Value, redis: &Value) -> bool {
        let sorted = |value: &Value| {
            let mut elements = value.elements().to_vec();
            elements.sort();
            elements
        };
        match (self, cache, redis) {
            (Self::Near(apart), Value::Integer(a), Value::Integer(b)) if *a > 0 && *b > 0 => {
                a.abs_diff(*b) <= apart as u64
            }
            (Self::Unordered, Value::Array(_), Value::Array(_))
            | (Self::Unordered, Value::Map(_), Value::Map(_)) => sorted(cache) == sorted(redis),
            _ => cache == redis,
        }
    }
}

impl Pair {
    /// Starts both servers. `None` if there is no Redis.
    pub(crate) fn connect() -> Option<(Self, [Server; 2])> {
        let (redis, cache) = (Server::redis()?, Server::cache(&["--threads", "3"]));
        Some((Self { cache: cache.connect(), redis: redis.connect() }, [cache, redis]))
    }

    /// Another pair of clients of the same servers.
    pub(crate) fn another(&self) -> Self {
        let connect = |client: &Client| Client::connect(client.stream.peer_addr().expect("an address"));
        Self { cache: connect(&self.cache), redis: connect(&self.redis) }
    }

    /// Runs the words of a line in both. Returns the reply of the cache.
    pub(crate) fn same(&mut self, line: &str) -> Value {
        self.same_args(&line.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn same_args<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        let (cache, redis) = (self.cache.run_args(args), self.redis.run_args(args));
        let command = String::from_utf8_lossy(args[0].as_ref()).into_owned();
        assert_alike(Likeness::of(&command), args, &cache, &redis);
        cache
    }
}

pub(crate) fn assert_alike<A: AsRef<[u8]>>(likeness: Likeness, args: &[A], cache: &Value, redis: &Value) {
    let words: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref())).collect();
    assert!(likeness.holds(cache, redis), "{words:?}\n   cache: {cache:?}\n   redis: {redis:?}");
}
