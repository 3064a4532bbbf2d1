//! What stands in the file of the store that the store has not written: blank files, pages and records that
//! are damaged, stores of other versions. And the copies that make up for it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redb::ReadableTable;
use support::{Client, Directory, PATIENCE, PROGRAM, Server, order, payment};

const HOUR: [&str; 2] = ["--check-after", "1h"];
const PAGE: usize = 4_096;

fn file(directory: &Path) -> PathBuf {
    directory.join("orders.redb")
}

fn program(args: &[&str], paths: &[&Path]) -> Output {
    Command::new(PROGRAM).args(args).args(paths).output().expect("the program starts")
}

/// What `serve` says that does not start.
fn refusal(directory: &Path) -> String {
    let refused = program(&["serve", "--listen", "127.0.0.1:0", "--data"], &[directory]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && refused.stdout.is_empty(), "{refused:?}");
    assert!(said.contains("20") && said.contains("Z error: "), "the time stands before it: {said}");
    said
}

/// A store with nine orders, of which 8 and 9 have ended, and two payments.
fn small(directory: &Path) {
    let server = Server::start(directory, &HOUR);
    let orders = (1..=9).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).statuses(), vec!["placed"; 9]);
    let payments = [payment("a", 8, 1999), payment("b", 9, 1999), payment("c", 7, 5)].concat();
    assert_eq!(server.post("/payments", &payments).statuses(), vec!["counted"; 3]);
    assert_eq!(server.terminate(), Some(0));
}

fn change(directory: &Path, work: impl FnOnce(&redb::WriteTransaction)) {
    let database = redb::Database::open(file(directory)).expect("a store");
    let transaction = database.begin_write().expect("a transaction");
    work(&transaction);
    transaction.commit().expect("a commit");
}

const fn table(name: &str) -> redb::TableDefinition<'_, &'static [u8], &'static [u8]> {
    redb::TableDefinition::new(name)
}

/// Flips a bit in the value whose key ends with a number.
fn flip(directory: &Path, name: &str, number: u64, bit: usize) {
    change(directory, |transaction| {
        let mut table = transaction.open_table(table(name)).expect("a table");
        let entries = table.iter().expect("its records").map(|entry| {
            let (key, value) = entry.expect("a record");
            (key.value().to_vec(), value.value().to_vec())
        });
        let found = entries.filter(|(key, _)| key.ends_with(&number.to_be_bytes())).collect::<Vec<_>>();
        let [(key, mut value)] = found.try_into().expect("one record");
        value[bit / 8] ^= 1 << (bit % 8);
        table.insert(&key[..], &value[..]).expect("it is replaced");
    });
}

/// A file that is there is never made anew, whatever it holds; a directory without one says that it is new.
#[test]
fn a_file_that_is_no_store_is_refused_and_stays() {
    let directory = Directory::new("blank");
    let path = file(directory.path());
    let blank = [vec![], vec![0; 5], vec![0; 1 << 20], [vec![0; 9], vec![7; 300], vec![0; 100_000]].concat()];
    for other in blank.into_iter().chain([b"shopping list".to_vec(), [vec![0; PAGE], vec![7]].concat()]) {
        fs::write(&path, &other).expect("a file");
        let said = refusal(directory.path());
        assert!(said.contains("no store of orders") && said.contains("move it away"), "{said}");
        assert_eq!(program(&["check"], &[&path]).status.code(), Some(2));
        assert!(fs::read(&path).is_ok_and(|now| now == other), "nothing is thrown away");
    }
    fs::remove_file(path).expect("it is moved away");
    let log = directory.path().join("log");
    let mut command = Command::new(PROGRAM);
    command.stderr(fs::File::create(&log).expect("a file"));
    drop(Server::launch(command, directory.path(), &HOUR));
    let said = fs::read_to_string(log).expect("a log");
    assert!(said.contains("the shop begins without orders") && said.contains('Z'), "{said}");
}

/// Values without checksums, which no version that was published has written, and tables of another program.
#[test]
fn a_store_of_another_version_is_refused() {
    let directory = Directory::new("version");
    small(directory.path());
    change(directory.path(), |transaction| {
        transaction.open_table(table("meta")).expect("a table").remove(&b"format"[..]).expect("a removal");
    });
    assert!(refusal(directory.path()).contains("another version"));
    change(directory.path(), |transaction| {
        assert!(transaction.delete_table(table("meta")).expect("a removal"));
    });
    assert!(refusal(directory.path()).contains("another version"));
    assert_eq!(program(&["check"], &[directory.path()]).status.code(), Some(2));
}

/// No bit of a record may be flipped and served.
#[test]
fn a_flipped_bit_is_not_served() {
    let directory = Directory::new("bit");
    small(directory.path());
    // The amount begins at byte 9 of a pending order and at byte 26 of one that has ended.
    flip(directory.path(), "open", 3, 8 * 9);
    flip(directory.path(), "ended", 8, 8 * 26);
    flip(directory.path(), "outcomes", 1, 8 * 2);
    change(directory.path(), |transaction| {
        let mut payments = transaction.open_table(table("payments")).expect("a table");
        let mut value = payments.get(&b"c"[..]).expect("a look-up").expect("a payment").value().to_vec();
        value[9] ^= 1;
        payments.insert(&b"c"[..], &value[..]).expect("it is replaced");
    });
    let checked = program(&["check"], &[directory.path()]);
    let report = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{report}");
    for found in ["pending order is damaged: 3", "has ended is damaged: 8", "payment is damaged"] {
        assert!(report.contains(found), "{found} in {report}");
    }
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!((server.get("/orders/3").status, server.get("/orders/8").status), (500, 500));
    assert_eq!(
        server.post("/orders", &[order(3, "nut"), order(8, "nut")].concat()).statuses(),
        ["invalid"; 2]
    );
    let paid = [payment("d", 3, 1999), payment("c", 7, 5), payment("e", 8, 1), payment("f", 7, 6)].concat();
    let paid = server.post("/payments", &paid);
    assert_eq!(paid.statuses(), ["invalid", "invalid", "late", "counted"]);
    let said = |line: usize| paid.lines()[line]["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        said(0).contains("pending order is damaged") && said(1).contains("payment is damaged"),
        "{paid:?}"
    );
    assert_eq!(paid.lines()[0]["payment_id"], "d");
    let outcomes = server.get("/outcomes?after=0");
    assert_eq!(outcomes.status, 200);
    let lines = outcomes.lines();
    assert_eq!((lines.len(), lines[0]["seq"].as_u64(), lines[1]["order_id"].as_u64()), (2, Some(1), Some(9)));
    assert!(lines[0]["error"].as_str().is_some_and(|text| text.contains("damaged")), "{lines:?}");
}

/// Without these records the server cannot go on.
#[test]
fn a_start_without_its_sums_names_a_copy() {
    let directory = Directory::new("sums");
    for (name, number) in [("sold", None), ("reserved", None), ("meta", Some(&b"now"[..]))] {
        small(directory.path());
        change(directory.path(), |transaction| {
            let mut table = transaction.open_table(table(name)).expect("a table");
            table.insert(number.unwrap_or(b"nut"), &b"damaged"[..]).expect("it is replaced");
        });
        let said = refusal(directory.path());
        assert!(said.contains("is damaged") && said.contains("a whole copy in its place"), "{name}: {said}");
        assert_eq!(program(&["check"], &[directory.path()]).status.code(), Some(1), "{name}");
        fs::remove_file(file(directory.path())).expect("it is removed");
    }
}

/// Each page in turn is overwritten: the server starts or says why not; answers, or ends and says why. It says
/// it in a sentence, and never with a panic.
#[test]
fn a_damaged_page_is_a_sentence() {
    let (directory, broken) = (Directory::new("pages"), Directory::new("broken"));
    small(directory.path());
    let image = fs::read(file(directory.path())).expect("a file");
    let (mut refused, mut ended, mut found) = (0, 0, 0);
    for page in 0..image.len() / PAGE {
        let mut damaged = image.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        fs::write(file(broken.path()), &damaged).expect("a file");
        let checked = program(&["check"], &[broken.path()]).status.code();
        assert!(fs::read(file(broken.path())).is_ok_and(|now| now == damaged), "a check changes nothing");
        let (code, said) = live(broken.path());
        assert!(!said.contains("panicked"), "page {page}: {said}");
        match code {
            None => {}
            Some(2) if said.lines().count() == 1 => refused += 1,
            Some(2) => ended += 1,
            _ => panic!("page {page}: {code:?}, {said}"),
        }
        if code.is_some() || said.contains("is damaged") {
            let sentence = said.contains("a whole copy in its place") || said.contains("no store of orders");
            assert!(sentence && matches!(checked, Some(1 | 2)), "page {page}: {checked:?}, {said}");
            found += 1;
        }
        let _ = fs::remove_file(file(broken.path()));
    }
    println!("{found} of {} pages: {refused} refused, {ended} ended later", image.len() / PAGE);
    assert!(found >= 5, "pages in use were damaged");
}

/// Starts a server, asks it for everything and lets it commit. Returns its exit code, if it has ended, and what
/// it has said.
fn live(directory: &Path) -> (Option<i32>, String) {
    let log = directory.join("log");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--check-after", "1h", "--data"]).arg(directory);
    let command = command.stdout(Stdio::piped()).stderr(fs::File::create(&log).expect("a log"));
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("its output");
    if let Some(address) = line.trim().strip_prefix("listening on ").and_then(|text| text.parse().ok()) {
        for id in 1..=9 {
            ask(address, "GET", &format!("/orders/{id}"), "");
        }
        ask(address, "GET", "/outcomes?after=0", "");
        ask(address, "POST", "/orders", &[order(1, "nut"), order(20, "nut"), order(21, "bolt")].concat());
        ask(address, "POST", "/payments", &[payment("a", 8, 1999), payment("g", 20, 1999)].concat());
        // A failed commit ends the program, which may take it a moment.
        let end = Instant::now() + Duration::from_millis(300);
        while child.try_wait().is_ok_and(|code| code.is_none()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    } else {
        let end = Instant::now() + PATIENCE;
        while child.try_wait().is_ok_and(|code| code.is_none()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let code = child.try_wait().expect("a child").map(|status| status.code().unwrap_or(-1));
    let _ = child.kill();
    let _ = child.wait();
    (code, fs::read_to_string(log).expect("a log"))
}

/// A request whose answer may be an error, or missing.
fn ask(address: std::net::SocketAddr, method: &str, path: &str, body: &str) {
    if let Ok(mut client) = Client::connect(address) {
        let _ = client.send(method, path, &[], body.as_bytes());
    }
}

/// A copy that is made under load is whole, has all that was answered before, and a server goes on with it.
#[test]
fn copies_under_load_are_whole() {
    let (directory, copies) = (Directory::new("loaded"), Directory::new("copies"));
    let server = Server::start(directory.path(), &HOUR);
    let (over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.connect();
            for first in (1..).step_by(100).take_while(|_| !over.load(Ordering::SeqCst)) {
                let orders =
                    (first..first + 100).map(|id| order(id, &format!("item-{id}"))).collect::<String>();
                let placed = client.send("POST", "/orders", &[], orders.as_bytes()).expect("an answer");
                assert_eq!(placed.statuses(), vec!["placed"; 100]);
                answered.store(first + 99, Ordering::SeqCst);
                let paid = (first..first + 50).map(|id| payment(&format!("p-{id}"), id, 1999));
                let paid = client.send("POST", "/payments", &[], paid.collect::<String>().as_bytes());
                assert_eq!(paid.expect("an answer").statuses(), vec!["counted"; 50]);
            }
        });
        for number in 0..8 {
            let before = answered.load(Ordering::SeqCst);
            let copied = server.post("/copy", "");
            assert_eq!(copied.status, 200, "{copied:?}");
            assert_eq!(copied.json()["damaged"], 0);
            let place = copies.path().join(number.to_string());
            fs::create_dir(&place).expect("a directory");
            fs::rename(copied.json()["file"].as_str().expect("a path"), file(&place)).expect("it is moved");
            let checked = program(&["check"], &[&place]);
            assert_eq!(checked.status.code(), Some(0), "{checked:?}");
            let copy = Server::start(&place, &HOUR);
            if before > 0 {
                assert_eq!(
                    copy.get(&format!("/orders/{before}")).status,
                    200,
                    "it was answered before the copy"
                );
                assert_eq!(
                    copy.post("/orders", &order(before, &format!("item-{before}"))).statuses(),
                    ["duplicate"]
                );
            }
            assert_eq!(copy.post("/orders", &order(u64::MAX, "nut")).statuses(), ["placed"], "it goes on");
        }
        over.store(true, Ordering::SeqCst);
    });
    assert_eq!(server.get("/copy").status, 405);
}

/// The subcommand leaves the file alone, and refuses one that a server has open. A copy by `cp` is one if no server
/// has it open.
#[test]
fn a_store_is_checked_and_copied_without_a_server() {
    let directory = Directory::new("copied");
    let server = Server::start(directory.path(), &HOUR);
    let orders = (1..=2_000).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).status, 200);
    let to = directory.path().join("to");
    let refused = program(&["check"], &[directory.path()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("another process has it open"), "{said}");
    // It is not closed in order.
    server.kill();
    let before = fs::read(file(directory.path())).expect("a file");
    let checked = program(&["check"], &[&file(directory.path())]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.starts_with("the store is whole: 2000 pending"), "{checked:?}");
    assert!(fs::read(file(directory.path())).is_ok_and(|now| now == before), "nothing is changed");
    assert_eq!(fs::read_dir(directory.path()).map(Iterator::count).ok(), Some(1), "nothing is left");
    fs::copy(file(directory.path()), &to).expect("a copy");
    fs::rename(to, file(directory.path())).expect("it is put back");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.metric("orders_pending"), 2_000.0);
    assert_eq!(server.get("/stock/nut").json()["reserved"], 4_000);
}
