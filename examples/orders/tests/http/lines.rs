//! What lines of orders and payments are answered, and what becomes of the orders.

use super::support::{Directory, Server, order, payment, until};
use super::{HOUR, names};

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
    let name = "item must have 1 to 64 bytes of visible text";
    let cases = [
        (line("\"quantitty\":2,\"amount_cents\":5"), "7", "unknown field `quantitty`"),
        (line("\"quantity\":2"), "7", "missing field `amount_cents`"),
        (line("\"quantity\":1,\"quantity\":2,\"amount_cents\":5"), "7", "duplicate field `quantity`"),
        (line("\"quantity\":1.5,\"amount_cents\":5"), "7", "floating point `1.5`, expected u32"),
        (line("\"quantity\":0,\"amount_cents\":5"), "7", "quantity must be at least 1"),
        (line("\"quantity\":1,\"amount_cents\":-1"), "7", "integer `-1`, expected u64"),
        (
            line("\"quantity\":1,\"amount_cents\":1000000000001"),
            "7",
            "amount_cents must be at most 1000000000000",
        ),
        (line(&controls), "7", "invalid type: string"),
        ("nonsense\n".into(), "null", "no JSON object"),
        ("[77,\"item-7\",1,5]\n".into(), "null", "no JSON object"),
        ("{\"order_id\":\"A-7\"}\n".into(), "\"A-7\"", "string \"A-7\", expected u64"),
        ("{\"order_id\":-1}\n".into(), "-1", "integer `-1`, expected u64"),
        (order(8, ""), "8", name),
        (order(8, "a b"), "8", name),
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
        assert!(said.contains(reason) && said.len() < 400, "{said}");
    }
    let long = format!("{{\"order_id\":\"{}\"}}\n", "x".repeat(500_000));
    let answer = server.post("/orders", &long).lines().remove(0);
    assert_eq!(answer["order_id"], format!("{}...", "x".repeat(100)));
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

/// Whatever a body is made of, each of its lines that is not blank has an answer.
#[test]
fn lines_of_any_words_are_answered() {
    const WORDS: [&[u8]; 32] = [
        b"{\"order_id\":1,\"item\":\"nut\",\"quantity\":2,\"amount_cents\":1999}\n",
        b"{\"payment_id\":\"p\",\"order_id\":1,\"amount_cents\":1999}\n",
        b"{",
        b"}",
        b"}\n",
        b"\n",
        b",",
        b":",
        b"[",
        b"]",
        b" ",
        b"\r\n",
        b"\"",
        b"-1",
        b"1.5",
        b"1e3",
        b"null",
        b"\0",
        b"\"order_id\":",
        b"\"item\":",
        b"\"quantity\":",
        b"\"payment_id\":",
        b"\"quantitty\":1",
        b"\xff",
        b"\xc3",
        b"18446744073709551616",
        b"\"\\ud800\"",
        b"\"\\u0000\"",
        b"\"\\u200b\"",
        b"\xef\xbb\xbf",
        b"\"a b\"",
        b"true",
    ];
    let directory = Directory::new("any-words");
    let server = Server::start(directory.path(), &HOUR);
    let mut client = server.connect();
    let mut random = fastrand::Rng::with_seed(7);
    for case in 0..2_000 {
        let body: Vec<u8> =
            (0..random.usize(..12)).flat_map(|_| WORDS[random.usize(..WORDS.len())].to_vec()).collect();
        let path = ["/orders", "/payments"][case % 2];
        let answer = client.send("POST", path, &[], &body).expect("an answer");
        let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        assert_eq!((answer.status, answer.lines().len()), (200, lines), "{}", body.escape_ascii());
        for line in answer.lines() {
            let is_invalid = line["status"] == "invalid";
            assert!(line["status"].is_string() && is_invalid == line["error"].is_string(), "{line}");
        }
    }
    assert_eq!(server.get("/healthz").status, 200);
}
