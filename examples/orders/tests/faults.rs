//! What the disk and the clock may do to `serve`: no room, a clock that is set back. `kills.rs` has
//! the crashes, `torn.rs` writes that are torn.

mod support;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::{Directory, PROGRAM, Server, order, until};

const HOUR: [&str; 2] = ["--check-after", "1h"];

/// The process may write files up to a size, as if the disk ended there. Requests are refused, none
/// is half there; once there is room, the same process goes on.
#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let directory = Directory::new("disk");
    let data = directory.path().join("data");
    let mut limited = Command::new("prlimit");
    limited.args(["--fsize=8388608:unlimited", "env", "--ignore-signal=XFSZ", PROGRAM]);
    let server = Server::launch(limited, &data, &HOUR);
    server.wait_until_ready();
    let next = read_beside(&server, || fill(&server));
    // It is not healthy until there is room, and answers those who read.
    for _ in 0..100 {
        let health = server.get("/healthz");
        assert!(health.status == 503 && health.text().contains("the disk has no room"), "{health:?}");
        assert_eq!(server.get("/orders/1").json()["state"], "pending");
        assert_eq!(server.post("/orders", &order(next, "x")).status, 503);
        std::thread::sleep(Duration::from_millis(20));
    }
    let freed =
        Command::new("prlimit").args(["--fsize=unlimited", "--pid", &server.pid().to_string()]).status();
    assert!(freed.is_ok_and(|status| status.success()));
    server.wait_until_ready();
    let refused = (next..next + 5_000).map(|id| order(id, "x")).collect::<String>();
    let mut answer = server.post("/orders", &refused);
    until("the server takes orders again", || {
        answer = server.post("/orders", &refused);
        answer.status == 200
    });
    let statuses = answer.statuses();
    assert!(
        statuses.iter().all(|status| *status == statuses[0]),
        "the refused request is there whole or not at all"
    );
    assert_eq!(server.metric("orders_pending"), (next + 4_999) as f64);
    for id in [1, next / 2, next - 1, next] {
        assert_eq!(server.get(&format!("/orders/{id}")).json()["state"], "pending");
    }
}

/// Reads what is there all the while, and expects an answer to each request: it is 503 while the
/// store is opened again.
fn read_beside<R>(server: &Server, work: impl FnOnce() -> R) -> R {
    assert_eq!(server.post("/orders", &order(1, "a-name-of-some-length-for-a-large-record")).status, 200);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = ["/orders/1", "/stock/nut", "/outcomes"].map(|path| {
            let over = &over;
            scope.spawn(move || {
                let mut client = server.connect();
                while !over.load(Ordering::SeqCst) {
                    let answer = client.send("GET", path, &[], b"").expect("an answer");
                    assert!(matches!(answer.status, 200 | 503), "{path}: {answer:?}");
                }
            })
        });
        let result = work();
        std::thread::sleep(Duration::from_secs(1));
        over.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().expect("every reader is answered"));
        result
    })
}

/// Places orders until the disk is full. Returns the first id that is not placed.
fn fill(server: &Server) -> u64 {
    let mut next = 1;
    loop {
        let lines = (next..next + 5_000)
            .map(|id| order(id, "a-name-of-some-length-for-a-large-record"))
            .collect::<String>();
        let answer = server.post("/orders", &lines);
        if answer.status != 200 {
            assert_eq!(answer.status, 503, "{answer:?}");
            return next;
        }
        assert!(answer.statuses().iter().all(|status| status == "placed" || status == "duplicate"));
        next += 5_000;
        assert!(next < 5_000_000, "the limit is never met");
    }
}

/// Without room at its first start the program leaves nothing that a later start cannot open.
#[test]
fn a_first_start_on_a_full_disk_can_be_repeated() {
    let directory = Directory::new("first");
    let data = directory.path().join("data");
    for size in [0, 4_096, 100_000, 1_000_000] {
        let mut limited = Command::new("prlimit");
        let limit = format!("--fsize={size}:unlimited");
        limited.args([&limit, "env", "--ignore-signal=XFSZ", PROGRAM]);
        let server = Server::launch(limited, &data, &HOUR);
        std::thread::sleep(Duration::from_millis(700));
        server.kill();
    }
    let server = Server::start(&data, &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), ["placed"]);
}

/// The library with which `faketime` sets the clocks of a program.
fn faketime() -> String {
    let preload = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output();
    String::from_utf8(preload.expect("faketime starts").stdout).expect("text").trim().to_owned()
}

/// The wall clock goes back by an hour while orders are pending, and by another one over each
/// restart, with the kill about when checks fall due. Each check is made once, soon after its time.
#[test]
fn a_clock_that_is_set_back_again_and_again_delays_no_check() {
    let (directory, library) = (Directory::new("clock-again"), faketime());
    let clock = directory.path().join("clock");
    let set = |offset: &str| std::fs::write(&clock, offset).expect("the clock is set");
    let launch = || {
        let mut faked = Command::new("env");
        faked
            .arg(format!("LD_PRELOAD={library}"))
            .arg(format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()));
        faked.args(["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", PROGRAM]);
        let server = Server::launch(faked, &directory.path().join("data"), &["--check-after", "1s"]);
        server.wait_until_ready();
        server
    };
    set("+0");
    let mut server = launch();
    for round in 1..=4_u64 {
        let orders = (1..=20).map(|id| order(20 * round + id, "nut")).collect::<String>();
        assert_eq!(server.post("/orders", &orders).statuses(), vec!["placed"; 20]);
        let placed = Instant::now();
        set(&format!("-{round}h"));
        if round > 1 {
            let kill_at = Duration::from_millis(990 + 5 * round);
            std::thread::sleep(kill_at.saturating_sub(placed.elapsed()));
            server.kill();
            server = launch();
        }
        until("all are checked", || server.outcomes().len() as u64 == 20 * round);
        let took = placed.elapsed();
        assert!(
            took < Duration::from_secs(30) && took > Duration::from_millis(900),
            "{took:?}, not after an hour"
        );
    }
    let outcomes = server.outcomes();
    let number = |line: &serde_json::Value, field: &str| line[field].as_u64().expect("a number");
    let mut once = outcomes.iter().map(|end| number(end, "order_id")).collect::<Vec<_>>();
    once.sort_unstable();
    assert_eq!(once, (21..=100).collect::<Vec<_>>());
    assert!(outcomes.is_sorted_by_key(|end| number(end, "decided_at_ms")), "times go on");
    for id in once {
        let order = server.get(&format!("/orders/{id}")).json();
        assert!(number(&order, "decided_at_ms") > number(&order, "check_at_ms"), "never early: {order}");
    }
}
