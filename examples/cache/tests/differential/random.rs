//! Commands made at random, in pipelines: thousands of them, on few keys.

use super::support::client::encode;
use super::{Likeness, Pair, assert_alike};

/// A sequence of numbers from a seed: a linear congruential generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const KEYS: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "", "key with spaces", "\r\n", "\u{0}"];
const VALUES: &[&str] = &[
    "",
    "x",
    "0",
    "1",
    "-1",
    "41",
    "007",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    " 1",
    "\r\n$5\r\n",
];
/// Times that are over, far off, or none: what happens in between, a comparison cannot tell.
const TIMES: &[&str] = &[
    "0",
    "-1",
    "1000000",
    "2000000",
    "3000000",
    "4102444800",
    "4102444800000",
    "9223372036854775807",
    "9223372036854775",
    "9223372036854776",
    "-9223372036854775808",
    "x",
    "",
    "+1",
];
const OPTIONS: &[&str] =
    &["NX", "XX", "GT", "LT", "GET", "KEEPTTL", "PERSIST", "EX", "PX", "EXAT", "PXAT", "foo"];

/// What stands for an argument in a pattern.
fn argument(chance: &mut Chance, kind: char) -> Vec<&'static str> {
    match kind {
        'k' => vec![chance.one_of(KEYS)],
        'v' => vec![chance.one_of(VALUES)],
        'i' => vec![chance.one_of(&["0", "1", "5", "40", "-1", "x", "9223372036854775807"])],
        't' => vec![chance.one_of(TIMES)],
        'o' if chance.below(3) == 0 => vec![],
        'o' => {
            let option = chance.one_of(OPTIONS);
            let takes_time = ["EX", "PX", "EXAT", "PXAT"].contains(&option) && chance.below(8) > 0;
            if takes_time { vec![option, chance.one_of(TIMES)] } else { vec![option] }
        }
        'c' if chance.below(2) == 0 => vec![],
        'c' => vec![chance.one_of(&["NX", "XX", "GT", "LT", "nx", "no"])],
        // Not GT or LT with a time from now: the same time twice may be one millisecond, or two.
        'n' if chance.below(2) == 0 => vec![],
        'n' => vec![chance.one_of(&["NX", "XX", "xx", "no"])],
        other => panic!("no argument is called {other}"),
    }
}

/// Commands with their arguments.
const COMMANDS: &[(&str, &str)] = &[
    ("GET", "k"),
    ("SET", "kv"),
    ("SET", "kvo"),
    ("SET", "kvoo"),
    ("SET", "kvooo"),
    ("SETEX", "ktv"),
    ("PSETEX", "ktv"),
    ("SETNX", "kv"),
    ("GETSET", "kv"),
    ("APPEND", "kv"),
    ("STRLEN", "k"),
    ("GETRANGE", "kvv"),
    ("SETRANGE", "kiv"),
    ("TOUCH", "kk"),
    ("GETEX", "k"),
    ("GETEX", "ko"),
    ("GETEX", "koo"),
    ("GETDEL", "k"),
    ("MGET", "kkk"),
    ("MSET", "kvkvkv"),
    ("MSET", "kvk"),
    ("INCR", "k"),
    ("DECR", "k"),
    ("INCRBY", "kv"),
    ("DECRBY", "kv"),
    ("EXPIRE", "ktnn"),
    ("PEXPIRE", "ktnn"),
    ("EXPIREAT", "ktcc"),
    ("PEXPIREAT", "ktcc"),
    ("TTL", "k"),
    ("PTTL", "k"),
    ("EXPIRETIME", "k"),
    ("PEXPIRETIME", "k"),
    ("PERSIST", "k"),
    ("TYPE", "k"),
    ("DEL", "kk"),
    ("UNLINK", "k"),
    ("EXISTS", "kkk"),
    ("KEYS", "k"),
    ("ECHO", "v"),
    ("GET", "kk"),
    ("INCR", ""),
];

fn command(chance: &mut Chance) -> Vec<&'static str> {
    // A flush is rare, or there would never be many keys.
    if chance.below(400) == 0 {
        return vec!["FLUSHALL"];
    }
    let (name, pattern) = COMMANDS[chance.below(COMMANDS.len())];
    let mut args = vec![name];
    pattern.chars().for_each(|kind| args.extend(argument(chance, kind)));
    args
}

/// Not compared: DBSIZE, which in Redis counts keys that have expired and that no command has looked at.
///
/// A key that the wall clock's present may or may not have reached cannot be compared: it is not
/// made, because `TIMES` are far from the present, or in the past.
fn play(seed: u64, is_resp3: bool, has_transactions: bool) {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let mut chance = Chance(seed);
    if is_resp3 {
        pair.cache.run("HELLO 3");
        pair.redis.run("HELLO 3");
    }
    for _ in 0..400 {
        let mut commands: Vec<_> = (0..=chance.below(40)).map(|_| command(&mut chance)).collect();
        if has_transactions {
            // Their replies are compared as they are: no times, no lists without order.
            commands.retain(|args| Likeness::of(args[0]) == Likeness::Equal);
            for _ in 0..commands.len() / 2 {
                let word = chance.one_of(&["MULTI", "MULTI", "EXEC", "EXEC", "DISCARD", "NONSENSE"]);
                commands.insert(chance.below(commands.len()), vec![word]);
            }
            // The keys of a client's WATCHes belong to one thread.
            let mut watch = || match chance.below(8) {
                0 => vec![vec!["UNWATCH"], vec!["WATCH", chance.one_of(KEYS)]],
                _ => Vec::new(),
            };
            let all = commands.into_iter().flat_map(|args| [watch(), vec![args]].concat());
            commands = all.collect();
        }
        let stream: Vec<_> = commands.iter().flat_map(|args| encode(args)).collect();
        pair.cache.send(&stream);
        pair.redis.send(&stream);
        for args in &commands {
            let (cache, redis) = (pair.cache.read(), pair.redis.read());
            assert_alike(Likeness::of(args[0]), args, &cache, &redis);
        }
    }
}

#[test]
fn random_pipelines_in_resp2() {
    (1..=4).for_each(|seed| play(seed, false, false));
}

#[test]
fn random_pipelines_in_resp3() {
    (5..=8).for_each(|seed| play(seed, true, false));
}

#[test]
fn random_transactions() {
    (9..=12).for_each(|seed| play(seed, seed % 2 == 0, true));
}
