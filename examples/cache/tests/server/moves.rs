//! Clients that move between threads: they are killed wherever they are, their replies and their commands keep their
//! order, and nothing is left of them when they go.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::observe::info;
use super::support::Server;
use super::support::client::{Client, Value, encode};
use super::time::wait_for;

const THREE: &[&str] = &["--threads", "3"];

fn stream<L: AsRef<str>>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| encode(&line.as_ref().split(' ').collect::<Vec<_>>())).collect()
}

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
                    client.send(&stream(&["UNWATCH".to_owned(), format!("WATCH {}", keys[round % 3])]));
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

/// A client moves although many others ask for lists of all clients without a pause: each has many requests on
/// their way at any time.
#[test]
fn lists_without_a_pause_do_not_keep_a_client_where_it_is() {
    const ASKERS: usize = 24;
    const AHEAD: usize = 200;
    let server = Server::cache(THREE);
    let mut mover = server.connect();
    let keys = keys_apart(&mut mover, 3);
    let is_over = AtomicBool::new(false);
    let requests: [&[&str]; 3] =
        [&["CLIENT LIST"], &["MULTI", "CLIENT LIST", "EXEC"], &["CLIENT KILL ID 999999"]];
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for number in 0..ASKERS {
            let lines = requests[number % requests.len()];
            let (mut asker, server, is_over) = (server.connect(), &server, &is_over);
            scope.spawn(move || {
                // A client with subscriptions stays in its thread.
                if number == 0 {
                    asker.run("HELLO 3");
                    asker.run("SUBSCRIBE news");
                }
                let request = stream(lines);
                asker.send(&request.repeat(AHEAD));
                // Ordering: Relaxed; only the flag matters.
                while !is_over.load(Ordering::Relaxed) {
                    lines.iter().for_each(|_| _ = asker.read());
                    asker.send(&request);
                }
                (0..AHEAD * lines.len()).for_each(|_| _ = asker.read());
                if number == 0 {
                    let mut publisher = server.connect();
                    assert_eq!(publisher.run("PUBLISH news text").integer(), 1);
                    assert_eq!(asker.read().elements()[2], Value::bulk("text"));
                }
            });
        }
        for round in 0..10 {
            mover.send(&stream(&["UNWATCH".to_owned(), format!("WATCH {}", keys[round % 3])]));
            assert_eq!([mover.read().text(), mover.read().text()], ["OK", "OK"], "round {round}");
        }
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
        client.send(&stream(&["UNWATCH".to_owned(), format!("WATCH {key}")]));
        (0..10).for_each(|_| client.send(&encode(&["ECHO", &padding])));
        client.send(&stream(&["UNWATCH"]));
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
        client.send(&stream(&lines.collect::<Vec<_>>()).repeat(300));
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

/// Replies keep their order, and none is missing, whatever is muted, while a client moves to one thread and
/// writes to another one.
#[test]
fn muted_replies_of_a_client_that_moves() {
    let server = Server::cache(THREE);
    let mut client = server.connect();
    let keys = keys_apart(&mut client, 3);
    // Threads that are busy find the messages of several others at once.
    let mut busy = server.connect();
    (0..20).for_each(|_| busy.send(&encode(&["KEYS", "nothing*"])));
    for round in 0..400 {
        busy.send(&encode(&["KEYS", "nothing*"]));
        busy.read();
        let [home, away, third] = [0, 1, 2].map(|at| &keys[(round + at) % 3]);
        let mut lines = vec![format!("WATCH {home}"), "UNWATCH".to_owned(), "CLIENT REPLY OFF".into()];
        lines.extend((0..5).map(|value| format!("SET {third} {value}")));
        lines.extend([format!("WATCH {away}"), format!("SET {third} {round}")]);
        lines.extend(["UNWATCH", "CLIENT REPLY ON"].map(String::from));
        lines.extend([format!("GET {third}"), format!("ECHO {round}")]);
        lines.extend(["CLIENT REPLY SKIP".to_owned(), format!("MGET {third} {home}")]);
        lines.extend(["CLIENT REPLY SKIP".to_owned(), format!("WATCH {third}")]);
        lines.extend(["UNWATCH".to_owned(), format!("APPEND {away} {round}")]);
        lines.extend(["CLIENT REPLY SKIP".to_owned(), format!("SET {away} {round}")]);
        lines.extend([format!("WATCH {home}"), format!("GET {away}"), "UNWATCH".into()]);
        client.send(&stream(&lines));
        let number = round.to_string();
        assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"], "round {round}");
        assert_eq!(client.read().text(), "OK", "round {round}: REPLY ON");
        assert_eq!(client.read(), Value::bulk(&number), "round {round}: the last SET counts");
        assert_eq!(client.read(), Value::bulk(&number), "round {round}");
        assert_eq!(client.read().text(), "OK", "round {round}: UNWATCH");
        client.read().integer();
        assert_eq!(client.read().text(), "OK", "round {round}: WATCH");
        assert_eq!(client.read(), Value::bulk(&number), "round {round}: the muted SET came before");
        assert_eq!(client.read().text(), "OK", "round {round}: UNWATCH");
    }
}

/// A thousand clients move at once, under load; some are killed, and some leave in the middle.
#[test]
fn a_thousand_clients_move_at_once() {
    const CLIENTS: usize = 1_000;
    let server = Server::cache(&["--threads", "3", "--metrics", "127.0.0.1:0"]);
    let mut observer = server.connect();
    let used = |client: &mut Client| -> usize {
        info(&client.run("INFO memory").text(), "used_memory").parse().expect("a number")
    };
    observer.run("SET warm up");
    observer.run("DEL warm");
    let before = used(&mut observer);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (mut client, is_over) = (server.connect(), &is_over);
            scope.spawn(move || {
                let lines: Vec<_> = (0..200).map(|key| format!("INCR load{key}")).collect();
                while !is_over.load(Ordering::Relaxed) {
                    client.send(&stream(&lines));
                    lines.iter().for_each(|_| _ = client.read().integer());
                }
            });
        }
        let _over = Over(&is_over);
        for round in 0..3 {
            let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
            let ids: Vec<_> = clients.iter_mut().map(|it| it.run("CLIENT ID").integer()).collect();
            for (number, client) in clients.iter_mut().enumerate() {
                let lines: Vec<_> = (0..12)
                    .flat_map(|step| {
                        let key = format!("key{}", (number * 7 + step * 13 + round) % 50);
                        let watch = [format!("WATCH {key}"), "MULTI".to_owned(), format!("INCR own{number}")];
                        watch.into_iter().chain([format!("SET {key} {number}"), "EXEC".into()])
                    })
                    .collect();
                client.send(&stream(&lines));
            }
            // Every tenth is killed, every tenth leaves, and one in ten sends nothing more.
            for (number, id) in ids.iter().enumerate().filter(|(number, _)| number % 10 == 3) {
                kill(&mut observer, *id);
                let _ = clients[number + 1].stream.shutdown(Shutdown::Both);
                let _ = clients[number + 2].stream.shutdown(Shutdown::Write);
            }
            // What those that were killed, or have left, got may end anywhere.
            let stayed =
                clients.iter_mut().enumerate().filter(|(number, _)| ![3, 4].contains(&(number % 10)));
            for (number, client) in stayed {
                for reply in 0..12 * 5 {
                    match client.try_read() {
                        None => panic!("round {round}: client {number} lost reply {reply}"),
                        Some(Value::Array(results)) => {
                            assert!(
                                matches!(results[..], [Value::Integer(_), Value::Simple(_)]),
                                "{results:?}"
                            );
                        }
                        Some(Value::NullArray) => assert_eq!(reply % 5, 4),
                        Some(other) => {
                            assert_eq!(other.text(), ["OK", "OK", "QUEUED", "QUEUED", "EXEC"][reply % 5]);
                        }
                    }
                }
            }
        }
    });
    wait_for(|| info(&observer.run("INFO clients").text(), "connected_clients") == "1");
    assert_eq!(super::observe::metric(&server, "clients"), 1);
    assert_eq!(observer.run("CLIENT LIST").text().lines().count(), 1);
    // Each EXEC that was not refused has counted.
    observer.run("FLUSHALL");
    wait_for(|| used(&mut observer) <= before + 4_096);
    drop(observer);
    let deadline = Instant::now() + Duration::from_secs(30);
    while super::observe::metric(&server, "clients") > 0 {
        assert!(Instant::now() < deadline, "a client is still counted");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(super::observe::metric(&server, "buffer_bytes"), 0);
}
