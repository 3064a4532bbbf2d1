//! The program, its routes, methods and token.

use std::fs;
use std::process::Command;

use super::support::{Directory, PROGRAM, Server, order, until};
use super::{HOUR, names};

#[test]
fn the_program_says_its_version_and_what_to_choose() {
    let said = |args: &[&str]| {
        let run = Command::new(PROGRAM).args(args).output().expect("the program starts");
        (run.status.code(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
    };
    assert_eq!(said(&["--version"]), (Some(0), format!("orders {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, choice) = said(&["serve"]);
    assert!(code == Some(2) && choice.contains("--data DIR") && choice.contains("--nats URL"), "{choice}");
    for (args, reason) in [
        (&["--data", "x", "--timeout", "0s"][..], "at least 1ms"),
        (&["--data", "x", "--check-after", "0ms"], "a check comes after 1ms to 8760h"),
        (&["--data", "x", "--check-after", "8761h"], "a check comes after 1ms to 8760h"),
        (&["--data", "x", "--check-after", "18446744073709551616ms"], "--check-after"),
        (&["--data", "x", "--lease", "3s"], "are for --nats"),
        (&["--partitions", "3"], "are for --nats"),
        (&["--nats", "nats://127.0.0.1:9", "--max-pending", "3"], "cannot be used with"),
        (&["--nats", "nats://127.0.0.1:9", "--lease", "0ms"], "a lease has at least 100ms"),
        (&["--nats", "nats://127.0.0.1:9", "--replicas", "0"], "it must be 1, 3 or 5"),
        (&["--nats", "nats://127.0.0.1:9", "--token", ""], "a token has one or more"),
    ] {
        let (code, refusal) = said(&[&["serve"], args].concat());
        assert!(code == Some(2) && refusal.contains(reason), "{args:?}: {refusal}");
    }
}

#[test]
fn every_method_and_target_is_answered() {
    let directory = Directory::new("targets");
    let server = Server::start(directory.path(), &HOUR);
    for (request, status) in [
        ("CONNECT example.org:443", 404),
        ("OPTIONS *", 404),
        ("GET http://elsewhere/healthz", 200),
        ("GET http://elsewhere", 200),
        ("BREW /healthz", 405),
        ("DELETE /orders", 405),
        ("GET /orders", 405),
        ("POST /nothing", 404),
        ("GET /nothing", 404),
        ("GET /outcomes/1", 404),
        ("GET /outcomes?after=x", 400),
        ("GET //", 404),
        ("GET /orders/1", 404),
        ("GET /orders/x", 404),
        ("GET /orders/%00", 404),
        ("GET /stock/", 400),
        ("GET /stock/a%20b", 400),
        ("GET /stock/n%E2%80%8But", 400),
        ("GET /stock/%ff", 400),
    ] {
        let mut client = server.connect();
        client.write(format!("{request} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).expect("it is sent");
        assert_eq!(client.read().map(|answer| answer.status).ok(), Some(status), "{request}");
    }
    let answer = server.post("/healthz", "");
    assert!(answer.status == 405 && answer.head.contains("\r\nallow: get, head\r\n"), "{}", answer.head);
    let stock = server.get("/stock/a%2Fb%25%C3%A9").json();
    assert_eq!((stock["item"].as_str(), stock["sold"].as_u64()), (Some("a/b%é"), Some(0)));
    let mut client = server.connect();
    client.write(b"HEAD /healthz HTTP/1.1\r\nhost: test\r\n\r\n").expect("it is sent");
    assert_eq!(client.read_head().expect("a head").lines().next(), Some("http/1.1 200 ok"));
    assert_eq!(client.send("GET", "/healthz", &[], b"").expect("an answer").status, 200, "without a body");
}

#[test]
fn every_request_needs_the_token() {
    let directory = Directory::new("token");
    let data = directory.path();
    let server = Server::launch(Command::new(PROGRAM), data, &["--token", "s3cret"]);
    let mut client = server.connect();
    assert_eq!(client.send("GET", "/", &[], b"").expect("an answer").status, 200, "the page has no figures");
    let paths = ["/healthz", "/metrics", "/orders/1", "/outcomes", "/stock/x", "/orders", "/nothing"];
    for path in paths {
        for header in [
            "accept: */*",
            "authorization: Bearer s3cre",
            "authorization: Bearer s3crets",
            "authorization: s3cret",
        ] {
            let answer = client.send("GET", path, &[header], b"").expect("an answer");
            assert_eq!(answer.status, 401, "{path}, {header}");
        }
    }
    let token = ["authorization: Bearer s3cret"];
    until("it is ready", || {
        client.send("GET", "/healthz", &token, b"").is_ok_and(|answer| answer.status == 200)
    });
    for token in ["authorization: bearer s3cret", "authorization: BEARER  s3cret"] {
        assert_eq!(client.send("GET", "/healthz", &[token], b"").expect("an answer").status, 200, "{token}");
    }
    let body = order(1, "nut");
    assert_eq!(client.send("POST", "/orders", &[], body.as_bytes()).expect("an answer").status, 401);
    let mut client = server.connect();
    assert_eq!(
        client.send("GET", "/orders/1", &token, b"").expect("an answer").status,
        404,
        "nothing was done"
    );
    assert_eq!(client.send("POST", "/orders", &token, body.as_bytes()).expect("an answer").status, 200);
}

/// Without a token, a page that a browser has from elsewhere may not ask. A name may be made to point here.
#[test]
fn a_foreign_page_may_not_ask() {
    let directory = Directory::new("origin");
    let server = Server::start(directory.path(), &HOUR);
    let body = order(1, "nut");
    let post = |server: &Server, host: &str, headers: &str| {
        let mut client = server.connect();
        let length = body.len();
        let head =
            format!("POST /orders HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n{headers}\r\n");
        client.write(format!("{head}{body}").as_bytes()).expect("it is sent");
        client.read().expect("an answer").status
    };
    for (host, origin) in [
        ("127.0.0.1:8080", "http://evil.example"),
        ("127.0.0.1:8080", "http://127.0.0.1:8081"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080.evil.example"),
        ("127.0.0.1:8080", "null"),
        ("127.0.0.1:8080", ""),
        ("evil.example:8080", "http://evil.example:8080"),
        ("localhost.evil.example", "http://localhost.evil.example"),
    ] {
        assert_eq!(post(&server, host, &format!("origin: {origin}\r\n")), 403, "{host}, {origin}");
    }
    let foreign = ["origin: http://evil.example"];
    for (method, path) in [("GET", "/orders/1"), ("GET", "/healthz"), ("POST", "/payments")] {
        let refused = server.connect().send(method, path, &foreign, b"").expect("an answer");
        assert!(
            refused.status == 403 && refused.text().contains("http://evil.example"),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(server.get("/orders/1").status, 404, "nothing was done");
    for (host, origin) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("localhost:8080", "http://localhost:8080"),
        ("192.0.2.7", "https://192.0.2.7"),
    ] {
        assert_eq!(post(&server, host, &format!("origin: {origin}\r\n")), 200, "{host}, {origin}");
    }
    let data = directory.path().join("token");
    let server = Server::launch(Command::new(PROGRAM), &data, &["--token", "s3cret"]);
    let token = "authorization: Bearer s3cret\r\norigin: http://front.example\r\n";
    assert_eq!(post(&server, "127.0.0.1", token), 200, "its token is what a page elsewhere does not have");
}

#[test]
fn the_token_comes_from_a_file_or_the_environment_and_is_never_empty() {
    let directory = Directory::new("token-file");
    let file = directory.path().join("token");
    fs::write(&file, "s3cret\n").expect("a file");
    let by_file = ["--token-file", file.to_str().expect("a path")];
    let mut by_variable = Command::new(PROGRAM);
    by_variable.env("ORDERS_TOKEN", "s3cret");
    for (number, (program, args)) in
        [(Command::new(PROGRAM), &by_file[..]), (by_variable, &[])].into_iter().enumerate()
    {
        let server = Server::launch(program, &directory.path().join(number.to_string()), args);
        assert_eq!(server.get("/metrics").status, 401);
        let answer = server.connect().send("GET", "/metrics", &["authorization: Bearer s3cret"], b"");
        assert_eq!(answer.expect("an answer").status, 200);
    }
    fs::write(&file, "\n").expect("a file");
    let mut by_variable = Command::new(PROGRAM);
    by_variable.env("ORDERS_TOKEN", "");
    for (mut program, args) in
        [(Command::new(PROGRAM), &["--token", ""][..]), (Command::new(PROGRAM), &by_file), (by_variable, &[])]
    {
        let refused = program.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(directory.path());
        let refused = refused.args(args).output().expect("the program starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && said.contains("a token has one or more"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_signal_ends_it_after_the_last_commit_and_another_process_cannot_share_its_data() {
    let directory = Directory::new("signal");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), names("placed"));
    let second = Command::new(PROGRAM)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path())
        .output()
        .expect("a second program starts");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let third = Command::new(PROGRAM)
        .args(["serve", "--listen", &server.address.to_string(), "--data"])
        .arg(directory.path().join("other"))
        .output()
        .expect("a third program starts");
    let error = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(third.status.code() == Some(2) && error.contains("cannot listen on 127.0.0.1:"), "{error}");
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.get("/orders/1").json()["state"], "pending");
}
