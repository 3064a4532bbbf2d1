//! Commands written by hand: each option, each error, each limit. Those that need no more than one client stand in
//! `scripts.txt`: `head: a | b` is the commands `head a` and `head b`; `; ` parts commands; `""` is an empty argument.

use std::collections::HashMap;
use std::time::Duration;

use super::Pair;
use super::support::client::{Client, Value, encode};

/// Runs a part of `scripts.txt` in RESP2, and in RESP3.
fn play(name: &str) {
    let all = include_str!("scripts.txt").split("# ");
    let script = all.filter_map(|part| part.split_once('\n')).find(|(first, _)| *first == name);
    let (_, script) = script.unwrap_or_else(|| panic!("there is no script {name}"));
    for is_resp3 in [false, true] {
        let Some((mut pair, _servers)) = Pair::connect() else { return };
        if is_resp3 {
            pair.cache.run("HELLO 3");
            pair.redis.run("HELLO 3");
        }
        for part in script.lines().flat_map(|line| line.split("; ")).filter(|part| !part.is_empty()) {
            match part.split_once(": ") {
                Some((head, cases)) => {
                    cases.split(" | ").for_each(|case| command(&mut pair, &format!("{head} {case}")));
                }
                None => command(&mut pair, part),
            }
        }
    }
}

fn command(pair: &mut Pair, line: &str) {
    let bytes = |word: &str| match word {
        "\"\"" => String::new(),
        _ => word.replace("\\x00", "\0").replace("\\x01", "\u{1}"),
    };
    pair.same_args(&line.split(' ').map(bytes).collect::<Vec<_>>());
}

macro_rules! scripts {
    ($($name:ident)*) => { $(#[test] fn $name() { play(stringify!($name)); })* };
}

scripts! {
    names_and_sets_of_keys
    watched_keys
    values
    integers
    deadlines
    transactions
    transactions_without_memory
    getex
    keys_and_the_server
    what_clients_rarely_send
    a_subscriber
    a_subscriber_by_pattern
    parts_of_strings
    sums_of_decimals
}

#[test]
fn the_events_of_a_new_name() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    pair.same("config set notify-keyspace-events KEA");
    let mut listeners = pair.another();
    listeners.same("psubscribe *");
    for line in
        ["set {t}a 1", "set {t}b 2 ex 100", "rename {t}a {t}b", "renamenx {t}b {t}c", "msetnx {t}x 1 {t}y 2"]
    {
        pair.same(line);
    }
    for number in 0..18 {
        assert_eq!(listeners.cache.read(), listeners.redis.read(), "{number}");
    }
}

/// All that each server replies to a pipeline whose last command is replied with `end`.
#[test]
fn muted_replies() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let lines = "client reply skip|set a 1|get a|client reply off|ping|nonsense|get a b|client reply skip|ping|\
                 subscribe c|unsubscribe c|client reply on|ping|client reply skip|client reply on|get a|\
                 client reply skip|client reply skip|get a|get a|client reply skip|nonsense|multi|\
                 get a|exec|echo end";
    let stream: Vec<_> =
        lines.split('|').flat_map(|line| encode(&line.split(' ').collect::<Vec<_>>())).collect();
    let replies = |client: &mut Client| {
        client.send(&stream);
        let mut all = vec![client.read()];
        while all.last() != Some(&Value::bulk("end")) {
            all.push(client.read());
        }
        all
    };
    assert_eq!(replies(&mut pair.cache), replies(&mut pair.redis));
}

/// A scan from start to end.
fn scan(client: &mut Client, options: &str) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let reply = client.run(&format!("SCAN {cursor}{options}"));
        let [next, found] = reply.elements() else { panic!("{reply:?}") };
        keys.extend(found.elements().iter().map(Value::text));
        cursor = next.text();
        if cursor == "0" {
            keys.sort();
            return keys;
        }
    }
}

#[test]
fn scans_find_every_key() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    for keys in [0, 1, 3_000] {
        (0..keys).for_each(|key| _ = pair.same(&format!("SET key{key} v EX {}", 1_000 + key)));
        for options in
            ["", " COUNT 1", " COUNT 100", " MATCH *7*", " TYPE string", " TYPE hash", " COUNT 100000"]
        {
            if keys > 100 && options == " COUNT 1" {
                continue;
            }
            let (cache, mut redis) = (scan(&mut pair.cache, options), scan(&mut pair.redis, options));
            // Redis may find a key twice; here a key has one place.
            redis.dedup();
            assert_eq!(cache, redis, "{keys} keys{options}");
        }
    }
}

/// Streams of bytes, and all that comes back until the server closes the connection.
#[test]
fn broken_protocols() {
    let Some((pair, _servers)) = Pair::connect() else { return };
    let long = "x".repeat(70_000);
    let streams = [
        "*x\r\n".to_owned(),
        "*2147483648\r\n".to_owned(),
        "*1\r\n:1\r\n".to_owned(),
        "*1\r\n$-1\r\n".to_owned(),
        "*1\r\n$536870913\r\n".to_owned(),
        "*1\r\n$4x\r\nPING\r\n".to_owned(),
        "PING\r\n*2\r\n$4\r\nECHO\r\nx\r\n".to_owned(),
        "ECHO \"a\r\n".to_owned(),
        "ECHO 'a'b\r\n".to_owned(),
        long.clone(),
        format!("*{long}"),
        format!("*1\r\n${long}"),
        "PING\r\n\r\n\r\nECHO a\n*0\r\n*-5\r\nECHO \"\\x41\\n\" \r\nECHO 'it\\'s'\r\nQUIT\r\nPING\r\n"
            .to_owned(),
        "ECHO a\u{b}b\u{c}\r\n\u{b}ECHO \u{c}\"a\"\u{b}\r\nQUIT\r\n".to_owned(),
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\nGET a\r\nQUIT\r\n".to_owned(),
    ];
    for stream in streams {
        let mut both = pair.another();
        let all = [&mut both.cache, &mut both.redis].map(|client| {
            client.send(stream.as_bytes());
            client.read_to_end()
        });
        assert_eq!(all[0], all[1], "{:?}", &stream[..stream.len().min(40)]);
        assert!(!all[0].is_empty());
    }
}

/// A web page can have a browser send commands in a request of HTTP: the connection is closed before.
#[test]
fn no_browser_is_served() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    for head in ["POST / HTTP/1.1\r\nContent-Length: 9", "GET / HTTP/1.1\r\nHost: a"] {
        let mut both = pair.another();
        for client in [&mut both.cache, &mut both.redis] {
            client.send(format!("{head}\r\n\r\nSET a 1\r\n").as_bytes());
            assert_eq!(client.read_to_end(), []);
        }
        assert_eq!(pair.same("EXISTS a").integer(), 0);
    }
}

#[test]
fn a_pipeline_in_one_write_and_in_pieces() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let mut stream = Vec::new();
    let mut requests = 0;
    for round in 0..50 {
        let (key, other) = (format!("k{round}"), format!("k{}", round / 2));
        let commands: [&[&str]; 6] = [
            &["SET", &key, "v"],
            &["GET", &other],
            &["MGET", &key, &other, "none"],
            &["DEL", &other],
            &["DBSIZE"],
            &["EXISTS", &key, &other],
        ];
        commands.iter().for_each(|args| stream.extend(encode(args)));
        requests += commands.len();
    }
    for piece in [stream.len(), 1000, 7] {
        pair.same("FLUSHALL");
        for client in [&mut pair.cache, &mut pair.redis] {
            stream.chunks(piece).for_each(|piece| client.send(piece));
        }
        for request in 0..requests {
            assert_eq!(pair.cache.read(), pair.redis.read(), "request {request}");
        }
    }
}

/// What happens to keys is published alike; the events of one key come in the same order.
#[test]
fn events() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let mut listener = pair.another();
    let names = ["set", "expire", "del", "expired", "incrby", "persist", "new"];
    let channels: Vec<_> = names.iter().map(|name| format!("__keyevent@0__:{name}")).collect();
    let keyspace: Vec<_> = "abcdefgh".chars().map(|key| format!("__keyspace@0__:{key}")).collect();
    let subscribe: Vec<_> = ["SUBSCRIBE".to_owned()].into_iter().chain(channels).chain(keyspace).collect();
    for client in [&mut listener.cache, &mut listener.redis] {
        client.send(&encode(&subscribe));
        (1..subscribe.len()).for_each(|_| _ = client.read());
    }
    pair.same("CONFIG SET notify-keyspace-events KEAn");
    let script = "set a 1;set b 1 ex 100;set a 2 px 50;setex c 100 x;incr d;incrby d 5;expire d 100;persist d;\
        persist d;getex b persist;getex b ex 50;getex b exat 1;getdel c;del d x y;mset e 1 f 2 e 3;expire e -1;\
        unlink f;psetex g 1 x;set h 1 exat 1;get h";
    script.split(';').for_each(|line| _ = pair.same(line.trim()));
    pair.same("CONFIG SET notify-keyspace-events KE$");
    pair.same("set h last");
    pair.same("expire h 100");
    // A key that expires has its event although no command looks at it.
    pair.same("CONFIG SET notify-keyspace-events KEx");
    pair.same("psetex h 20 x");
    let [cache, redis] = [listener.cache, listener.redis].map(|mut client| {
        let mut of_key: HashMap<String, Vec<(String, String)>> = HashMap::new();
        loop {
            let message: Vec<_> = client.read().elements().iter().map(Value::text).collect();
            let [_, channel, text] = &message[..] else { panic!("{message:?}") };
            let key = channel.strip_prefix("__keyspace@0__:").unwrap_or(text).to_owned();
            let is_last = key == "h"
                && channel.ends_with(":expired")
                && of_key["h"].iter().any(|(_, text)| text == "set");
            of_key.entry(key).or_default().push((channel.clone(), text.clone()));
            if is_last && of_key["h"].iter().filter(|(channel, _)| channel.ends_with(":expired")).count() == 2
            {
                return of_key;
            }
        }
    });
    for key in ["b", "c", "d", "e", "f", "h"] {
        assert_eq!(cache[key], redis[key], "events of {key}");
    }
}

/// A key that is read and is not there is an event, whichever command looks at it.
#[test]
fn misses() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let mut listener = pair.another();
    listener.same("SUBSCRIBE __keyevent@0__:keymiss");
    pair.same("CONFIG SET notify-keyspace-events Em");
    let script = "get a1;ttl a2;pttl a3;expiretime a4;pexpiretime a5;exists a6;type a7;getex a8;getdel a9;\
        mget b1 b2;set b3 v get;set b4 v xx;expire b5 9;persist b6;del b7;incr b8;getex b9 ex x;exists c1 c2";
    script.split(';').for_each(|line| _ = pair.same(line.trim()));
    // An event of another thread may come after the reply to a later command.
    let [cache, redis] = [listener.cache, listener.redis].map(|mut client| {
        let mut keys: Vec<_> = (0..15).map(|_| client.read().elements()[2].text()).collect();
        keys.sort();
        assert!(!client.hears_within(Duration::from_millis(100)), "more than {keys:?}");
        keys
    });
    assert_eq!(cache, redis);
}

/// A pipeline's commands see what those before them did, whichever threads run them.
#[test]
fn a_random_key_is_found_behind_its_set() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    for round in 0..30 {
        let set = ["SET", &format!("key{round}"), "value"];
        let stream = [encode(&["FLUSHALL"]), encode(&set), encode(&["RANDOMKEY"])].concat();
        pair.cache.send(&stream);
        pair.redis.send(&stream);
        (0..3).for_each(|_| assert_eq!(pair.cache.read(), pair.redis.read()));
    }
}

/// A client that came while there was a password needs none once there is none.
#[test]
fn a_password_that_goes() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    pair.same("CONFIG SET requirepass secret");
    let mut late = pair.another();
    late.same("GET a");
    pair.same_args(&["CONFIG", "SET", "requirepass", ""]);
    for line in ["GET a", "HELLO 3", "AUTH secret", "SET a 1", "AUTH default x", "GET a"] {
        late.same(line);
    }
    pair.same("CONFIG SET requirepass again");
    pair.same("GET a");
    late.same("GET a");
    pair.another().same("GET a");
}

/// The texts of errors repeat arguments as they are.
#[test]
fn errors_with_any_bytes() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    for bytes in [&b"\xff\xe9"[..], b"a\0b", b"a\r\nb\r\n", b"\xc3\xa9", &[0xe9; 200]] {
        pair.same_args::<&[u8]>(&[bytes, bytes, b"\0", bytes, &[b'x'; 200]]);
        pair.same_args::<&[u8]>(&[b"EXPIRE", b"a", b"1", bytes]);
        pair.same_args::<&[u8]>(&[b"CLIENT", bytes]);
        pair.same_args::<&[u8]>(&[b"HELLO", b"2", bytes]);
        pair.same_args::<&[u8]>(&[b"CONFIG", b"SET", bytes, b"1"]);
        let mut both = pair.another();
        let stream = [b"*1\r\n", &bytes[..1], b"1\r\n"].concat();
        let all = [&mut both.cache, &mut both.redis].map(|client| {
            client.send(&stream);
            client.read_to_end()
        });
        assert_eq!(all[0], all[1], "{bytes:?}");
    }
}

/// Who hears what, by channels and patterns, in order; and what PUBSUB says of clients of all threads.
#[test]
fn patterns_of_channels() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    let mut listeners: Vec<_> = (0..5).map(|_| pair.another()).collect();
    for (number, both) in listeners.iter_mut().enumerate() {
        both.cache.run(if number % 2 == 0 { "HELLO 3" } else { "PING" });
        both.redis.run(if number % 2 == 0 { "HELLO 3" } else { "PING" });
        both.same(
            ["PSUBSCRIBE n?ws", "PSUBSCRIBE n[a-e]ws", "SUBSCRIBE news", "PSUBSCRIBE *", "PSUBSCRIBE *"]
                [number],
        );
    }
    listeners[2].same("PSUBSCRIBE \\*");
    listeners[4].same("SUBSCRIBE other");
    for line in
        ["PUBSUB CHANNELS", "PUBSUB CHANNELS n*", "PUBSUB NUMPAT", "PUBSUB NUMSUB news other none news"]
    {
        pair.same(line);
    }
    for channel in ["news", "nxws", "other", "*", "none"] {
        pair.same_args(&["PUBLISH", channel, "text"]);
    }
    for (heard, both) in [2, 1, 2, 5, 6].into_iter().zip(&mut listeners) {
        // Patterns have no order.
        let [cache, redis] = [&mut both.cache, &mut both.redis].map(|client| {
            let mut all: Vec<_> = (0..heard).map(|_| client.read()).collect();
            all.sort();
            assert!(!client.hears_within(Duration::from_millis(50)), "more than {all:?}");
            all
        });
        assert_eq!(cache, redis);
    }
}

/// A text of digits may be too long for a number.
#[test]
fn long_decimals() {
    let Some((mut pair, _servers)) = Pair::connect() else { return };
    for len in [5_119, 5_120, 100_000] {
        let number = format!("1.{}1", "0".repeat(len - 3));
        pair.same_args(&["set", "f", &number]);
        let reply = pair.same_args(&["incrbyfloat", "f", "1"]);
        assert_eq!(reply == Value::Error("ERR value is not a valid float".into()), len >= 5_120);
    }
}
