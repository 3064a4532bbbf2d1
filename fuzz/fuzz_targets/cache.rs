//! The cache's parser and dispatcher: clients of two threads send whole commands made of known words,
//! and bytes of any kind, in pieces. Nothing panics, every reply is one, and keys and timers agree.

#![no_main]

use cache::sandbox::Sandbox;
use libfuzzer_sys::fuzz_target;

const CLIENTS: usize = 4;

/// Commands, and arguments of many kinds.
const WORDS: &[&str] = &[
    "GET",
    "SET",
    "SETEX",
    "PSETEX",
    "GETEX",
    "GETDEL",
    "MGET",
    "MSET",
    "INCR",
    "DECR",
    "INCRBY",
    "DECRBY",
    "EXPIRE",
    "PEXPIRE",
    "EXPIREAT",
    "PEXPIREAT",
    "TTL",
    "PTTL",
    "EXPIRETIME",
    "PEXPIRETIME",
    "PERSIST",
    "TYPE",
    "DEL",
    "UNLINK",
    "EXISTS",
    "DBSIZE",
    "FLUSHALL",
    "FLUSHDB",
    "KEYS",
    "SCAN",
    "RANDOMKEY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PUBLISH",
    "PING",
    "ECHO",
    "HELLO",
    "AUTH",
    "QUIT",
    "SELECT",
    "CLIENT",
    "ID",
    "SETNAME",
    "GETNAME",
    "TIME",
    "INFO",
    "COMMAND",
    "COUNT",
    "CONFIG",
    "notify-keyspace-events",
    "KEA",
    "maxmemory",
    "timeout",
    "requirepass",
    "NX",
    "XX",
    "GT",
    "LT",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "MATCH",
    "MULTI",
    "EXEC",
    "DISCARD",
    "PSUBSCRIBE",
    "PUNSUBSCRIBE",
    "PUBSUB",
    "CHANNELS",
    "NUMSUB",
    "NUMPAT",
    "SETNX",
    "GETSET",
    "APPEND",
    "STRLEN",
    "GETRANGE",
    "SETRANGE",
    "INCRBYFLOAT",
    "TOUCH",
    "LIST",
    "KILL",
    "NO-EVICT",
    "OBJECT",
    "ENCODING",
    "MEMORY",
    "USAGE",
    "SLOWLOG",
    "LATENCY",
    "a*",
    "1.5",
    "-1",
    "a",
    "b",
    "c",
    "d",
    "*",
    "[a-",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "",
    "secret",
    "__keyevent@0__:expired",
    "\r\n",
    "all",
    "DOCS",
    "WATCH",
    "UNWATCH",
    "REPLY",
    "OFF",
    "ON",
    "SKIP",
    "RENAME",
    "RENAMENX",
    "MSETNX",
    "SETINFO",
    "lib-name",
    "HELP",
    "LEN",
    "RESET",
    "LATEST",
    "ADDR",
    "SKIPME",
    "{a}b",
    "{a}c",
];

fuzz_target!(|data: &[u8]| {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let password = (first & 1 == 1).then_some("secret");
    let mut sandbox = Sandbox::new(2, CLIENTS, password);
    let mut outputs = vec![Vec::new(); CLIENTS];
    while let [head, len, after @ ..] = rest {
        let (client, len) = (usize::from(*head) % CLIENTS, usize::from(*len).min(after.len()));
        let (chosen, left) = after.split_at(len);
        rest = left;
        let bytes = match head >> 4 {
            0 => {
                // A millisecond, or years.
                let product = chosen.iter().fold(1_u64, |product, &it| product.saturating_mul(u64::from(it)));
                sandbox.pass(product.min(1 << 40));
                continue;
            }
            1..=3 => chosen.to_vec(),
            _ => command(chosen),
        };
        outputs[client].extend(sandbox.send(client, &bytes).0);
        sandbox.check();
    }
    sandbox.pass(1);
    for (client, output) in outputs.iter_mut().enumerate() {
        output.extend(sandbox.send(client, b"").0);
        check(output);
    }
});

/// A request of these words.
fn command(words: &[u8]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for &word in words {
        let word = WORDS[usize::from(word) % WORDS.len()];
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Panics unless these are replies.
fn check(mut output: &[u8]) {
    while !output.is_empty() {
        output =
            after_reply(output).unwrap_or_else(|| panic!("no reply: {}", String::from_utf8_lossy(output)));
    }
}

fn after_reply(output: &[u8]) -> Option<&[u8]> {
    let end = output.windows(2).position(|pair| pair == b"\r\n")?;
    let (kind, line, rest) = (output[0], &output[1..end], &output[end + 2..]);
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    let elements = |per: i64| (0..number()?.max(0) * per).try_fold(rest, |rest, _| after_reply(rest));
    match kind {
        b'+' | b'-' => Some(rest),
        b':' => number().map(|_| rest),
        b'_' => line.is_empty().then_some(rest),
        b'$' | b'=' if number()? < 0 => Some(rest),
        b'$' | b'=' => rest.get(number()? as usize..)?.strip_prefix(b"\r\n"),
        b'*' | b'~' | b'>' => elements(1),
        b'%' => elements(2),
        _ => None,
    }
}
