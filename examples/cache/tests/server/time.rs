use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::TWO;
use super::support::client::{Value, encode};
use super::support::{Server, skip};

/// Each event comes after its deadline, although no command looks at the key.
#[test]
fn keys_expire_by_themselves_and_never_early() {
    let server = Server::cache(TWO);
    let (mut client, mut listener) = (server.connect(), server.connect());
    client.run("CONFIG SET notify-keyspace-events Ex");
    listener.run("SUBSCRIBE __keyevent@0__:expired");
    let keys = 2_000;
    let mut deadlines = Vec::new();
    for key in 0..keys {
        assert_eq!(client.run(&format!("SET k{key} v PX {}", 200 + key % 300)), Value::Simple("OK".into()));
        deadlines.push(client.run(&format!("PEXPIRETIME k{key}")).integer());
    }
    let mut lateness = Vec::new();
    for _ in 0..keys {
        let message = listener.read();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        let key: usize = message.elements()[2].text()[1..].parse().expect("a key's number");
        assert!(now > deadlines[key], "k{key} was early");
        lateness.push(now - deadlines[key]);
    }
    lateness.sort_unstable();
    println!("lateness: p50 {} ms, p99 {} ms", lateness[keys / 2], lateness[keys * 99 / 100]);
    assert_eq!(client.run("DBSIZE"), Value::Integer(0));
    assert!(client.run("INFO stats").text().contains(&format!("expired_keys:{keys}\r\n")));
}

/// A deadline that moves, moves: later, earlier, away, back.
#[test]
fn the_last_deadline_counts() {
    let server = Server::cache(TWO);
    let mut client = server.connect();
    for key in 0..64 {
        client.run(&format!("SET later{key} v PX 60"));
        client.run(&format!("PEXPIRE later{key} 100000"));
        client.run(&format!("SET earlier{key} v EX 100"));
        client.run(&format!("PEXPIRE earlier{key} 60"));
        client.run(&format!("SET never{key} v PX 60"));
        client.run(&format!("PERSIST never{key}"));
        client.run(&format!("SET again{key} v PX 60"));
        client.run(&format!("SET again{key} v"));
        client.run(&format!("SET date{key} v PXAT 9223372036854775807"));
    }
    wait_for(|| client.run("DBSIZE") == Value::Integer(256));
    for key in 0..64 {
        assert_eq!(client.run(&format!("EXISTS later{key} never{key} again{key} date{key}")).integer(), 4);
    }
    assert!(client.run("INFO keyspace").text().contains("db0:keys=256,expires=128,"));
}

/// A flush leaves nothing behind, neither keys nor events nor timers.
#[test]
fn a_flush_ends_all_timers() {
    let server = Server::cache(&["--threads", "2", "--metrics", "127.0.0.1:0"]);
    let mut client = server.connect();
    let stream: Vec<_> =
        (0..20_000).flat_map(|key| encode(&["SET", &format!("k{key}"), "v", "EX", "100"])).collect();
    client.send(&stream);
    (0..20_000).for_each(|_| _ = client.read());
    assert_eq!(client.run("FLUSHALL").text(), "OK");
    assert_eq!(client.run("DBSIZE").integer(), 0);
    assert_eq!(client.run("SET k1 again").text(), "OK");
    wait_for(|| super::observe::metric(&server, "timers_pending") == 0);
    assert_eq!(client.run("GET k1").text(), "again");
}

#[test]
fn idle_connections_are_closed_and_busy_ones_are_not() {
    let server = Server::cache(&["--threads", "2", "--idle-timeout", "700ms"]);
    let (mut idle, mut busy, mut subscriber) = (server.connect(), server.connect(), server.connect());
    subscriber.run("SUBSCRIBE news");
    let start = Instant::now();
    idle.run("PING");
    let mut half = server.connect();
    half.send(b"*2\r\n$3\r\nGET\r\n$1");
    while start.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(busy.run("PING").text(), "PONG");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((idle.try_read(), half.try_read()), (None, None));
    assert_eq!(busy.run("PUBLISH news x").integer(), 1, "a subscriber is not idle");
    assert_eq!(busy.run("CONFIG SET timeout 0").text(), "OK");
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(busy.run("PING").text(), "PONG");
}

/// A client that takes a long reply slowly is not idle.
#[test]
fn a_slow_reader_is_not_idle() {
    let server = Server::cache(&["--threads", "2", "--idle-timeout", "500ms"]);
    let mut client = server.connect();
    let (size, mut left) = (40_000_000, 40_000_000 + "$40000000\r\n\r\n".len());
    client.run_args(&["SET", "big", &"x".repeat(size)]);
    client.send(&encode(&["GET", "big"]));
    let mut buffer = vec![0; 2_000_000];
    while left > 0 {
        let len = client.stream.read(&mut buffer).expect("more");
        assert!(len > 0, "closed before the last {left} bytes");
        left -= len;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.try_read(), None, "idle from now on");
}

/// The library with which `faketime` sets the clocks of a program. `None`, with a message, if it is
/// not there.
fn fake_clock() -> Option<String> {
    let output = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        skip("there is no faketime");
        return None;
    };
    Some(String::from_utf8(output.stdout).expect("a path").trim().to_owned())
}

/// The wall clock is set while the server has nothing to do: dates follow it, with their events;
/// durations do not.
#[test]
fn a_step_of_the_wall_clock_moves_dates_and_not_durations() {
    let Some(library) = fake_clock() else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wall-clock");
    let set = |offset: &str| std::fs::write(&file, offset).expect("written");
    set("+0");
    let file = file.to_str().expect("a path");
    let variables = [
        ("LD_PRELOAD", &library[..]),
        ("FAKETIME_TIMESTAMP_FILE", file),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let server = Server::cache_in(TWO, &variables);
    let (mut client, mut listener) = (server.connect(), server.connect());
    client.run("CONFIG SET notify-keyspace-events Ex");
    listener.run("SUBSCRIBE __keyevent@0__:expired");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for key in 0..20 {
        client.run(&format!("SET date{key} v EXAT {}", now + 1_000));
        client.run(&format!("SET duration{key} v EX 1000"));
        client.run(&format!("SET later{key} v EXAT {}", now + 3_000));
    }
    set("+2000");
    for _ in 0..20 {
        assert!(listener.read().elements()[2].text().starts_with("date"));
    }
    assert_eq!(client.run("DBSIZE").integer(), 40);
    assert!((1..=1_000).contains(&client.run("TTL duration0").integer()));
    assert!((1..=1_000).contains(&client.run("TTL later0").integer()));
    set("-2000");
    wait_for(|| (4_000..=5_000).contains(&client.run("TTL later0").integer()));
    assert!((1..=1_000).contains(&client.run("TTL duration0").integer()));
}

/// Tries until it holds; a machine may be busy for long.
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "it never held");
        std::thread::sleep(Duration::from_millis(5));
    }
}
