//! What a client may take: sizes, times and connections.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::HOUR;
use super::support::{Client, Directory, PATIENCE, PROGRAM, Server, order};

#[test]
fn a_body_over_the_limit_is_refused_whole() {
    let directory = Directory::new("large");
    let server = Server::start(directory.path(), &HOUR);
    let line = order(1, "nut");
    let body = line.repeat((1 << 20) / line.len() + 1);
    let mut client = server.connect();
    let head = format!("POST /orders HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write(head.as_bytes()).expect("the head is sent");
    // The server may answer before all of the body is sent, and close.
    let _ = client.write(body.as_bytes());
    assert_eq!(client.read().expect("an answer").status, 413);
    assert_eq!(server.get("/orders/1").status, 404);
    let chunked = format!(
        "POST /orders HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let mut client = server.connect();
    let _ = client.write(chunked.as_bytes());
    assert_eq!(client.read().expect("an answer").status, 413);
    assert_eq!(server.get("/orders/1").status, 404);
}

#[test]
fn great_heads_bodies_and_numbers_of_lines_are_refused() {
    let directory = Directory::new("great");
    let server = Server::start(directory.path(), &HOUR);
    let many = "a: b\r\n".repeat(100);
    let long = format!("a: {}\r\n", "b".repeat(20_000));
    for headers in [many, long] {
        let mut client = server.connect();
        let _ = client.write(format!("GET / HTTP/1.1\r\nhost: test\r\n{headers}\r\n").as_bytes());
        assert_eq!(client.read().expect("an answer").status, 431);
    }
    let mut client = server.connect();
    client
        .write(b"POST /orders HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 10000000000\r\n\r\n")
        .expect("it is sent");
    assert_eq!(client.read().expect("an answer").status, 413, "and no invitation to send 10 GB");
    assert_eq!(server.post("/orders", &"x\n".repeat(10_001)).status, 413);
    assert_eq!(server.post("/orders", &"x\n".repeat(10_000)).lines().len(), 10_000);
}

#[test]
fn slow_heads_slow_bodies_and_idle_connections_are_ended() {
    let directory = Directory::new("slow");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--timeout", "300ms"]);
    let mut idle = server.connect();
    assert_eq!(idle.send("GET", "/healthz", &[], b"").expect("an answer").status, 200);
    let mut slow_head = server.connect();
    slow_head.write(b"GET /healthz HTTP/1.1\r\nhost:").expect("a part is sent");
    let mut slow_body = server.connect();
    slow_body
        .write(b"POST /orders HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n{")
        .expect("a part is sent");
    assert_eq!(slow_body.read().expect("an answer").status, 408);
    assert!(closed(&mut slow_head) && closed(&mut idle));
    assert_eq!(server.get("/healthz").status, 200, "others are served");
}

/// Whether the server ends the connection, with an answer or without.
fn closed(client: &mut Client) -> bool {
    match client.read() {
        Ok(answer) => answer.status == 408 && client.read().is_err(),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Requests of a client that never reads, as many as the connection takes.
fn never_reader(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_write_timeout(Some(Duration::from_millis(20))).expect("a time limit");
    let requests = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n".repeat(2_000);
    while stream.write_all(&requests).is_ok() {}
    stream
}

#[test]
fn clients_that_never_read_are_ended() {
    let directory = Directory::new("unread");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--timeout", "300ms"]);
    let mut rude = never_reader(&server);
    thread::sleep(Duration::from_secs(1));
    rude.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let read = io::copy(&mut rude, &mut io::sink());
    let ended = read.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
    assert!(ended, "the server has ended the connection");
}

/// Most systems let a process open 1,024 files, and as many more as it asks for.
#[test]
fn the_server_asks_for_the_files_that_it_needs() {
    let directory = Directory::new("soft-limit");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\"", PROGRAM]);
    let server = Server::launch(shell, directory.path(), &HOUR);
    server.wait_until_ready();
    let held = (0..600).map(|_| server.connect()).collect::<Vec<_>>();
    assert_eq!(server.get("/healthz").status, 200);
    let files = format!("/proc/{}/fd", server.pid());
    assert!(std::fs::read_dir(files).expect("the files").count() > 600);
    drop(held);
}

/// A client for which there is no place waits until another one ends.
#[test]
fn clients_beyond_the_places_wait() {
    let directory = Directory::new("places");
    let args = ["--check-after", "1h", "--max-connections", "10", "--timeout", "2s"];
    let server = Server::start(directory.path(), &args);
    let held = (0..30).map(|_| server.connect()).collect::<Vec<_>>();
    assert_eq!(server.get("/healthz").status, 200, "once those before it are ended, for they are idle");
    drop(held);
}
