//! Clients that move between threads: they are killed wherever they are, their replies and their commands keep their
//! order, and nothing is left of them when they go.

use std::sync::atomic::{AtomicBool, Ordering};

use super::observe::info;
use super::support::Server;
use super::support::client::{Client, Value, encode, pipeline};
use super::time::wait_for;

const THREE: &[&str] = &["--threads", "3"];

/// Ends the threads of a test with the value, also if an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed; only the flag matters.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keys of this number of threads, one of each: of what a client in the thread of one asks for, only the others' keys
/// are forwarded. For a server that has nothing else to do.
fn keys_apart(client: &mut Client, threads: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let forwarded = |client: &mut Client| info(&client.run("INFO stats").text(), "forwarded_commands");
    for key in (0..200).map(|number| format!("apart{number}")) {
        let is_apart = |other: &String, client: &mut Client| {
            client.run(&format!("WATCH {other}"));
            client.run("UNWATCH");
            let before = forwarded(client);
            client.run(&format!("GET {key}"));
            forwarded(client) != before
        };
        if found.iter().all(|other| is_apart(other, client)) {
            found.push(key);
        }
    }
    assert_eq!(found.len(), threads);
    found
}

/// Clients that stay are in every list, once, while others move; and these are, too, once they have moved.
#[test]
fn clients_that_move_are_listed() {
    let server = Server::cache(THREE);
    let is_over = AtomicBool::new(false);
    let mut client = server.connect();
    let keys = &keys_apart(&mut client, 3);
    let mut staying: Vec<_> = (0..3).map(|_| server.connect()).collect();
    staying.iter_mut().for_each(|it| assert_eq!(it.run("CLIENT SETNAME stays").text(), "OK"));
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..4).map(|_| server.connect()).collect();
        let move_on = |(mover, mut client): (usize, Client)| {
            let is_over = &is_over;
            scope.spawn(move || {
                for round in mover.. {
                    client.send(&pipeline(&["UNWATCH".to_owned(), format!("WATCH {}", keys[round % 3])]));
                    assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"]);
                    // Ordering: Relaxed; only the flag matters.
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                client
            })
        };
        let moving: Vec<_> = movers.into_iter().enumerate().map(move_on).collect();
        let over = Over(&is_over);
        for round in 0..3_000 {
            let list = client.run("CLIENT LIST").text();
            assert_eq!(list.matches("name=stays ").count(), 3, "round {round}: {list}");
        }
        drop(over);
        let moved: Vec<_> = moving.into_iter().map(|it| it.join().expect("its end")).collect();
        assert_eq!(client.run("CLIENT LIST").text().lines().count(), 1 + staying.len() + moved.len());
    });
}

/// A client may send a whole pipeline before it reads the first reply, wherever it moves meanwhile: by great values, and
/// by WATCH.
#[test]
fn a_client_that_reads_nothing_moves() {
    const VALUE: usize = 1_500_000;
    let server = Server::cache(THREE);
    let mut client = server.connect();
    let (value, padding) = ("x".repeat(VALUE), "p".repeat(VALUE / 10));
    for key in (0..15).map(|number| format!("key{number}")) {
        client.send(&encode(&["SET", &key, &value]));
        client.send(&encode(&["GET", &key]));
        client.send(&pipeline(&["UNWATCH".to_owned(), format!("WATCH {key}")]));
        (0..10).for_each(|_| client.send(&encode(&["ECHO", &padding])));
        client.send(&pipeline(&["UNWATCH"]));
    }
    for number in 0..15 {
        assert_eq!(client.read().text(), "OK", "key {number}");
        assert!(client.read() == Value::bulk(&value), "key {number}");
        assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"], "key {number}");
        (0..10).for_each(|_| assert!(client.read() == Value::bulk(&padding), "key {number}"));
        assert_eq!(client.read().text(), "OK", "key {number}");
    }
}

/// Kills a client, which may move meanwhile: then it may be missed, but not for ever.
fn kill(killer: &mut Client, id: i64) {
    let tries = (0..1_000).find(|_| killer.run(&format!("CLIENT KILL ID {id}")).integer() == 1);
    assert!(tries.is_some(), "client {id} is never met");
}

/// A client that moves all the time is killed.
#[test]
fn clients_that_move_are_killed() {
    let server = Server::cache(THREE);
    let mut killer = server.connect();
    let keys = keys_apart(&mut killer, 3);
    for _ in 0..100 {
        let mut client = server.connect();
        let id = client.run("CLIENT ID").integer();
        let lines = keys.iter().flat_map(|key| ["UNWATCH".to_owned(), format!("WATCH {key}")]);
        client.send(&pipeline(&lines.collect::<Vec<_>>()).repeat(300));
        client.read();
        kill(&mut killer, id);
        while client.try_read().is_some() {}
    }
    wait_for(|| info(&killer.run("INFO clients").text(), "connected_clients") == "1");
}

/// A WATCH that moves its client is one call.
#[test]
fn a_watch_that_moves_counts_once() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    for round in 0..30 {
        assert_eq!(client.run(&format!("WATCH key{round}")).text(), "OK");
        client.run("UNWATCH");
    }
    let counts = info(&client.run("INFO commandstats").text(), "cmdstat_watch");
    assert!(counts.starts_with("calls=30,"), "{counts}");
}
