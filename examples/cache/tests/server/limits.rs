use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::Command;

use super::TWO;
use super::support::Server;
use super::support::client::{Client, Value, encode};
use super::time::wait_for;

#[test]
fn too_many_clients_are_turned_away() {
    let server = Server::cache(&["--threads", "2", "--max-clients", "3"]);
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.run("PING").text(), "PONG"));
    let refused = Value::Error("ERR max number of clients reached".into());
    assert_eq!(server.connect().read_to_end(), [refused]);
    drop(clients.pop());
    wait_for(|| {
        let mut another = server.connect();
        another.send(b"PING\r\n");
        another.try_read() == Some(Value::Simple("PONG".into()))
    });
}

#[test]
fn a_password_is_asked_for() {
    let server = Server::cache(&["--threads", "2", "--requirepass", "secret"]);
    let mut client = server.connect();
    let refused = Value::Error("NOAUTH Authentication required.".into());
    for line in ["PING", "GET a", "SET a b", "SUBSCRIBE a", "FLUSHALL", "INFO", "CONFIG GET requirepass"] {
        assert_eq!(client.run(line), refused, "{line}");
    }
    assert!(client.run("HELLO 3").text().starts_with("NOAUTH HELLO must be called"));
    assert!(client.run("AUTH wrong").text().starts_with("WRONGPASS"));
    assert!(client.run("AUTH other secret").text().starts_with("WRONGPASS"));
    assert_eq!(client.run("GET a"), refused);
    assert_eq!(client.run("AUTH secret").text(), "OK");
    assert_eq!(client.run("SET a b").text(), "OK");
    let mut another = server.connect();
    assert_eq!(another.run("HELLO 3 AUTH default secret").elements().len(), 14);
    assert_eq!(another.run("CONFIG SET requirepass new").text(), "OK");
    assert!(server.connect().run("AUTH secret").text().starts_with("WRONGPASS"));
    let mut big = server.connect();
    big.send(b"*1\r\n$20000\r\n");
    assert_eq!(big.read_to_end(), [Value::Error("ERR Protocol error: unauthenticated bulk length".into())]);
}

/// There is one database: a client that would share its keys with those of another one is closed.
#[test]
fn another_database_is_the_end() {
    let server = Server::cache(TWO);
    for database in ["1", "-1", "x", "99999999999"] {
        let mut client = server.connect();
        client.send(format!("SELECT {database}\r\nSET a 1\r\n").as_bytes());
        let replies = client.read_to_end();
        assert!(matches!(&replies[..], [Value::Error(_)]), "{replies:?}");
    }
    let mut client = server.connect();
    for line in ["SELECT 0", "MULTI"] {
        assert_eq!(client.run(line).text(), "OK");
    }
    assert_eq!(client.run("SELECT 0").text(), "QUEUED");
    assert_eq!(client.run("SELECT 1").text(), "ERR Command not allowed inside a transaction");
    assert!(client.run("EXEC").text().starts_with("EXECABORT"));
    assert_eq!(client.run("EXISTS a").integer(), 0);
}

/// Nothing is evicted: what grows is refused, what reads or shrinks is not.
#[test]
fn memory_is_limited() {
    let server = Server::cache(&["--threads", "2", "--maxmemory", "2mb"]);
    let mut client = server.connect();
    let value = "x".repeat(1_000);
    let mut stored = 0;
    let refusal = loop {
        match client.run(&format!("SET k{stored} {value}")) {
            Value::Error(text) => break text,
            _ => stored += 1,
        }
        assert!(stored < 3_000, "no limit");
    };
    assert_eq!(refusal, "OOM command not allowed when used memory > 'maxmemory'.");
    assert!(stored > 1_000, "{stored}");
    assert!(client.run("INCR n").text().starts_with("OOM"));
    assert!(client.run("MSET a 1 b 2").text().starts_with("OOM"));
    assert_eq!(client.run("GET k0").text(), value);
    assert_eq!(client.run("DBSIZE").integer(), stored);
    assert_eq!(client.run("EXPIRE k0 100").integer(), 1);
    (0..stored / 2).for_each(|key| assert_eq!(client.run(&format!("DEL k{key}")).integer(), 1));
    assert_eq!(client.run("SET k0 v").text(), "OK");
}

/// What a client has the server keep is counted, and no more when it has gone.
#[test]
fn the_memory_of_clients_is_counted() {
    let server = Server::cache(TWO);
    let (mut client, name) = (server.connect(), "x".repeat(10_000));
    let mut used = || super::observe::info(&client.run("INFO memory").text(), "used_memory").parse::<usize>();
    // The client that asks has a small buffer itself.
    let before = used().expect("a number");
    let mut named = server.connect();
    named.run(&format!("CLIENT SETNAME {name}"));
    wait_for(|| (10_000..20_000).contains(&(used().expect("a number") - before)));
    (0..10).for_each(|number| _ = named.run(&format!("SUBSCRIBE {number}{name}")));
    wait_for(|| (210_000..300_000).contains(&(used().expect("a number") - before)));
    named.run(&format!("UNSUBSCRIBE 1{name}"));
    wait_for(|| (190_000..210_000).contains(&(used().expect("a number") - before)));
    drop(named);
    let mut half = server.connect();
    half.send(&[&b"*100000\r\n"[..], &b"$0\r\n\r\n".repeat(50_000)].concat());
    wait_for(|| used().expect("a number") - before > 50_000 * (6 + 8));
    drop(half);
    wait_for(|| used().expect("a number") - before < 5_000);
}

/// Clients that stop in the middle of a command, or do not read, cost the others nothing.
#[test]
fn stuck_clients_stop_nobody() {
    let server = Server::cache(TWO);
    let mut client = server.connect();
    client.run_args(&["SET", "big", &"x".repeat(100_000)]);
    let half = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100\r\nhalf";
    let stuck: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).expect("a connection");
            stream.write_all(half).expect("sent");
            stream
        })
        .collect();
    let greedy: Vec<_> = (0..20).map(|_| ask_and_never_read(&server)).collect();
    for round in 0..500 {
        assert_eq!(client.run(&format!("SET k{round} v")).text(), "OK");
        assert_eq!(client.run(&format!("GET k{round}")).text(), "v");
    }
    let info = client.run("INFO memory").text();
    let buffers = info.lines().find_map(|line| line.strip_prefix("mem_clients_normal:")).expect("a line");
    let buffers: u64 = buffers.parse().expect("a number");
    assert!(buffers < 400_000_000, "greedy clients take {buffers} bytes");
    drop((stuck, greedy));
    wait_for(|| client.run("INFO clients").text().contains("connected_clients:1\r\n"));
}

/// Asks for 100 MB in small pieces until the server takes no more.
fn ask_and_never_read(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_nonblocking(true).expect("not blocking");
    let get = encode(&["GET", "big"]);
    (0..1_000).take_while(|_| stream.write_all(&get).is_ok()).count();
    stream
}

/// A great value arrives whole, whichever thread has its key, and whatever comes with it.
#[test]
fn great_values_of_all_threads_arrive_whole() {
    let server = Server::cache(&["--threads", "3"]);
    let (mut client, mut other) = (server.connect(), server.connect());
    let value = |key: usize| format!("{key}-").repeat(700_000 + key);
    for key in 0..12 {
        let (name, great, small) = (format!("key{key}"), value(key), key.to_string());
        let requests = [
            vec!["SET", &name, &great],
            vec!["SET", &name, &small, "GET"],
            vec!["SET", &name, &great, "EX", "1000"],
            vec!["STRLEN", &name],
            vec!["SET", &name, &great, "NX"],
            vec!["SET", &name, &great, "NONSENSE"],
            vec!["GETSET", &name, &great],
            vec!["TTL", &name],
            vec!["SETEX", &name, "1000", &great],
            vec!["APPEND", &name, &great],
            vec!["MSET", "a", &great, "b", &great, &name, &great],
            vec!["WATCH", &name],
            vec!["SET", "elsewhere1", &great],
            vec!["SET", "elsewhere2", &great],
            vec!["UNWATCH"],
            vec!["MULTI"],
            vec!["SET", &name, &great],
            vec!["SET", "elsewhere3", &great],
            vec!["EXEC"],
            vec!["MGET", &name, "elsewhere1", "elsewhere2", "elsewhere3", "a", "b"],
            vec!["ECHO", &small],
        ];
        let stream: Vec<_> = requests.iter().flat_map(|request| encode(request)).collect();
        let mut writer = client.stream.try_clone().expect("a writer");
        let written = std::thread::spawn(move || writer.write_all(&stream));
        let mut is = |expected: Value| {
            let (read, text) = (client.read(), format!("{:.60}", format!("{expected:?}")));
            assert!(read == expected, "key {key}: {:.60} in place of {text}", format!("{read:?}"));
        };
        let ok = || Value::Simple("OK".into());
        let len = great.len() as i64;
        [ok(), Value::bulk(&great), ok(), Value::Integer(len), Value::NullBulk].into_iter().for_each(&mut is);
        is(Value::Error("ERR syntax error".into()));
        [Value::bulk(&great), Value::Integer(-1), ok(), Value::Integer(2 * len)]
            .into_iter()
            .for_each(&mut is);
        [ok(), ok(), ok(), ok(), ok(), ok()].into_iter().for_each(&mut is);
        (0..2).for_each(|_| is(Value::Simple("QUEUED".into())));
        is(Value::Array(vec![ok(), ok()]));
        is(Value::Array(vec![Value::bulk(&great); 6]));
        is(Value::bulk(&small));
        written.join().expect("the writer").expect("all is sent");
        assert_eq!(other.run_args(&["GET", &name]), Value::bulk(&great));
    }
    other.run("FLUSHALL");
    let used = |client: &mut Client| -> usize {
        super::observe::info(&client.run("INFO memory").text(), "used_memory").parse().expect("a number")
    };
    super::time::wait_for(|| used(&mut other) < 100_000);
}

/// A client that has sent all its requests and waits for the end gets all replies, and the end.
#[test]
fn a_client_that_sends_nothing_more_is_answered_and_closed() {
    let server = Server::cache(TWO);
    let requests = 14_000;
    for number in 0..10 {
        let mut client = server.connect();
        let stream = b"PING\r\n".repeat(requests);
        // After some traffic the system holds more for the server than it reads at once.
        for _ in 0..number {
            client.send(&stream);
            (0..requests).for_each(|_| assert_eq!(client.read().text(), "PONG"));
        }
        // The server finds the requests and their end at the same time.
        server.signal("-STOP");
        client.send(&stream);
        client.stream.shutdown(Shutdown::Write).expect("shut down");
        server.signal("-CONT");
        assert_eq!(client.read_to_end().len(), requests);
    }
}

/// Settings that clients of all threads change at the same time are the same everywhere afterwards.
#[test]
fn threads_agree_on_settings() {
    let server = Server::cache(&["--threads", "4"]);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for round in 0..500 {
        for (number, client) in clients.iter_mut().enumerate() {
            let (memory, timeout) = (format!("{}", 1_000_000_000 + number), format!("{}", 1_000 + round));
            client.send(&encode(&["CONFIG", "SET", "maxmemory", &memory, "timeout", &timeout]));
        }
        clients.iter_mut().for_each(|client| assert_eq!(client.read().text(), "OK"));
        let settings: Vec<_> =
            clients.iter_mut().map(|client| client.run("CONFIG GET maxm* timeout")).collect();
        assert!(settings.iter().all(|it| *it == settings[0]), "round {round}: {settings:?}");
        assert!(settings[0].elements().contains(&Value::bulk(&format!("{}", 1_000 + round))));
    }
}

/// A flag with a bad value is an error, which names the value and what would do.
#[test]
fn bad_flags_are_refused() {
    let cases = [
        ("--threads", "0", "1..=256"),
        ("--maxmemory", "1xb", "argument must be a memory value"),
        ("--max-clients", "0", "between 1 and 4294967295"),
        ("--idle-timeout", "5", "time unit needed"),
        ("--idle-timeout", "500us", "whole milliseconds"),
        ("--idle-timeout", "2147483648s", "at most 2147483647s"),
        ("--listen", "localhost", "invalid socket address"),
    ];
    for (flag, value, why) in cases {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cache"));
        let output = program.args([flag, value]).output().expect("the program ran");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(text.contains(&format!("'{value}' for '{flag} ")) && text.contains(why), "{text}");
        assert_eq!(output.status.code(), Some(2));
    }
}
