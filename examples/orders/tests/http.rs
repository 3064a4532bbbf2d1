//! The surface of `serve`: routes, answers, limits and time limits, over real connections.

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{Client, Directory, Server, order, payment, until};

const HOUR: [&str; 2] = ["--check-after", "1h"];

#[test]
fn orders_and_payments_are_answered_line_by_line() {
    let directory = Directory::new("lines");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--stock", "5"]);
    let body = [order(1, "nut"), order(2, "nut"), order(3, "nut"), order(1, "nut"), "\n".into()].concat();
    let answer = server.post("/orders", &body);
    assert_eq!((answer.status, answer.statuses()), (200, names("placed placed sold_out duplicate")));
    let lines = answer.lines();
    let placed = server.get("/orders/1").json();
    for line in [&lines[0], &lines[3]] {
        assert_eq!((&line["order_id"], &line["check_at_ms"]), (&placed["order_id"], &placed["check_at_ms"]));
    }
    assert!(lines[2]["check_at_ms"].is_null());
    let body = [payment("a", 1, 1999), payment("a", 1, 1999), payment("b", 1, 1), payment("c", 3, 1999)];
    let answer = server.post("/payments", &body.concat());
    assert_eq!(answer.statuses(), names("counted duplicate late unknown_order"));
    assert_eq!(answer.lines()[1]["payment_id"], "a");
    assert_eq!(server.post("/payments", &payment("d", 2, 1)).statuses(), names("counted"));
    assert_eq!(server.post("/orders", "").status, 200, "nothing is nothing");
}

fn names(statuses: &str) -> Vec<String> {
    statuses.split(' ').map(str::to_owned).collect()
}

#[test]
fn invalid_lines_say_why_and_cost_themselves_alone() {
    let directory = Directory::new("invalid");
    let server = Server::start(directory.path(), &HOUR);
    let long = "x".repeat(65);
    let body = [
        "nonsense\n".to_owned(),
        order(1, "nut").replace(":2,", ":0,"),
        order(1, "nut").replace("1999", "-1"),
        order(1, "nut").replace("1999", "1000000000001"),
        order(1, "a b"),
        order(1, ""),
        order(1, &long),
        order(1, "nut"),
    ];
    let lines = server.post("/orders", &body.concat()).lines();
    let reasons = [
        "no JSON object",
        "quantity is 0; it must be a whole number from 1 to 4294967295",
        "-1",
        "1000000000001",
        "a b",
        "item is \"\"",
        &long,
    ];
    for (line, reason) in lines.iter().zip(reasons) {
        assert_eq!(line["status"], "invalid");
        assert!(line["error"].as_str().is_some_and(|error| error.contains(reason)), "{line}: {reason}");
    }
    assert_eq!((&lines[7]["status"], &lines[6]["order_id"]), (&"placed".into(), &1.into()));
    let wrong = server.post("/payments", "{\"payment_id\":\"p\",\"order_id\":1}\n").lines();
    assert_eq!((&wrong[0]["status"], &wrong[0]["payment_id"]), (&"invalid".into(), &"p".into()));
}

#[test]
fn what_is_wrong_is_said_in_a_shops_words_with_the_id_that_was_sent() {
    let directory = Directory::new("words");
    let server = Server::start(directory.path(), &HOUR);
    let many = "\\u0001".repeat(10_000);
    let line = |fields: &str| format!("{{\"order_id\":7,\"item\":\"nut\",{fields}}}\n");
    for (line, id, reason) in [
        (line("\"quantitty\":2,\"amount_cents\":5"), "7", "the field \"quantitty\" is unknown"),
        (line("\"quantity\":2"), "7", "amount_cents is missing"),
        (line("\"quantity\":1,\"quantity\":2,\"amount_cents\":5"), "7", "quantity stands twice"),
        (
            line("\"quantity\":1.5,\"amount_cents\":5"),
            "7",
            "quantity is 1.5; it must be a whole number from 1",
        ),
        (line(&format!("\"quantity\":\"{many}\",\"amount_cents\":5")), "7", "quantity is \"\\u0001"),
        (
            "[77,\"item-7\",1,5]\n".into(),
            "null",
            "[77,\"item-7\",1,5] is no JSON object with the fields order_id",
        ),
        ("{\"order_id\":\"A-7\"}\n".into(), "\"A-7\"", "order_id is \"A-7\"; it must be a whole number"),
        ("{\"order_id\":-1}\n".into(), "-1", "order_id is -1"),
        (order(8, "n\u{200b}ut"), "8", "visible text"),
    ] {
        let answer = server.post("/orders", &line).lines().remove(0);
        let said = answer["error"].as_str().expect("an error");
        assert_eq!(
            (&answer["status"], answer["order_id"].to_string().as_str()),
            (&"invalid".into(), id),
            "{line}"
        );
        assert!(said.contains(reason) && said.len() < 400, "{said}");
    }
    let long = format!("{{\"order_id\":\"{}\"}}\n", "x".repeat(500_000));
    let answer = server.post("/orders", &long).lines().remove(0);
    assert_eq!(answer["order_id"], format!("{}...", "x".repeat(100)));
}

/// An id that comes again is the same order, or payment, only with the same content: while it is
/// pending, after its end, and after a restart.
#[test]
fn the_same_id_with_other_content_is_a_conflict() {
    let directory = Directory::new("conflict");
    let mut server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), ["placed"]);
    assert_eq!(server.post("/payments", &payment("a", 1, 1)).statuses(), ["counted"]);
    let other =
        [order(1, "bolt"), order(1, "nut").replace(":2,", ":3,"), order(1, "nut").replace("1999", "1998")];
    let paid = [payment("a", 1, 2), payment("a", 2, 1)];
    for round in 0..4 {
        assert_eq!(server.post("/orders", &other.concat()).statuses(), ["conflict"; 3], "round {round}");
        assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), ["duplicate"]);
        assert_eq!(server.post("/payments", &paid.concat()).statuses(), ["conflict"; 2]);
        assert_eq!(server.post("/payments", &payment("a", 1, 1)).statuses(), ["duplicate"]);
        if round == 1 {
            // The next round is about an order that has ended.
            assert_eq!(server.post("/orders", &order(2, "nut")).statuses(), ["placed"]);
            assert_eq!(server.post("/payments", &payment("b", 2, 1999)).statuses(), ["counted"]);
            assert_eq!(server.post("/orders", &order(2, "bolt")).statuses(), ["conflict"]);
        }
        server.kill();
        server = Server::start(directory.path(), &HOUR);
        assert!(round < 1 || server.post("/orders", &order(2, "bolt")).statuses() == ["conflict"]);
    }
}

#[test]
fn the_program_says_its_version_and_what_to_choose() {
    let said = |args: &[&str]| {
        let run = Command::new(support::PROGRAM).args(args).output().expect("the program starts");
        (run.status.code(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
    };
    assert_eq!(said(&["--version"]), (Some(0), format!("orders {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, choice) = said(&["serve"]);
    assert!(code == Some(2) && choice.contains("--data DIR") && choice.contains("--nats URL"), "{choice}");
    for (args, reason) in [
        (&["--data", "x", "--timeout", "0s"][..], "at least 1ms"),
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
fn an_order_goes_through_its_states_and_its_stock_follows() {
    let directory = Directory::new("states");
    let server = Server::start(directory.path(), &["--check-after", "1500ms", "--stock", "10"]);
    let body = (1..=4).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &body).statuses(), vec!["placed"; 4]);
    assert_eq!(server.get("/orders/3").json()["state"], "pending");
    let payments =
        [payment("a", 1, 1999), payment("b", 2, 1000), payment("c", 2, 999), payment("d", 3, 1998)];
    assert_eq!(server.post("/payments", &payments.concat()).statuses(), vec!["counted"; 4]);
    let stock = server.get("/stock/nut").json();
    assert_eq!((stock["reserved"].as_u64(), stock["sold"].as_u64()), (Some(6), Some(2)));
    until("all are decided", || server.outcomes().len() == 4);
    let states = (1..=4).map(|id| server.get(&format!("/orders/{id}")).json()).collect::<Vec<_>>();
    let expected = [("paid_early", 1999), ("confirmed", 1999), ("released", 1998), ("released", 0)];
    for (order, (state, paid)) in states.iter().zip(expected) {
        assert_eq!((order["state"].as_str(), order["paid_cents"].as_u64()), (Some(state), Some(paid)));
        let at = |field: &str| order[field].as_u64().expect("a time");
        assert_eq!(at("check_at_ms"), at("placed_at_ms") + 1_500);
        assert!(state == "paid_early" || at("decided_at_ms") >= at("check_at_ms"), "never early: {order}");
    }
    let stock = server.get("/stock/nut").json();
    assert_eq!(
        (stock["stock"].as_u64(), stock["reserved"].as_u64(), stock["sold"].as_u64()),
        (Some(10), Some(0), Some(4))
    );
    let outcomes = server.outcomes();
    assert_eq!(outcomes[0]["order_id"], 1);
    assert!(outcomes.iter().zip(1..).all(|(line, seq)| line["seq"] == seq));
    let page = server.get("/outcomes?after=1&limit=2").lines();
    assert_eq!(page[..], outcomes[1..3]);
    assert_eq!(server.metric("orders_decided_total{state=\"released\"}"), 2.0);
    assert_eq!(server.metric("orders_pending"), 0.0);
}

#[test]
fn what_is_not_there_is_404_and_what_is_not_allowed_is_405() {
    let directory = Directory::new("routes");
    let server = Server::start(directory.path(), &HOUR);
    for path in ["/orders/1", "/orders/x", "/nothing", "/outcomes/1"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    assert_eq!(server.get("/outcomes?after=x").status, 400);
    assert_eq!(server.get("/orders").status, 405);
    let answer = server.post("/healthz", "");
    assert_eq!(answer.status, 405);
    assert!(answer.head.contains("\r\nallow: get, head\r\n"), "{}", answer.head);
    for no_item in ["/stock/", "/stock/a%20b", "/stock/n%E2%80%8But", "/stock/%ff"] {
        assert_eq!(server.get(no_item).status, 400, "{no_item} can have no orders");
    }
    let stock = server.get("/stock/a%2Fb").json();
    assert_eq!((stock["item"].as_str(), stock["sold"].as_u64()), (Some("a/b"), Some(0)));
}

#[test]
fn every_request_needs_the_token() {
    let directory = Directory::new("token");
    let data = directory.path();
    let server = Server::launch(std::process::Command::new(support::PROGRAM), data, &["--token", "s3cret"]);
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

#[test]
fn a_full_server_refuses_whole_requests_and_takes_them_when_there_is_room() {
    let directory = Directory::new("full");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--max-pending", "3"]);
    assert_eq!(server.post("/orders", &[order(1, "a"), order(2, "a")].concat()).status, 200);
    let two = [order(3, "a"), order(4, "a")].concat();
    let refused = server.metric("orders_requests_refused_total");
    let answer = server.post("/orders", &two);
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("\r\nretry-after: "), "{}", answer.head);
    assert_eq!(server.get("/orders/3").status, 404, "nothing is half applied");
    let again = server.post("/orders", &[order(1, "a"), order(2, "a"), order(5, "a")].concat());
    assert_eq!(again.statuses(), names("duplicate duplicate placed"), "what is known needs no room");
    assert_eq!(
        server.post("/payments", &[payment("x", 1, 1999), payment("y", 2, 1999)].concat()).status,
        200
    );
    assert_eq!(server.post("/orders", &two).statuses(), names("placed placed"));
    // Requests that came before the store was open are refused as well.
    assert_eq!(server.metric("orders_requests_refused_total"), refused + 1.0);
}

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
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_signal_ends_it_after_the_last_commit_and_another_process_cannot_share_its_data() {
    let directory = Directory::new("signal");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), names("placed"));
    let second = std::process::Command::new(support::PROGRAM)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path())
        .output()
        .expect("a second program starts");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let third = std::process::Command::new(support::PROGRAM)
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

#[test]
fn the_token_comes_from_a_file_or_the_environment_and_is_never_empty() {
    let directory = Directory::new("token-file");
    let file = directory.path().join("token");
    std::fs::write(&file, "s3cret\n").expect("a file");
    let by_file = ["--token-file", file.to_str().expect("a path")];
    let mut by_variable = Command::new(support::PROGRAM);
    by_variable.env("ORDERS_TOKEN", "s3cret");
    for (number, (program, args)) in
        [(Command::new(support::PROGRAM), &by_file[..]), (by_variable, &[])].into_iter().enumerate()
    {
        let server = Server::launch(program, &directory.path().join(number.to_string()), args);
        assert_eq!(server.get("/metrics").status, 401);
        let answer = server.connect().send("GET", "/metrics", &["authorization: Bearer s3cret"], b"");
        assert_eq!(answer.expect("an answer").status, 200);
    }
    std::fs::write(&file, "\n").expect("a file");
    let mut by_variable = Command::new(support::PROGRAM);
    by_variable.env("ORDERS_TOKEN", "");
    for (mut program, args) in [
        (Command::new(support::PROGRAM), &["--token", ""][..]),
        (Command::new(support::PROGRAM), &by_file),
        (by_variable, &[]),
    ] {
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
        ("POST /nothing", 404),
        ("GET /outcomes/1", 404),
        ("GET //", 404),
        ("GET /orders/%00", 404),
    ] {
        let mut client = server.connect();
        client.write(format!("{request} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).expect("it is sent");
        assert_eq!(client.read().map(|answer| answer.status).ok(), Some(status), "{request}");
    }
    let mut client = server.connect();
    client.write(b"HEAD /healthz HTTP/1.1\r\nhost: test\r\n\r\n").expect("it is sent");
    assert_eq!(client.read_head().expect("a head").lines().next(), Some("http/1.1 200 ok"));
    assert_eq!(client.send("GET", "/healthz", &[], b"").expect("an answer").status, 200, "without a body");
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

/// Requests of a client that never reads, as many as the connection takes.
fn never_reader(server: &Server) -> std::net::TcpStream {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(server.address).expect("a connection");
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
    std::thread::sleep(Duration::from_secs(1));
    rude.set_read_timeout(Some(support::PATIENCE)).expect("a time limit");
    let read = std::io::copy(&mut rude, &mut std::io::sink());
    let ended = read.map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |_| true);
    assert!(ended, "the server has ended the connection");
}

/// More rude clients than there are places: those that ask and read are answered all the same.
#[test]
fn rude_clients_cost_each_other_their_places() {
    let directory = Directory::new("rude");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--max-connections", "40"]);
    let mut rude = (0..50).map(|_| never_reader(&server)).collect::<Vec<_>>();
    for _ in 0..50 {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(server.address).expect("a connection");
        stream.write_all(b"POST /orders HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{").expect("a part");
        rude.push(stream);
    }
    for id in 1..20 {
        let begin = Instant::now();
        assert_eq!(server.get("/healthz").status, 200);
        assert_eq!(server.post("/orders", &order(id, "nut")).statuses(), ["placed"]);
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}

/// A burst of requests, each on a connection of its own: more than there are places.
#[test]
fn a_burst_is_answered_whole() {
    let directory = Directory::new("burst");
    let server = Server::start(directory.path(), &HOUR);
    let clients = (1..=900).map(|id| {
        let mut client = server.connect();
        let body = order(id, "nut");
        let head = format!("POST /orders HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len());
        client.write(format!("{head}{body}").as_bytes()).expect("it is sent");
        client
    });
    let mut clients = clients.collect::<Vec<_>>();
    for client in &mut clients {
        assert_eq!(client.read().expect("an answer").status, 200);
    }
}
