//! What stands in the file of the store that the store has not written: blank files, other
//! programs' tables, damaged pages. And a copy that makes up for it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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

/// A file that is there is never made anew, whatever it holds; a directory without one says that it is new.
#[test]
fn a_file_that_is_no_store_is_refused_and_stays() {
    let directory = Directory::new("blank");
    let path = file(directory.path());
    let blank = [vec![], vec![0; 5], vec![0; 1 << 20], [vec![0; 9], vec![7; 300], vec![0; 100_000]].concat()];
    let other = directory.path().join("other");
    let database = redb::Database::create(&other).expect("a store of another program");
    let transaction = database.begin_write().expect("a transaction");
    let table = redb::TableDefinition::<u64, &str>::new("open");
    transaction.open_table(table).expect("a table");
    transaction.commit().expect("a commit");
    drop(database);
    let others =
        [b"shopping list".to_vec(), [vec![0; PAGE], vec![7]].concat(), fs::read(&other).expect("a file")];
    for other in blank.into_iter().chain(others) {
        fs::write(&path, &other).expect("a file");
        let said = refusal(directory.path());
        assert!(said.contains("no store of orders") && said.contains("Move it away"), "{said}");
        assert_eq!(fs::read(&path).map(|now| now.len()).ok(), Some(other.len()), "nothing is thrown away");
    }
    fs::remove_file(path).expect("it is moved away");
    let log = directory.path().join("log");
    let mut command = Command::new(PROGRAM);
    command.stderr(fs::File::create(&log).expect("a file"));
    drop(Server::launch(command, directory.path(), &HOUR));
    let said = fs::read_to_string(log).expect("a log");
    assert!(said.contains("the shop begins without orders") && said.contains('Z'), "{said}");
}

/// Each page in turn is overwritten: the server starts or says why not; answers, or ends and says
/// why. It says it in a sentence, and never with a panic.
#[test]
fn a_damaged_page_is_a_sentence() {
    let (directory, broken) = (Directory::new("pages"), Directory::new("broken"));
    small(directory.path());
    let image = fs::read(file(directory.path())).expect("a file");
    let (mut refused, mut ended) = (0, 0);
    for page in 0..image.len() / PAGE {
        let mut damaged = image.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        fs::write(file(broken.path()), &damaged).expect("a file");
        let (code, said) = live(broken.path());
        assert!(!said.contains("panicked"), "page {page}: {said}");
        match code {
            None => {}
            Some(2) if said.lines().count() == 1 => refused += 1,
            Some(2) => ended += 1,
            _ => panic!("page {page}: {code:?}, {said}"),
        }
        if code.is_some() || said.contains("is damaged") {
            let sentence = said.contains("put a copy in its place") || said.contains("no store of orders");
            assert!(sentence, "page {page}: {said}");
        }
        let _ = fs::remove_file(file(broken.path()));
    }
    println!("of {} pages: {refused} refused, {ended} ended later", image.len() / PAGE);
    assert!(refused + ended >= 5, "pages in use were damaged: {refused}, {ended}");
}

/// Starts a server, asks it for everything and lets it commit. Returns its exit code, if it has
/// ended, and what it has said.
fn live(directory: &Path) -> (Option<i32>, String) {
    let log = directory.join("log");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--check-after", "1h", "--data"]).arg(directory);
    let command = command.stdout(Stdio::piped()).stderr(fs::File::create(&log).expect("a log"));
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("its output");
    let mut patience = PATIENCE;
    if let Some(address) = line.trim().strip_prefix("listening on ").and_then(|text| text.parse().ok()) {
        for id in 1..=9 {
            ask(address, "GET", &format!("/orders/{id}"), "");
        }
        ask(address, "GET", "/outcomes?after=0", "");
        ask(address, "POST", "/orders", &[order(1, "nut"), order(20, "nut"), order(21, "bolt")].concat());
        ask(address, "POST", "/payments", &[payment("a", 8, 1999), payment("g", 20, 1999)].concat());
        // A failed commit ends the program, which may take it a moment.
        patience = Duration::from_millis(300);
    }
    let end = Instant::now() + patience;
    while child.try_wait().is_ok_and(|code| code.is_none()) && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
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

/// The file of a server that has ended, or was killed, is a copy.
#[test]
fn a_copy_without_a_server_is_put_in_its_place() {
    let directory = Directory::new("copied");
    let server = Server::start(directory.path(), &HOUR);
    let orders = (1..=2_000).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).status, 200);
    server.kill();
    let copy = directory.path().join("copy");
    fs::copy(file(directory.path()), &copy).expect("a copy");
    fs::write(file(directory.path()), "damaged").expect("a file");
    fs::rename(copy, file(directory.path())).expect("it is put back");
    let server = Server::start(directory.path(), &HOUR);
    assert_eq!(server.metric("orders_pending"), 2_000.0);
    assert_eq!(server.get("/stock/nut").json()["reserved"], 4_000);
}
