//! WATCH: a client moves to the thread of the keys that it watches.

use std::time::Duration;

use super::support::Server;
use super::support::client::{Client, Value, pipeline};

const THREE: &[&str] = &["--threads", "3"];

/// Adds one to a number as long as another client has done so meanwhile. Returns the number of attempts.
fn add_one(client: &mut Client, key: &str) -> usize {
    for attempt in 1.. {
        client.send(&pipeline(&[&format!("WATCH {key}"), &format!("GET {key}")]));
        assert_eq!(client.read().text(), "OK");
        let old = match client.read() {
            Value::NullBulk => 0,
            old => old.text().parse::<u64>().expect("a number"),
        };
        client.send(&pipeline(&["MULTI", &format!("SET {key} {}", old + 1), "PING", "EXEC"]));
        let reply = (0..4).map(|_| client.read()).last().expect("a reply");
        if reply != Value::NullArray {
            assert_eq!(reply.elements()[1].text(), "PONG");
            return attempt;
        }
    }
    unreachable!("there is no last attempt")
}

#[test]
fn no_sum_is_lost() {
    let server = Server::cache(THREE);
    let attempts: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|number| {
                let mut client = server.connect();
                let add = move |round| add_one(&mut client, &format!("counter{}", (number + round) % 4));
                scope.spawn(move || (0..400).map(add).sum::<usize>())
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("its end")).sum()
    });
    let mut client = server.connect();
    let sums = (0..4).map(|key| client.run(&format!("GET counter{key}")).text().parse::<usize>());
    assert_eq!(sums.map(|sum| sum.expect("a number")).sum::<usize>(), 6 * 400);
    assert!(attempts > 6 * 400, "nothing was disputed");
    assert_eq!(super::observe::info(&client.run("INFO clients").text(), "connected_clients"), "1");
}

/// What has been sent before and after WATCH is answered in order, wherever the client is.
#[test]
fn a_client_moves_in_the_middle_of_a_pipeline() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    let id = client.run("CLIENT ID");
    let value = "x".repeat(10_000);
    let mut lines = Vec::new();
    for key in 0..100 {
        lines.extend([
            format!("SET key{key} {value}{key}"),
            format!("MGET key{key} key0 none"),
            format!("WATCH key{key}"),
            format!("GET key{key}"),
            "UNWATCH".to_owned(),
            "CLIENT ID".to_owned(),
        ]);
    }
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    for _ in 0..5 {
        client.send(&pipeline(&lines));
        for key in 0..100 {
            assert_eq!(client.read().text(), "OK");
            assert_eq!(client.read().elements()[0], Value::Bulk(format!("{value}{key}").into_bytes()));
            assert_eq!(client.read().text(), "OK");
            assert_eq!(client.read().text(), format!("{value}{key}"));
            assert_eq!(client.read().text(), "OK");
            assert_eq!(client.read(), id);
        }
    }
    client.send(&pipeline(&["CLIENT REPLY SKIP", "UNWATCH", "CLIENT REPLY SKIP", "WATCH key7", "ECHO 2"]));
    assert_eq!(client.read().text(), "2");
    let counts = super::observe::info(&client.run("INFO commandstats").text(), "cmdstat_watch");
    assert!(counts.starts_with("calls=501,"), "a WATCH that moves its client counts once: {counts}");
}

#[test]
fn what_cannot_be_watched() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    let keys: Vec<_> = (0..50).map(|key| format!("key{key}")).collect();
    let apart = "CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(client.run(&format!("WATCH {}", keys.join(" "))).text(), apart);
    let replies: Vec<_> = keys.iter().map(|key| client.run(&format!("WATCH {key}")).text()).collect();
    assert!(replies[0] == "OK" && replies.iter().any(|it| it == apart), "{replies:?}");
    client.run("UNWATCH");
    client.run("HELLO 3");
    client.run("SUBSCRIBE c");
    assert!(client.run("WATCH a").text().starts_with("ERR Can't execute 'watch': only"));
    client.run("UNSUBSCRIBE c");
    client.send(&pipeline(&["WATCH a", "SET a 1", "MULTI", "PING", "EXEC"]));
    assert_eq!((0..5).map(|_| client.read()).last(), Some(Value::Null));
}

#[test]
fn a_key_that_expires_has_changed() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    for round in 0..20 {
        let lines =
            [&format!("SET key{round} v PX 20"), &format!("WATCH key{round}"), &format!("GET key{round}")];
        client.send(&pipeline(&lines.map(String::as_str)));
        client.send(&pipeline(&["MULTI", "PING"]));
        let is_there = [0, 1, 2, 3, 4].map(|_| client.read())[2] != Value::NullBulk;
        std::thread::sleep(Duration::from_millis(25));
        // On a busy machine it may be gone when it is watched.
        assert_eq!(client.run("EXEC") == Value::NullArray, is_there, "round {round}");
        // It was gone before.
        client.send(&pipeline(&[&format!("WATCH key{round}"), "MULTI", "PING"]));
        (0..3).for_each(|_| _ = client.read());
        assert_eq!(client.run("EXEC").elements().len(), 1, "round {round}");
    }
}

/// A client that has moved is closed when it is idle, and when the server ends.
#[test]
fn a_client_that_has_moved_is_served_as_before() {
    let mut server = Server::cache(&["--threads", "3", "--idle-timeout", "1s"]);
    let mut clients: Vec<_> = (0..12).map(|_| server.connect()).collect();
    for _ in 0..8 {
        for (number, client) in clients.iter_mut().enumerate() {
            std::thread::sleep(Duration::from_millis(25));
            client.send(&pipeline(&["UNWATCH", &format!("WATCH key{number}")]));
            assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"]);
        }
    }
    for client in &mut clients {
        assert_eq!(client.try_read(), None);
    }
    let mut client = server.connect();
    client.send(&pipeline(&["WATCH key1", "WATCH key1", "GET key1"]));
    server.signal("-TERM");
    assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"]);
    assert_eq!((client.read(), client.try_read()), (Value::NullBulk, None));
    assert!(server.process.wait().expect("its end").success());
}
