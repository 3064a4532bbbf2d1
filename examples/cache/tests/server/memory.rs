//! What memory is used for, and that it goes back to the system.
#![cfg(target_os = "linux")] // Only Linux says what memory a process has.

use super::TWO;
use super::support::Server;
use super::support::client::{Client, Value, encode};
use super::time::wait_for;

/// Sets so many keys to values of a length, and lets them expire together.
fn burst(client: &mut Client, keys: usize, len: usize) {
    let value = "v".repeat(len);
    for from in (0..keys).step_by(100) {
        let set = |key| encode(&["SET", &format!("burst{key}"), &value]);
        client.send(&(from..from + 100).flat_map(set).collect::<Vec<_>>());
        (0..100).for_each(|_| assert_eq!(client.read().text(), "OK"));
    }
    let soon = |key| encode(&["PEXPIRE", &format!("burst{key}"), "300"]);
    client.send(&(0..keys).flat_map(soon).collect::<Vec<_>>());
    (0..keys).for_each(|_| assert_eq!(client.read(), Value::Integer(1)));
}

/// Buffers of values are used again: the kernel need not clear 16 pages for each request.
#[test]
fn great_values_cost_few_page_faults() {
    for threads in ["1", "3"] {
        let (server, value) = (Server::cache(&["--threads", threads]), "x".repeat(64 * 1024));
        let mut client = server.connect();
        let mut requests = |number: usize| {
            for key in (0..number).map(|number| format!("key{}", number % 10)) {
                assert_eq!(client.run_args(&["SET", &key, &value]).text(), "OK");
                assert_eq!(client.run_args(&["GET", &key]), Value::bulk(&value));
            }
        };
        requests(20);
        let before = server.page_faults();
        requests(500);
        let faults = server.page_faults() - before;
        assert!(faults < 4 * 1_000, "{faults} page faults of 1,000 requests with {threads} threads");
    }
}

/// After a burst, memory goes back although other clients keep the threads busy.
#[test]
fn memory_goes_back_while_others_go_on() {
    let server = Server::cache(TWO);
    let (mut client, mut other) = (server.connect(), server.connect());
    let before = server.memory();
    burst(&mut client, 50_000, 400);
    let with_keys = server.peak() - before;
    assert!(with_keys > 20 << 20, "{with_keys} bytes");
    wait_for(|| {
        (0..100).for_each(|key| _ = other.run(&format!("GET other{key}")));
        server.memory().saturating_sub(before) < with_keys / 5
    });
}

/// So does what great values and replies have taken, once nobody sends anything.
#[test]
fn memory_of_great_values_goes_back() {
    for threads in ["1", "3"] {
        let server = Server::cache(&["--threads", threads]);
        let mut client = server.connect();
        let before = server.memory();
        burst(&mut client, 1_000, 100_000);
        (0..50).for_each(|_| _ = client.run("GET burst1"));
        assert!(server.peak() - before > 90 << 20);
        wait_for(|| server.memory().saturating_sub(before) < 12 << 20);
    }
}

/// The replies to a transaction are bounded: a command that only reads gets an error then.
#[test]
fn replies_to_a_transaction_are_bounded() {
    for threads in ["1", "3"] {
        let server = Server::cache(&["--threads", threads]);
        let mut client = server.connect();
        client.run_args(&[b"SET", &b"key"[..], &vec![b'x'; 16 << 20]]);
        client.send(&[&b"MULTI\r\n"[..], &b"GET key\r\n".repeat(100), b"INCR n\r\nEXEC\r\n"].concat());
        (0..102).for_each(|_| _ = client.read());
        let replies = client.read();
        let is_refused =
            |it: &&Value| matches!(it, Value::Error(text) if text.contains("longer than 536870912"));
        assert_eq!(replies.elements().iter().filter(is_refused).count(), 100 - 32);
        assert_eq!(replies.elements().last(), Some(&Value::Integer(1)), "what writes is done");
        let peak = server.peak();
        println!("{threads} threads: a peak of {} MiB", peak >> 20);
        assert!(peak < 2 << 30, "{} MiB", peak >> 20);
    }
}
