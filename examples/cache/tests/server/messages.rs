use std::collections::HashSet;
use std::time::Duration;

use super::TWO;
use super::support::Server;
use super::support::client::{Client, Value, encode};

#[test]
fn a_message_reaches_subscribers_of_all_threads() {
    let server = Server::cache(&["--threads", "3"]);
    let mut subscribers: Vec<_> = (0..9).map(|_| server.connect()).collect();
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        if number % 2 == 0 {
            subscriber.run("HELLO 3");
        }
        assert_eq!(subscriber.run("SUBSCRIBE news").elements()[2], Value::Integer(1));
    }
    let mut publisher = server.connect();
    for text in ["one", "two", "three"] {
        assert_eq!(publisher.run(&format!("PUBLISH news {text}")).integer(), 9);
    }
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        for text in ["one", "two", "three"] {
            let expected = ["message", "news", text].map(Value::bulk).to_vec();
            let expected = if number % 2 == 0 { Value::Push(expected) } else { Value::Array(expected) };
            assert_eq!(subscriber.read(), expected);
        }
    }
    drop(subscribers.split_off(4));
    super::time::wait_for(|| publisher.run("PUBLISH news again").integer() == 4);
}

/// A subscriber that does not read is cut off; the publisher and the others do not notice.
#[test]
fn a_subscriber_that_does_not_read_is_cut_off() {
    let server = Server::cache(TWO);
    let (mut deaf, mut good, mut publisher) = (server.connect(), server.connect(), server.connect());
    deaf.run("SUBSCRIBE news");
    good.run("SUBSCRIBE news");
    let text = "x".repeat(1_000_000);
    let mut sent = 0;
    while publisher.run_args(&["PUBLISH", "news", &text]).integer() == 2 {
        assert_eq!(good.read().elements()[2].text().len(), text.len());
        sent += 1;
        assert!(sent < 500, "it was never cut off");
    }
    assert!(sent > 20, "{sent}");
    assert!(good.hears_within(Duration::from_secs(10)));
}

/// How many keys have expired, and whether anybody has been cut off.
fn expired(client: &mut Client) -> (usize, bool) {
    let info = client.run("INFO stats").text();
    let number = |name| super::observe::info(&info, name).parse::<usize>().expect("a number");
    (number("expired_keys"), number("slow_closed") > 0)
}

/// Sets so many keys with long names, which are due soon, and together.
fn set_keys(client: &mut Client, keys: usize) {
    client.run("CONFIG SET notify-keyspace-events Ex");
    let set = |key| encode(&["SET", &format!("{key:0>10000}"), "v", "PX", "1500"]);
    for from in (0..keys).step_by(100) {
        client.send(&(from..from + 100).flat_map(set).collect::<Vec<_>>());
        (0..100).for_each(|_| assert_eq!(client.read().text(), "OK"));
    }
}

/// What a subscriber of `expired` hears: so many keys, each once.
fn hears_all(subscriber: &mut Client, keys: usize) {
    let names: HashSet<_> = (0..keys).map(|_| subscriber.read().elements()[2].text()).collect();
    assert_eq!(names.len(), keys);
}

/// Keys that are due wait for a subscriber that is slow. It gets 80 MB of events, which is more than may wait for it,
/// and others go on meanwhile.
#[test]
fn a_burst_of_events_reaches_a_slow_subscriber() {
    for threads in ["1", "3"] {
        let (server, keys) = (Server::cache(&["--threads", threads]), 8_000);
        let (mut client, mut subscriber) = (server.connect(), server.connect());
        subscriber.run("SUBSCRIBE __keyevent@0__:expired");
        set_keys(&mut client, keys);
        // Nothing is read until nothing more happens.
        let mut before = 0;
        while before == 0 || before < expired(&mut client).0 {
            before = expired(&mut client).0;
            std::thread::sleep(Duration::from_millis(300));
        }
        assert!(before < keys, "all have expired for a subscriber that has read nothing");
        super::time::wait_for(|| client.run(&format!("EXISTS {:0>10000}", keys - 1)).integer() == 0);
        hears_all(&mut subscriber, keys);
        assert_eq!(expired(&mut client), (keys, false));
    }
}

/// One that reads nothing delays events for a while only, and is cut off then.
#[test]
fn a_burst_of_events_does_not_wait_for_ever() {
    let (server, keys) = (Server::cache(&["--threads", "3"]), 8_000);
    let (mut client, mut deaf, mut good) = (server.connect(), server.connect(), server.connect());
    deaf.run("SUBSCRIBE __keyevent@0__:expired");
    good.run("SUBSCRIBE __keyevent@0__:expired");
    set_keys(&mut client, keys);
    hears_all(&mut good, keys);
    super::time::wait_for(|| expired(&mut client) == (keys, true));
}

/// So is one that stops reading in the middle of a long reply, after which the messages come.
#[test]
fn a_subscriber_that_reads_half_of_a_reply_is_cut_off() {
    let server = Server::cache(TWO);
    let (mut deaf, mut publisher) = (server.connect(), server.connect());
    let (text, keys) = ("x".repeat(1_000_000), (0..200).map(|key| format!("key{key}")));
    let keys: Vec<_> = keys.collect();
    keys.iter().for_each(|key| _ = publisher.run_args(&["SET", key, &text]));
    deaf.run("HELLO 3");
    deaf.run("SUBSCRIBE news");
    deaf.send(&encode(&[&["MGET".to_owned()], &keys[..]].concat()));
    let mut sent = 0;
    while publisher.run_args(&["PUBLISH", "news", &text]).integer() == 1 {
        sent += 1;
        assert!(sent < 500, "it was never cut off");
    }
}

/// Messages come behind a long reply that is given in pieces, and a pipeline goes on behind it.
#[test]
fn a_long_reply_is_one_piece() {
    let server = Server::cache(TWO);
    let (mut client, mut publisher) = (server.connect(), server.connect());
    client.run("HELLO 3");
    client.run("SUBSCRIBE news");
    let keys: Vec<_> = (0..2_000).map(|key| format!("key{key}")).collect();
    keys.iter().for_each(|key| _ = publisher.run_args(&["SET", key, &key.repeat(500)]));
    let ask = encode(&[&["MGET".to_owned()], &keys[..]].concat());
    let stream = [&ask[..], &encode(&["SET", "key1999", "new"]), &ask, &encode(&["PING"])].concat();
    let mut writer = client.stream.try_clone().expect("a writer");
    let sending = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &stream).expect("sent"));
    (0..50).for_each(|_| assert_eq!(publisher.run("PUBLISH news text").integer(), 1));
    let (mut replies, mut messages) = (Vec::new(), 0);
    while replies.len() < 4 || messages < 50 {
        match client.read() {
            Value::Push(_) => messages += 1,
            reply => replies.push(reply),
        }
    }
    sending.join().expect("all sent");
    let last = |reply: &Value| reply.elements().last().expect("2,000 values").text();
    assert_eq!(last(&replies[0]), "key1999".repeat(500));
    assert_eq!(
        (replies[1].text(), last(&replies[2]), replies[3].text()),
        ("OK".into(), "new".into(), "PONG".into())
    );
    assert_eq!(replies[0].elements()[..1_999], replies[2].elements()[..1_999]);
}
