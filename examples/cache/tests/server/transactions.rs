use super::support::Server;
use super::support::client::{Client, Value, encode, pipeline};

const THREE: &[&str] = &["--threads", "3"];

/// Sends the lines as a pipeline; the reply to the last one.
fn last_of(client: &mut Client, lines: &[&str]) -> Value {
    let stream = pipeline(lines);
    client.send(&stream);
    lines.iter().map(|_| client.read()).last().expect("a reply")
}

/// A transaction on keys of one thread runs there in one piece, wherever its client and the others are.
#[test]
fn a_transaction_with_a_hash_tag_is_seen_as_a_whole() {
    let server = Server::cache(THREE);
    let padding = "x".repeat(7_000);
    let run = |writes: bool| {
        let mut client = server.connect();
        for round in 0..2_000 {
            let value = format!("{round}{padding}");
            let write = [format!("SET {{tag}}a {value}"), format!("SET {{tag}}b {value}")];
            let lines = match writes {
                true => ["MULTI", &write[0], "MGET {tag}a none", &write[1], "MGET {tag}a {tag}b", "EXEC"],
                false => ["MULTI", "GET {tag}a", "PING", "GET {tag}none", "MGET {tag}a {tag}b", "EXEC"],
            };
            let reply = last_of(&mut client, &lines);
            let seen = reply.elements()[3].elements();
            assert_eq!(seen[0], seen[1], "round {round}");
            if writes {
                assert_eq!(seen[0], Value::bulk(&value), "round {round}");
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || run(number % 2 == 0));
        }
    });
}

/// Over several threads: each command once, replies in order, and the commands of one key in order.
#[test]
fn a_transaction_over_several_threads() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    for round in 0..300 {
        let mut lines = vec!["MULTI".to_owned()];
        lines.extend((0..100).map(|key| format!("INCR key{key}")));
        lines.extend((0..100).map(|key| format!("INCR key{key}")));
        lines.push("EXEC".into());
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let expected: Vec<_> = (0..200).map(|at| Value::Integer(2 * round + 1 + at / 100)).collect();
        assert_eq!(last_of(&mut client, &lines), Value::Array(expected));
    }
}

#[test]
fn a_client_that_leaves_before_exec_has_done_nothing() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    let mut leaving: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for other in &mut leaving {
        assert_eq!(last_of(other, &["MULTI", "SET a 1", "FLUSHALL"]).text(), "QUEUED");
    }
    drop(leaving);
    super::time::wait_for(|| client.run("INFO clients").text().contains("connected_clients:1\r\n"));
    assert_eq!(client.run("DBSIZE").integer(), 0);
}

/// What is queued takes memory, which is counted and given back.
#[test]
fn what_is_queued_is_counted() {
    let server = Server::cache(THREE);
    let (mut client, mut other) = (server.connect(), server.connect());
    let mut used = || super::observe::info(&other.run("INFO memory").text(), "used_memory").parse::<usize>();
    let before = used().expect("a number");
    last_of(&mut client, &["MULTI", &format!("SET a {}", "x".repeat(100_000))]);
    super::time::wait_for(|| used().expect("a number") - before > 100_000);
    last_of(&mut client, &["DISCARD", "PING"]);
    super::time::wait_for(|| used().expect("a number") - before < 50_000);
}

/// Messages to the client itself, or from others, come before or after a transaction's array, never within.
#[test]
fn no_message_comes_within_the_replies() {
    let server = Server::cache(THREE);
    let (mut client, mut other) = (server.connect(), server.connect());
    client.run("HELLO 3");
    client.run("CONFIG SET notify-keyspace-events KEA");
    let channels = ["SUBSCRIBE", "self", "others", "__keyevent@0__:set"];
    client.send(&encode(&channels));
    (1..channels.len()).for_each(|_| _ = client.read());
    let lines =
        ["MULTI", "SET a 1", "PUBLISH self one", "MGET a b c d e", "SET b 2", "PUBLISH self two", "EXEC"];
    let stream = pipeline(&lines);
    for round in 0..300 {
        other.send(&encode(&["PUBLISH", "others", "text"]));
        client.send(&stream);
        let (mut replies, mut messages) = (Vec::new(), Vec::new());
        while replies.len() < lines.len() || messages.len() < 5 {
            match client.read() {
                Value::Push(message) => messages.push(message[2].text()),
                reply => replies.push(reply),
            }
        }
        let results = replies.pop().expect("the array");
        assert!(matches!(results, Value::Array(_)), "round {round}: {results:?}");
        assert_eq!(results.elements().len(), 5);
        let own: Vec<_> = messages.iter().filter(|it| ["one", "two"].contains(&&it[..])).collect();
        assert_eq!(own, ["one", "two"], "round {round}");
        assert_eq!(other.read().integer(), 1);
    }
}
