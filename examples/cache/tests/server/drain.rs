use std::net::TcpStream;

use super::TWO;
use super::support::Server;
use super::support::client::encode;

/// At a signal to end, what has been asked for is answered, and then the process ends well.
#[test]
fn a_signal_lets_clients_have_their_replies() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::cache(TWO);
        let (mut client, mut idle) = (server.connect(), server.connect());
        idle.run("PING");
        let stream: Vec<_> = (0..20_000).flat_map(|key| encode(&["SET", &format!("k{key}"), "v"])).collect();
        client.send(&stream);
        // The server has read all of it when it answers the last request of an earlier client.
        assert_eq!(client.read().text(), "OK");
        server.signal(signal);
        let replies = client.read_to_end();
        assert!(replies.iter().all(|reply| reply.text() == "OK"));
        assert_eq!(idle.read_to_end(), []);
        assert!(server.process.wait().expect("its end").success());
        assert!(TcpStream::connect(server.address).is_err(), "nobody listens any more");
    }
}

/// So is what the system has for the server, but the server has not read.
#[test]
fn a_signal_waits_for_what_has_been_sent() {
    let mut server = Server::cache(TWO);
    let mut client = server.connect();
    // As much as the server's socket holds at least, so that all has come before the signal.
    let (requests, stream) = (1_500, encode(&["SET", "key", "value"]).repeat(1_500));
    assert_eq!(client.run("PING").text(), "PONG");
    server.signal("-STOP");
    client.send(&stream);
    server.signal("-TERM");
    server.signal("-CONT");
    assert_eq!(client.read_to_end().len(), requests);
    assert!(server.process.wait().expect("its end").success());
}

/// A client that the server has not accepted yet when the signal comes gets its replies, too. On one
/// core, a worker that is woken to end often runs before the acceptor goes on.
#[test]
fn a_client_that_comes_before_the_signal_is_served() {
    let rounds = || {
        // A server inherits the core of the thread that starts it.
        core_affinity::get_core_ids().map(|cores| core_affinity::set_for_current(cores[0]));
        for _ in 0..20 {
            let mut server = Server::cache(TWO);
            server.signal("-STOP");
            let mut client = server.connect();
            client.send(&encode(&["PING"]));
            server.signal("-TERM");
            server.signal("-CONT");
            assert_eq!((client.read().text(), client.try_read()), ("PONG".to_owned(), None));
            assert!(server.process.wait().expect("its end").success());
        }
    };
    std::thread::spawn(rounds).join().expect("each round ends well");
}

/// A client that never reads does not keep the server from ending.
#[test]
fn a_stuck_client_does_not_prevent_the_end() {
    let mut server = Server::cache(TWO);
    let mut client = server.connect();
    client.run_args(&["SET", "big", &"x".repeat(5_000_000)]);
    let get = encode(&["GET", "big"]);
    (0..20).for_each(|_| client.send(&get));
    assert!(client.hears_within(std::time::Duration::from_secs(30)));
    server.signal("-TERM");
    assert!(server.process.wait().expect("its end").success());
}

/// A long reply that is given in pieces, and what stands behind it, are whole.
#[test]
fn a_signal_waits_for_a_long_reply() {
    let mut server = Server::cache(TWO);
    let mut client = server.connect();
    let keys: Vec<_> = (0..100).map(|key| format!("key{key}")).collect();
    keys.iter().for_each(|key| _ = client.run_args(&["SET", key, &"x".repeat(1 << 20)]));
    let ask = encode(&[&["MGET".to_owned()], &keys[..]].concat());
    client.send(&[&ask[..], &encode(&["PING"]), &ask].concat());
    assert!(client.hears_within(std::time::Duration::from_secs(30)));
    server.signal("-TERM");
    let replies = client.read_to_end();
    assert_eq!((replies.len(), replies[0].elements().len()), (3, keys.len()));
    assert!(replies[0] == replies[2]);
    assert!(server.process.wait().expect("its end").success());
}
