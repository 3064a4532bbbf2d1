//! A pipeline is worked on in steps that end by time: between them the thread serves others, whatever the commands cost.

use std::time::{Duration, Instant};

use super::support::Server;
use super::support::client::{Value, encode};

/// A thousand commands that each walk over all keys. Another client is answered before the last of them has run, in the
/// thread of the client, and in one that gets the commands as messages.
#[test]
fn a_pipeline_of_slow_commands_lets_others_in() {
    for threads in ["1", "2"] {
        let server = Server::cache(&["--threads", threads]);
        let set = (0..20_000).flat_map(|key| encode(&["SET", &format!("{{t}}{key}"), "value"]));
        let mut other = server.connect();
        other.send(&set.collect::<Vec<_>>());
        (0..20_000).for_each(|_| assert_eq!(other.read().text(), "OK"));
        // One in each thread.
        for number in 0..2 {
            let (mut client, last) = (server.connect(), format!("{{t}}last{number}"));
            client.send(&[encode(&["KEYS", "none"]).repeat(1_000), encode(&["SET", &last, "1"])].concat());
            assert_eq!(client.read(), Value::Array(Vec::new()));
            let seen = other.run(&format!("GET {last}"));
            assert_eq!(seen, Value::NullBulk, "{threads} threads: it waited for all of the commands");
        }
    }
}

/// Parts that are written to a great value are written in place: a pipeline of them stops nobody for long.
#[test]
fn appends_to_a_great_value_stop_nobody() {
    const LEN: usize = 64 << 20;
    const APPENDS: i64 = 200;
    let server = Server::cache(&["--threads", "1"]);
    let (mut client, mut other) = (server.connect(), server.connect());
    client.run_args(&[&b"SET"[..], b"great", &vec![b'x'; LEN]]);
    client.send(&encode(&["APPEND", "great", "0123456789"]).repeat(APPENDS as usize));
    let mut longest = Duration::ZERO;
    while !client.hears_within(Duration::from_millis(1)) {
        let start = Instant::now();
        other.run("PING");
        longest = longest.max(start.elapsed());
    }
    (1..=APPENDS).for_each(|number| assert_eq!(client.read().integer(), LEN as i64 + 10 * number));
    // Redis takes 0.1 s for all. A copy of the value for each took 23 s, on a machine that did nothing else.
    assert!(longest < Duration::from_secs(8), "a PING took {longest:?}");
    assert_eq!(client.run(&format!("SETRANGE great {} end", LEN + 5)).integer(), LEN as i64 + 10 * APPENDS);
    assert_eq!(client.run(&format!("GETRANGE great {} {}", LEN - 2, LEN + 9)).text(), "xx01234end89");
}
