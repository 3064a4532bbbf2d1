//! What other servers were seen to do wrong.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::TWO;
use super::support::Server;
use super::support::client::{Value, encode, pipeline};

/// Its own messages, of lengths at which buffers change, come whole and in order between the replies of
/// other threads.
#[test]
fn a_publisher_is_its_own_subscriber() {
    let server = Server::cache(&["--threads", "3"]);
    let mut client = server.connect();
    client.run("HELLO 3");
    client.run("SUBSCRIBE own");
    for key in 0..10 {
        client.run_args(&["SET", &format!("key{key}"), &"v".repeat(1_000 * key)]);
    }
    let (mut stream, mut lengths) = (Vec::new(), Vec::new());
    for len in [0, 1, 16_383, 16_384, 16_385, 32_768, 65_535, 65_536, 1 << 20, 5] {
        stream.extend((0..10).flat_map(|key| encode(&["GET", &format!("key{key}")])));
        stream.extend(encode(&["PUBLISH", "own", &"x".repeat(len)]));
        lengths.push(len);
    }
    for _ in 0..5 {
        let mut writer = client.stream.try_clone().expect("a writer");
        let bytes = stream.clone();
        let sending =
            std::thread::spawn(move || std::io::Write::write_all(&mut writer, &bytes).expect("sent"));
        let (mut replies, mut messages) = (0, Vec::new());
        while replies < lengths.len() * 11 || messages.len() < lengths.len() {
            match client.read() {
                Value::Push(message) => messages.push(message[2].text().len()),
                Value::Integer(receivers) => {
                    assert_eq!((receivers, replies % 11), (1, 10));
                    replies += 1;
                }
                reply => {
                    assert_eq!(reply.text().len(), 1_000 * (replies % 11), "reply {replies}");
                    replies += 1;
                }
            }
        }
        assert_eq!(messages, lengths);
        sending.join().expect("all sent");
    }
}

/// The confirmation stands where SUBSCRIBE stood; messages of others come only while there is a subscription.
#[test]
fn subscriptions_in_the_middle_of_a_pipeline() {
    let server = Server::cache(&["--threads", "3"]);
    let mut client = server.connect();
    client.run("HELLO 3");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let lines = ["SET a 1", "GET a", "SUBSCRIBE news", "GET b", "MGET a b c", "UNSUBSCRIBE news", "INCR n"];
    let stream = pipeline(&lines);
    std::thread::scope(|scope| {
        let publishing = || {
            let mut publisher = server.connect();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                publisher.run("PUBLISH news text");
            }
        };
        (0..2).for_each(|_| _ = scope.spawn(publishing));
        for round in 1..=10_000 {
            client.send(&stream);
            let (mut replies, mut is_subscribed) = (Vec::new(), false);
            while replies.len() < lines.len() {
                let reply = client.read();
                match &reply {
                    Value::Push(parts) if parts[0].text() == "message" => assert!(is_subscribed, "{round}"),
                    Value::Push(parts) => {
                        is_subscribed = parts[0].text() == "subscribe";
                        replies.push(parts[0].text());
                    }
                    Value::Array(parts) => replies.push(format!("{}", parts.len())),
                    Value::Integer(number) => replies.push(format!("{number}")),
                    Value::Null => replies.push("null".into()),
                    other => replies.push(other.text()),
                }
            }
            let number = round.to_string();
            assert_eq!(replies, ["OK", "1", "subscribe", "null", "3", "unsubscribe", &number]);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Readers of all threads at the very millisecond of a deadline: once a key is gone for one, it is gone for all.
#[test]
fn a_key_that_is_gone_stays_gone() {
    let server = Server::cache(&["--threads", "3"]);
    let start = Instant::now();
    for round in 0..40 {
        let (key, counter) = (format!("key{round}"), format!("counter{round}"));
        let mut setter = server.connect();
        setter.run(&format!("SET {key} old PX 25"));
        setter.run(&format!("SET {counter} 100 PX 25"));
        // When each reader asked, and was told: the key with its time, or that it is gone.
        let read = || {
            let (mut client, mut seen) = (server.connect(), Vec::new());
            while seen.last().is_none_or(|&(_, _, is_there)| is_there) {
                let asked = start.elapsed();
                client.send(&[encode(&["PTTL", &key]), encode(&["GET", &key])].concat());
                let left = client.read().integer();
                assert!((-2..=25).contains(&left) && left != -1, "{left}");
                let is_there = client.read() != Value::NullBulk;
                assert!(left >= 0 || !is_there, "gone, and there again");
                seen.push((asked, start.elapsed(), is_there));
            }
            seen
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
            readers.into_iter().flat_map(|it| it.join().expect("a reader")).collect()
        });
        let first_told = all.iter().filter(|it| !it.2).map(|it| it.1).min().expect("it goes");
        assert!(all.iter().all(|&(asked, _, is_there)| !is_there || asked < first_told), "round {round}");
        assert_eq!(setter.run(&format!("SET {key} new NX")).text(), "OK");
        assert_eq!(setter.run(&format!("PTTL {key}")).integer(), -1);
        super::time::wait_for(|| setter.run(&format!("EXISTS {counter}")).integer() == 0);
        assert_eq!(setter.run(&format!("INCR {counter}")).integer(), 1);
    }
}

/// A great value in pieces of any length, with commands right behind it, arrives whole, and is counted.
#[test]
fn a_great_value_arrives_whole() {
    const LEN: usize = 20 << 20;
    let server = Server::cache(TWO);
    let mut client = server.connect();
    let value: Vec<u8> = (0..LEN).map(|at| (at * 7 % 251) as u8).collect();
    for key in ["a", "b"] {
        let stream =
            [encode(&[b"SET", key.as_bytes(), &value]), encode(&["STRLEN", key]), encode(&["PING"])].concat();
        let (mut rest, mut piece) = (&stream[..], 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            client.send(now);
            (rest, piece) = (later, piece * 3 % 1_000_003);
        }
        assert_eq!(client.read().text(), "OK");
        assert_eq!(client.read().integer(), LEN as i64);
        assert_eq!(client.read().text(), "PONG");
        assert!(client.run(&format!("GET {key}")) == Value::Bulk(value.clone()));
    }
    let bytes = super::observe::info(&client.run("INFO stats").text(), "total_net_input_bytes").to_owned();
    assert!((2 * LEN..2 * LEN + 1_000).contains(&bytes.parse().expect("a number")), "{bytes}");
}

/// One error and one reply, and nothing is applied; a time beyond all dates leaves the key as it is.
#[test]
fn what_is_refused_changes_nothing() {
    let server = Server::cache(TWO);
    let mut client = server.connect();
    client.run("SET a v EX 1000");
    for line in [
        "EXPIRE a 10 NX XX",
        "EXPIRE a 10 GT LT",
        "EXPIRE a 10 XX foo",
        "EXPIRE a 9223372036854775807",
        "PEXPIRE a 9223372036854775807",
        "EXPIRE a -9223372036854775808",
        "SET a w EX 9223372036854775807",
        "GETEX a PX 9223372036854775807",
        "SETEX a 9223372036854775807 w",
        "INCRBYFLOAT a 1",
        "SETRANGE a 536870912 x",
    ] {
        client.send(&[encode(&line.split(' ').collect::<Vec<_>>()), encode(&["PING"])].concat());
        assert!(matches!(client.read(), Value::Error(_)), "{line}");
        assert_eq!(client.read().text(), "PONG", "{line}");
        assert_eq!(client.run("GET a").text(), "v", "{line}");
        assert!((900..=1_000).contains(&client.run("TTL a").integer()), "{line}");
    }
}

/// EXPIRE with a time that is over deletes the key, as in Redis: the event is `del`. SET with one is an event
/// `set` and then `expired`, which is counted.
#[test]
fn a_deadline_in_the_past_is_an_event() {
    let server = Server::cache(TWO);
    let (mut client, mut listener) = (server.connect(), server.connect());
    client.run("CONFIG SET notify-keyspace-events KEA");
    listener.run("PSUBSCRIBE __keyevent@*__:*");
    let mut events = |expected: &[(&str, &str)]| {
        let seen: HashSet<_> = (0..expected.len())
            .map(|_| {
                let message = listener.read();
                let [_, _, channel, key] = message.elements() else { panic!("{message:?}") };
                (channel.text().replace("__keyevent@0__:", ""), key.text())
            })
            .collect();
        let expected: HashSet<_> = expected.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        assert_eq!(seen, expected);
        assert!(!listener.hears_within(Duration::from_millis(50)));
    };
    client.run("SET a v");
    assert_eq!(client.run("EXPIRE a -1").integer(), 1);
    assert_eq!(client.run("EXISTS a").integer(), 0);
    events(&[("set", "a"), ("del", "a")]);
    assert_eq!(super::observe::info(&client.run("INFO stats").text(), "expired_keys"), "0");
    client.run("SET b v PXAT 1");
    super::time::wait_for(|| client.run("EXISTS b").integer() == 0);
    events(&[("set", "b"), ("expire", "b"), ("expired", "b")]);
    assert_eq!(super::observe::info(&client.run("INFO stats").text(), "expired_keys"), "1");
}
