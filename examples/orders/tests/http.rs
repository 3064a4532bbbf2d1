//! The surface of `serve`: routes, answers, limits and time limits, over real connections.

mod support;

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use support::{Client, Directory, PATIENCE, PROGRAM, Server, order, payment, until};

const HOUR: [&str; 2] = ["--check-after", "1h"];

fn names(statuses: &str) -> Vec<String> {
    statuses.split(' ').map(str::to_owned).collect()
}

/// The exit code of a program that ends at once, and all that it says.
fn said(args: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(PROGRAM).args(args).output().expect("the program starts");
    (run.status.code(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
}

#[test]
fn the_program_says_its_version_and_what_to_choose() {
    assert_eq!(said(&["--version"]), (Some(0), format!("orders {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, choice) = said(&["serve"]);
    assert!(code == Some(2) && choice.contains("--data DIR") && choice.contains("--nats URL"), "{choice}");
    for (args, reason) in [
        (&["--data", "x", "--timeout", "0s"][..], "at least 1ms"),
        (&["--data", "x", "--check-after", "8761h"], "a check comes after 1ms to 8760h"),
        (&["--data", "x", "--lease", "3s"], "are for --nats"),
        (&["--partitions", "3"], "are for --nats"),
        (&["--nats", "nats://127.0.0.1:9", "--in-memory", "3"], "cannot be used with"),
        (&["--nats", "nats://127.0.0.1:9", "--lease", "0ms"], "a lease has at least 100ms"),
        (&["--nats", "nats://127.0.0.1:9", "--replicas", "0"], "it must be 1, 3 or 5"),
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
        ("BREW /healthz", 405),
        ("DELETE /orders", 405),
        ("GET /orders", 405),
        ("POST /nothing", 404),
        ("GET /", 404),
        ("GET /outcomes/1", 404),
        ("GET /outcomes?after=x", 400),
        ("GET /orders/1", 404),
        ("GET /orders/x", 404),
        ("GET /stock/", 400),
        ("GET /stock/a%20b", 400),
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
    let page = ["origin: http://evil.example"];
    let refused = client.send("POST", "/orders", &page, order(1, "nut").as_bytes()).expect("an answer");
    assert_eq!((refused.status, server.get("/orders/1").status), (403, 404), "no page of a browser may ask");
}

#[test]
fn a_signal_ends_it_after_the_last_commit_and_another_process_cannot_share_its_data() {
    let directory = Directory::new("signal");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), names("placed"));
    let data = directory.path().to_str().expect("a path");
    let (code, error) = said(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    assert!(code == Some(2) && error.contains("Z error: "), "{error}");
    let address = server.address.to_string();
    let (code, error) = said(&["serve", "--listen", &address, "--data", &format!("{data}/other")]);
    assert!(code == Some(2) && error.contains("cannot listen on 127.0.0.1:"), "{error}");
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.get("/orders/1").json()["state"], "pending");
}

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

#[test]
fn invalid_lines_say_why_with_the_id_that_was_sent_and_cost_themselves_alone() {
    let directory = Directory::new("invalid");
    let server = Server::start(directory.path(), &HOUR);
    let line = |fields: &str| format!("{{\"order_id\":7,\"item\":\"nut\",{fields}}}\n");
    let controls = format!("\"quantity\":\"{}\",\"amount_cents\":5", "\\u0001".repeat(10_000));
    let name = "a name has 1 to 64 bytes";
    let cases = [
        (line("\"quantitty\":2,\"amount_cents\":5"), "7", "unknown field `quantitty`"),
        (line("\"quantity\":2"), "7", "missing field `amount_cents`"),
        (line("\"quantity\":1.5,\"amount_cents\":5"), "7", "floating point `1.5`, expected u32"),
        (line("\"quantity\":0,\"amount_cents\":5"), "7", "a quantity is at least 1"),
        (line("\"quantity\":1,\"amount_cents\":1000000000001"), "7", "at most 1000000000000"),
        (line(&controls), "7", "invalid type: string"),
        ("nonsense\n".into(), "null", "no JSON object"),
        ("[77,\"item-7\",1,5]\n".into(), "null", "no JSON object"),
        ("\u{1}{\n".into(), "null", "no JSON object"),
        ("{\"order_id\":\"A-7\"}\n".into(), "null", "string \"A-7\", expected u64"),
        (order(8, ""), "8", name),
        (order(8, "n\u{200b}ut"), "8", name),
        (order(8, &"x".repeat(65)), "8", name),
    ];
    let body = cases.iter().map(|(line, ..)| &**line).chain([&*order(1, "nut")]).collect::<String>();
    let answers = server.post("/orders", &body).lines();
    assert_eq!((answers.len(), &answers[cases.len()]["status"]), (cases.len() + 1, &"placed".into()));
    for ((line, id, reason), answer) in cases.iter().zip(answers) {
        let said = answer["error"].as_str().expect("an error");
        let answered = (&answer["status"], answer["order_id"].to_string());
        assert_eq!(answered, (&"invalid".into(), (*id).to_owned()), "{line}");
        assert!(said.contains(reason) && said.chars().count() <= 100, "{said}");
    }
    let wrong = server.post("/payments", "{\"payment_id\":\"p\",\"order_id\":1}\n").lines();
    assert_eq!((&wrong[0]["status"], &wrong[0]["payment_id"]), (&"invalid".into(), &"p".into()));
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
    let units = ["stock", "reserved", "sold"].map(|field| stock[field].as_u64());
    assert_eq!(units, [Some(10), Some(0), Some(4)]);
    let outcomes = server.outcomes();
    assert_eq!(outcomes[0]["order_id"], 1);
    assert!(outcomes.iter().zip(1..).all(|(line, seq)| line["seq"] == seq));
    let page = server.get("/outcomes?after=1&limit=2").lines();
    assert_eq!(page[..], outcomes[1..3]);
    let figures = [
        "orders_decided_total{state=\"released\"}",
        "orders_answered_total{status=\"counted\"}",
        "orders_check_lateness_seconds_count",
        "orders_pending",
    ];
    assert_eq!(figures.map(|name| server.metric(name)), [2.0, 4.0, 3.0, 0.0]);
}

#[test]
fn great_heads_bodies_and_numbers_of_lines_are_refused() {
    let directory = Directory::new("great");
    let server = Server::start(directory.path(), &HOUR);
    for headers in ["a: b\r\n".repeat(100), format!("a: {}\r\n", "b".repeat(20_000))] {
        let mut client = server.connect();
        let _ = client.write(format!("GET / HTTP/1.1\r\nhost: test\r\n{headers}\r\n").as_bytes());
        assert_eq!(client.read().expect("an answer").status, 431);
    }
    let line = order(1, "nut");
    let body = line.repeat((1 << 20) / line.len() + 1);
    let size = body.len();
    // The last one asks whether to send 10 GB.
    for (headers, body) in [
        (format!("content-length: {size}"), body.clone()),
        ("transfer-encoding: chunked".to_owned(), format!("{size:x}\r\n{body}\r\n0\r\n\r\n")),
        ("expect: 100-continue\r\ncontent-length: 10000000000".to_owned(), String::new()),
    ] {
        let mut client = server.connect();
        // The server may answer before all of the body is sent, and close.
        let _ = client
            .write(format!("POST /orders HTTP/1.1\r\nhost: test\r\n{headers}\r\n\r\n{body}").as_bytes());
        assert_eq!(client.read().expect("an answer").status, 413);
    }
    assert_eq!(server.get("/orders/1").status, 404);
    assert_eq!(server.post("/orders", &"x\n".repeat(10_001)).status, 413);
    assert_eq!(server.post("/orders", &"x\n".repeat(10_000)).lines().len(), 10_000);
}

/// Whether the server ends the connection, with an answer or without.
fn closed(client: &mut Client) -> bool {
    match client.read() {
        Ok(answer) => answer.status == 408 && client.read().is_err(),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A client sends requests for as long as they are taken, and never reads. Whether the server has ended the
/// connection when the client wants to read, which would let the server go on.
fn ends_a_client_that_never_reads(server: &Server) -> bool {
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a time limit");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let requests = b"GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n".repeat(2_000);
    let error = loop {
        if let Err(error) = stream.write_all(&requests) {
            break error.kind();
        }
    };
    thread::sleep(Duration::from_secs(2));
    let ended = matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    ended || io::copy(&mut stream, &mut io::sink()).is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
}

#[test]
fn slow_idle_and_rude_clients_are_ended() {
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
    assert!(ends_a_client_that_never_reads(&server));
    assert_eq!(server.get("/healthz").status, 200, "others are served");
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
