//! What the disk, its user and the clock may do to `serve`: no room, other files, a clock that is set
//! back. `kills.rs` has the crashes, `torn.rs` writes that are torn.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use support::{Directory, PROGRAM, Server, order, until};

const HOUR: [&str; 2] = ["--check-after", "1h"];

/// The program, which may write files up to a size, as if the disk ended there.
fn limited(size: u64) -> Command {
    let mut limited = Command::new("prlimit");
    limited.args([&format!("--fsize={size}"), "env", "--ignore-signal=XFSZ", PROGRAM]);
    limited
}

/// A server that does not start, or ends by itself.
fn ended(mut command: Command, directory: &Path) -> Output {
    command.args(["serve", "--listen", "127.0.0.1:0", "--check-after", "1h", "--data"]).arg(directory);
    command.output().expect("the program starts")
}

/// The server ends when the disk is full. Whatever it has answered is there at the next start, and the
/// request that it has not answered is there whole or not at all.
#[test]
fn a_full_disk_ends_the_server_and_loses_nothing() {
    let directory = Directory::new("disk");
    let data = directory.path().join("data");
    let mut server = Server::launch(limited(8 << 20), &data, &HOUR);
    let batch = |first: u64| {
        (first..first + 5_000)
            .map(|id| order(id, "a-name-of-some-length-for-a-large-record"))
            .collect::<String>()
    };
    let mut next = 1;
    let mut client = server.connect();
    while let Ok(answer) = client.send("POST", "/orders", &[], batch(next).as_bytes())
        && answer.status == 200
    {
        assert_eq!(answer.statuses(), vec!["placed"; 5_000]);
        next += 5_000;
    }
    assert_eq!(server.wait(), Some(2), "it ends by itself");
    let server = Server::start(&data, &HOUR);
    let pending = server.metric("orders_pending") as u64;
    assert!(pending == next - 1 || pending == next + 4_999, "{pending} and {next}");
    for id in [1, next / 2, next - 1] {
        assert_eq!(server.get(&format!("/orders/{id}")).json()["state"], "pending");
    }
    assert_eq!(server.post("/orders", &batch(next)).status, 200);
    assert_eq!(server.metric("orders_pending"), (next + 4_999) as f64);
}

/// Without room at its first start the program leaves nothing that a later start cannot open.
#[test]
fn a_first_start_on_a_full_disk_can_be_repeated() {
    let directory = Directory::new("first");
    let data = directory.path().join("data");
    for size in [0, 4_096, 40_000] {
        let said = ended(limited(size), &data);
        assert_eq!(said.status.code(), Some(2), "{said:?}");
    }
    let server = Server::start(&data, &HOUR);
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), ["placed"]);
}

/// A file that is there is never made anew, whatever it holds. A copy of the server's own file, which was
/// killed, is put in its place.
#[test]
fn a_file_that_is_no_store_is_refused_and_a_copy_is_put_in_its_place() {
    let directory = Directory::new("copied");
    let (path, copy) = (directory.path().join("orders.redb"), directory.path().join("copy"));
    let server = Server::start(directory.path(), &HOUR);
    let orders = (1..=2_000).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).status, 200);
    server.kill();
    fs::copy(&path, &copy).expect("a copy");
    let other = directory.path().join("other");
    let database = redb::Database::create(&other).expect("a store of another program");
    let transaction = database.begin_write().expect("a transaction");
    transaction.open_table(redb::TableDefinition::<u64, &str>::new("open")).expect("a table");
    transaction.commit().expect("a commit");
    drop(database);
    let other = fs::read(other).expect("a file");
    for blank in [vec![], vec![0; 1 << 20], b"shopping list".to_vec(), other] {
        fs::write(&path, &blank).expect("a file");
        let said = ended(Command::new(PROGRAM), directory.path());
        assert!(said.status.code() == Some(2) && said.stdout.is_empty(), "{said:?}");
        assert_eq!(fs::metadata(&path).expect("a file").len(), blank.len() as u64, "nothing is thrown away");
    }
    fs::rename(copy, path).expect("it is put back");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.metric("orders_pending"), 2_000.0);
    assert_eq!(server.get("/stock/nut").json()["reserved"], 4_000);
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
    let set = |offset: &str| fs::write(&clock, offset).expect("the clock is set");
    let launch = || {
        let mut faked = Command::new("env");
        faked
            .arg(format!("LD_PRELOAD={library}"))
            .arg(format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()));
        faked.args(["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", PROGRAM]);
        Server::launch(faked, &directory.path().join("data"), &["--check-after", "1s"])
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
