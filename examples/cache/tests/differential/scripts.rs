//! Commands written by hand: each option, each error, each limit.

use std::collections::HashMap;
use std::time::Duration;

use super::Pair;
use super::support::client::{Client, Value, encode};

/// Each line is a command; `\0` stands for an empty argument.
fn play(script: &str) {
    for hello in ["HELLO 2", "HELLO 3"] {
        let Some((mut pair, _servers)) = Pair::connect() else { return };
        let is_resp3 = hello == "HELLO 3";
        if is_resp3 {
            pair.cache.run(hello);
            pair.redis.run(hello);
        }
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let args: Vec<_> = line.split(' ').map(|word| if word == "\\0" { "" } else { word }).collect();
            pair.same_args(&args);
        }
    }
}

#[test]
fn names_and_sets_of_keys() {
    play(
        "rename
        rename {t}z {t}b
        rename {t}none {t}none
        set {t}a 1 ex 1000
        rename {t}a {t}b
        ttl {t}b
        get {t}a
        get {t}b
        rename {t}b {t}b
        ttl {t}b
        set {t}a 2
        renamenx {t}a {t}b
        renamenx {t}b {t}b
        renamenx {t}none {t}b
        renamenx {t}b {t}c
        rename {t}a {t}c
        ttl {t}c
        get {t}c
        exists {t}a {t}b {t}c
        rename {t}c {t}a
        get {t}a
        msetnx {t}a 1 {t}n 2
        exists {t}n
        msetnx {t}m 1 {t}n 2 {t}m 3
        mget {t}m {t}n
        msetnx {t}m
        msetnx {t}m 1 {t}n
        multi
        rename {t}m {t}o
        msetnx {t}p 1 {t}q 2
        rename {t}none {t}o
        exec
        client reply
        client reply foo
        client info x
        dbsize",
    );
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

#[test]
fn watched_keys() {
    play(
        "watch
        unwatch
        unwatch a
        set {t}a 1
        watch {t}a {t}none
        watch {t}b
        multi
        watch {t}a
        unwatch
        ping
        get {t}a
        get elsewhere
        exec
        watch {t}a
        set {t}a 2
        watch {t}a
        multi
        set {t}a 3
        exec
        get {t}a
        multi
        get {t}a
        exec
        watch {t}none
        set {t}none 1 xx
        del {t}none
        multi
        ping
        exec
        watch {t}none
        setnx {t}none 1
        multi
        ping
        exec
        watch {t}a
        expire {t}a 100
        multi
        ping
        exec
        watch {t}a
        persist {t}a
        persist {t}a
        multi
        ping
        exec
        watch {t}a
        persist {t}a
        expire {t}a 100 xx
        getex {t}a
        append {t}b \\0
        setrange {t}a 0 \\0
        multi
        ping
        exec
        watch {t}new
        rename {t}a {t}new
        multi
        ping
        exec
        watch {t}new
        set {t}new 1
        exec
        multi
        discard
        multi
        ping
        exec
        watch {t}new
        set {t}new 1
        multi
        nonsense
        exec
        multi
        ping
        exec
        watch {t}gone
        flushall
        multi
        ping
        exec
        set {t}a 1
        watch {t}a
        flushdb
        multi
        ping
        exec
        dbsize",
    );
}

#[test]
fn values() {
    play(
        "get a
        set a 1
        get a
        GeT a
        set a
        set
        get
        get a b
        set a 2 nx
        set b 2 nx
        set c 3 xx
        set a 3 xx
        set a 4 xx nx
        set a 4 nx xx
        set a 5 get
        set new 5 get
        set new 6 nx get
        set other 6 xx get
        get other
        set a \\0
        get a
        set \\0 empty
        get \\0
        set a 1 foo
        set a 1 ex
        set a 1 ex px
        getdel a
        getdel a
        getdel
        mset a 1 b 2 c
        mset a 1 b 2
        mset a 1 a 2 a 3
        mget a b none a
        mget
        mset
        exists a b a none
        del a b a none
        unlink c c d
        del
        type b
        type none
        type",
    );
}

#[test]
fn integers() {
    play(
        "incr n
        incr n
        incrby n 40
        decr n
        decrby n 100
        get n
        incrby n 9223372036854775807
        incrby n 9223372036854775807
        decrby n -9223372036854775808
        incrby n -9223372036854775808
        incrby n 9223372036854775808
        incrby n x
        incrby n \\0
        incrby n 01
        incrby n +1
        incrby n -
        incrby n --1
        incrby n 0x1
        incrby n 00
        incrby n 184467440737095516160
        incrby n -9223372036854775809
        incrby n -0
        incrby n 1.0
        set n 9223372036854775807
        incr n
        set n -9223372036854775808
        decr n
        incr n
        set n 007
        incr n
        set n abc
        decr n
        set n \\0
        incr n
        set n 10 ex 100
        incr n
        ttl n
        incr
        incrby n",
    );
}

#[test]
fn deadlines() {
    play(
        "set a 1 ex 100
        ttl a
        pttl a
        expiretime a
        pexpiretime a
        set a 2 keepttl
        ttl a
        set a 3
        ttl a
        ttl none
        pttl none
        expiretime none
        pexpiretime none
        persist a
        expire a 100
        persist a
        persist a
        persist none
        expire none 10
        setex a 100 v
        ttl a
        psetex a 100000 v
        pttl a
        setex a 0 v
        setex a -1 v
        setex a x v
        setex a 10
        psetex a 0 v
        psetex a 9223372036854775807 v
        setex a 9223372036854775 v
        setex a 9223372036854776 v
        set a v ex 0
        set a v px -5
        set a v ex 9223372036854775807
        set a v exat 0
        set a v exat 4102444800
        expiretime a
        set a v pxat 4102444800000
        pexpiretime a
        set a v pxat 9223372036854775807
        pexpiretime a
        expiretime a
        set a v exat 9223372036854776
        set a v ex 10 px 10
        set a v ex 10 ex 20
        ttl a
        set a v ex 10 keepttl
        set a v keepttl ex 10
        set a v exat 10
        get a
        exists a
        set a v persist
        expireat a 4102444800
        expiretime a
        pexpireat a 4102444800001
        pexpiretime a
        expiretime a
        expire a -1
        exists a
        set a v
        expireat a 1
        exists a
        set a v
        pexpireat a -9223372036854775808
        exists a
        set a v
        expire a 9223372036854775807
        pexpire a 9223372036854775807
        pexpireat a 9223372036854775807
        pexpiretime a
        pttl a
        ttl a
        expire a x
        expire a
        expire a 1 2
        expire a 100 nx xx
        expire a 100 gt lt
        expire a 100 nx gt
        expire a 100 xx
        expire a 200 gt
        expire a 100 gt
        expire a 100 lt
        ttl a
        expire a 300 lt
        expire a 50 NX
        persist a
        expire a 100 gt
        expire a 100 xx
        expire a 100 lt
        persist a
        expire a 100 nx
        expire a x nx
        expire a x foo
        ttl
        ttl a b",
    );
}

#[test]
fn transactions() {
    play(
        "exec
        discard
        multi
        multi
        set a 1
        incr a
        mget a b none
        mset a 1 b 2
        del a b none
        get a
        exec
        exec
        multi
        exec
        multi
        set a 1
        discard
        exists a
        discard
        multi
        nonsense x
        set a 1
        exec
        exists a
        multi
        get
        set a 1
        discard
        exists a
        multi
        client nonsense
        set a 1
        exec
        exec x
        multi x
        discard x
        multi
        set a 1
        exec x
        exec
        exists a
        multi
        set a x
        incr a
        expire a 100 nx xx
        set b 1
        exec
        get b
        multi
        incr a x
        exec
        multi
        dbsize
        keys none
        echo x
        ping
        flushall
        flushall x
        dbsize
        config get maxmemory
        exec
        multi
        subscribe a b
        unsubscribe a
        unsubscribe b
        get a
        exec
        multi
        ping
        quit",
    );
}

/// A transaction that needs memory is refused as a whole.
#[test]
fn transactions_without_memory() {
    play(
        "multi
        set a 1
        config set maxmemory 1
        get a
        exec
        set b 1
        multi
        set a 1
        exec
        multi
        config set maxmemory 0
        exec
        get a
        config set maxmemory 0
        set a 1",
    );
}

#[test]
fn getex() {
    play(
        "getex a
        getex a ex 0
        set a v
        getex a
        getex a ex 100
        ttl a
        getex a
        ttl a
        getex a persist
        ttl a
        getex a px 100000
        pttl a
        getex a exat 4102444800
        expiretime a
        getex a pxat 4102444800001
        pexpiretime a
        getex a ex 0
        getex a ex x
        getex a ex 9223372036854775807
        getex a ex 10 persist
        getex a persist ex 10
        getex a persist persist
        getex a keepttl
        getex a nx
        getex a ex
        getex a exat 1
        exists a
        getex",
    );
}

#[test]
fn keys_and_the_server() {
    play(
        "dbsize
        mset one 1 two 2 three 3 h[llo 4
        dbsize
        dbsize x
        keys *
        keys t*
        keys t[hw]*
        keys t[^h]*
        keys ?ne
        keys h\\[llo
        keys none
        keys *a*a*b
        keys [
        keys [t
        keys [^
        keys [w-a]*
        keys t[w-]*
        keys \\
        keys *\\
        keys **o*n*
        keys \0
        keys [\\]]
        keys
        scan x
        scan 0 count 0
        scan 0 count x
        scan 0 match
        scan 0 foo bar
        randomkey x
        select 0
        select
        echo hello
        echo
        ping
        ping hello
        ping a b
        flushdb foo
        flushall foo bar
        flushall async
        dbsize
        flushdb sync
        randomkey
        time x
        client getname
        client setname me
        client getname
        client setname \\0
        client getname
        client setname a\u{1}b
        client id x
        client
        client nonsense
        client nonsense x
        config get notify-keyspace-events
        config get maxmemory
        config get save
        config get appendonly
        config get nothing
        config get maxmemory databases
        config set maxmemory 100mb
        config get maxmemory
        config set maxmemory 0
        config set maxmemory x
        config set maxmemory -1
        config set maxmemory 1kbb
        config set maxmemory 1 maxmemory 2
        config set maxmemory 1 MAXMEMORY x
        config set timeout -1
        config set timeout 2147483648
        config set timeout 2147483647
        config get timeout
        config set timeout 0
        config set timeout 01
        config set maxclients 0
        config set maxclients 4294967296
        config set maxclients x
        config set nothing 1
        config set maxmemory
        config set notify-keyspace-events KEA
        config get notify-keyspace-events
        config set notify-keyspace-events Ex
        config get notify-keyspace-events
        config set notify-keyspace-events AKEmn
        config get notify-keyspace-events
        config set notify-keyspace-events mKnx
        config get notify-keyspace-events
        config set notify-keyspace-events Q
        config set notify-keyspace-events \\0
        config get
        config
        config nonsense
        command nonsense
        auth x
        auth x y
        auth default y
        auth a b c
        auth
        hello 4
        hello x
        hello 2 foo
        hello 2 setname
        hello 2 setname a\u{1}b
        hello 2 auth x
        hello 2 auth x y
        nonsense
        nonsense a b c
        nonsense 0123456789012345678901234567890123456789012345678901234567890123456789 \
         0123456789012345678901234567890123456789012345678901234567890123456789 x y z
        publish nobody hello
        publish x
        subscribe
        quit",
    );
}

#[test]
fn what_clients_rarely_send() {
    play(
        "multi
        select 0
        set a 1
        exec
        client kill id x
        client kill id 0
        client kill id -1
        client kill id 99999999999999999999
        client kill id 999999 id x
        client kill id x id
        client kill skipme x
        client kill skipme
        client kill laddr 127.0.0.1:1
        client kill addr 127.0.0.1:1 laddr 127.0.0.1:1 id 999999
        watch a
        set a 2
        exec x
        multi
        ping
        exec
        watch a
        set a 3
        exec
        multi
        ping
        exec
        watch a
        set a 4
        multi
        exec x
        multi
        ping
        exec
        watch a
        set a 5
        discard x
        multi
        ping
        exec
        flushall
        set \\0 e
        keys *
        keys **
        keys \\0
        keys ?
        keys [^a]
        keys **a
        del \\0
        set ab 1
        keys **
        keys ab**
        keys **b",
    );
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

#[test]
fn a_subscriber() {
    play(
        "subscribe a b a
        ping
        ping x
        get a
        mset a 1 b
        mset
        unsubscribe nothing
        unsubscribe a
        unsubscribe b
        ping
        unsubscribe
        get a",
    );
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

#[test]
fn a_subscriber_by_pattern() {
    play(
        "pubsub channels
        pubsub numpat
        pubsub numsub
        pubsub numsub a b
        pubsub
        pubsub nonsense
        pubsub numpat x
        psubscribe
        punsubscribe
        unsubscribe
        punsubscribe none
        psubscribe a* b* a*
        subscribe a
        ping
        get a
        punsubscribe none a*
        unsubscribe
        unsubscribe a
        punsubscribe
        ping
        get a",
    );
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

#[test]
fn parts_of_strings() {
    play(
        "setnx a 1
        setnx a 2
        get a
        setnx a
        set a v ex 100
        getset a 2
        ttl a
        getset none 1
        getset a
        append a b
        append new \\0
        get new
        append new xyz
        append a
        strlen a
        strlen none
        strlen
        set s 0123456789
        getrange s 0 3
        getrange s -3 -1
        getrange s 0 -1
        getrange s 5 4
        getrange s -1 -3
        getrange s -100 -200
        getrange s -100 2
        getrange s 5 100
        getrange s 100 200
        getrange s -100 -99
        getrange s 9223372036854775807 9223372036854775807
        getrange s -9223372036854775808 9223372036854775807
        getrange s -9223372036854775808 -9223372036854775808
        getrange s x 1
        getrange s 1 x
        getrange none 0 -1
        getrange s 1
        expire s 100
        setrange s 3 abc
        setrange s 9 long
        ttl s
        setrange none 0 \\0
        exists none
        setrange s 100 \\0
        setrange none 3 x
        get none
        setrange s -1 x
        setrange s x x
        setrange s 536870912 x
        setrange s 9223372036854775807 x
        setrange s 1
        touch a s none a
        touch
        del none
        object encoding none
        set e 123
        object encoding e
        set e 9223372036854775808
        object encoding e
        set e 01234567890123456789012345678901234567890123
        object encoding e
        set e 012345678901234567890123456789012345678901234
        object encoding e
        object nonsense e
        object encoding
        object
        memory usage none
        memory usage
        memory nonsense
        slowlog get
        slowlog get 10
        slowlog len
        slowlog reset
        slowlog
        latency latest
        latency
        client no-evict on
        client no-evict off
        client no-evict x
        client kill 127.0.0.1:1
        client kill id 999999
        client kill addr 127.0.0.1:1 skipme no
        client kill nonsense 1
        client kill id
        client kill",
    );
}

#[test]
fn sums_of_decimals() {
    play(
        "incrbyfloat f 1.5
        incrbyfloat f 1
        incrbyfloat f 0.1
        incrbyfloat f 0.2
        incrbyfloat f -2.8
        get f
        incrbyfloat f 5.0e3
        set f 10
        incrbyfloat f 25e-2
        incrbyfloat f .5
        incrbyfloat f 1.
        incrbyfloat f +1
        incrbyfloat f -0
        incrbyfloat f x
        incrbyfloat f \\0
        incrbyfloat f 1.2.3
        incrbyfloat f .
        incrbyfloat f -
        incrbyfloat f nan
        incrbyfloat f inf
        incrbyfloat f -inf
        incrbyfloat f 0x10
        incrbyfloat f 0X1aF
        incrbyfloat f -0x10
        incrbyfloat f +0x.8
        incrbyfloat f +-0x1
        incrbyfloat f 0x1.8p3
        incrbyfloat f 0x1P+2
        incrbyfloat f 0x1p-20
        incrbyfloat f -0x1p-20
        incrbyfloat f 0x10.
        incrbyfloat f 0x
        incrbyfloat f 0x.
        incrbyfloat f 0x+1
        incrbyfloat f 0x1p
        incrbyfloat f 0xg
        incrbyfloat f 0x1p20000
        set f 0x1e
        incrbyfloat f 1
        set f 17000000000
        incrbyfloat f 1.5
        set f 1
        incrbyfloat f -1.1
        set f -0.1
        incrbyfloat f 0.1
        set f 9007199254740993
        incrbyfloat f 1
        set f 3 ex 100
        incrbyfloat f 0.25
        ttl f
        set f abc
        incrbyfloat f 1
        set f \\0
        incrbyfloat f 1
        incrbyfloat f
        set n 5
        incrbyfloat n 0.5
        incr n",
    );
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
