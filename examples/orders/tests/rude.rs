//! Crowds of rude clients beside those that ask and read.
//!
//! ```text
//! cargo test --release -p orders --test rude -- [--never-readers N] [--slow N] [--idle N] \
//!     [--places N] [--seconds S]
//! ```
//!
//! `--never-readers` clients pipeline requests for the page and read nothing, `--slow` clients send a body
//! a byte at a time, `--idle` clients send nothing. Those that the server cuts off come back, up to 1,000
//! a second. For S seconds with them, and as long before and after, other clients place orders and ask for
//! `/healthz`. All of them share the machine with the server.

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::{Directory, PATIENCE, Server, memory, options, order};

const CONNECTIONS: u64 = 8;
const LINES: u64 = 100;
/// The first id of a part.
const BILLION: u64 = 1_000_000_000;
/// What `/healthz` may take.
const HEALTHY: Duration = Duration::from_millis(100);
/// The pause between two questions for it.
const PULSE: Duration = Duration::from_millis(20);
/// The pause between two looks at the rude clients.
const PASS: Duration = Duration::from_millis(200);
/// How many of them may come back in a pass.
const RETURNS: usize = 200;
/// Files that a process needs beside its rude clients.
const OTHER_FILES: usize = 200;

fn main() {
    let [never, slow, idle, seconds] =
        options([("--never-readers", 110), ("--slow", 110), ("--idle", 1_000), ("--seconds", 3)]);
    let files = raise_file_limit();
    let [places] = options([("--places", 800)]);
    let room = files.saturating_sub((never + slow) as usize + OTHER_FILES);
    let kinds = [(Kind::Never, never), (Kind::Slow, slow), (Kind::Idle, idle.min(room as u64))];
    println!(
        "| clients that never read, write slowly, idle; places; files | {never}, {slow}, {}; {places}; {files} |",
        kinds[2].1
    );
    let directory = Directory::new("rude-crowd");
    let places = places.min((files - OTHER_FILES) as u64).to_string();
    let args = ["--check-after", "1h", "--stock", "1000000000", "--max-connections", &places];
    let server = Server::start(directory.path(), &args);
    let crowd = kinds.into_iter().flat_map(|(kind, number)| (0..number).map(move |_| Rude::new(kind)));
    let mut crowd = crowd.collect::<Vec<_>>();
    let (before, _) = ask(&server, 1, seconds);
    let (present, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (beside, mut healths) = thread::scope(|scope| {
        scope.spawn(|| torment(server.address, &mut crowd, &present, &over));
        let _over = Over(&over);
        support::until("all rude clients are there", || present.load(Ordering::SeqCst));
        ask(&server, BILLION, seconds)
    });
    println!("| rude clients that were cut off | {} |", crowd.iter().map(|rude| rude.cut).sum::<u64>());
    println!("| memory of the server, MiB | {:.0} |", memory(server.pid()) / f64::from(1 << 20));
    drop(crowd);
    let (after, _) = ask(&server, 2 * BILLION, seconds);
    println!("| orders a second before, with and after them | {before:.0}, {beside:.0}, {after:.0} |");
    healths.sort();
    let part = |share: f64| healths[(healths.len() as f64 * share) as usize];
    let (times, greatest) = (healths.len(), healths.last().expect("the server was asked"));
    println!(
        "| `/healthz`: times, median, 99th percentile, greatest | {times}, {:?}, {:?}, {greatest:?} |",
        part(0.5),
        part(0.99)
    );
    assert!(part(0.99) <= HEALTHY, "/healthz waits for rude clients");
    // The machine's speed may change from one part to the next.
    assert!(beside >= (before + after) / 2.0 / 2.0, "orders wait for rude clients");
}

/// Sends the crowd away when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Lets this process and its children have as many files as the system allows. Returns that number.
fn raise_file_limit() -> usize {
    let limits = || fs::read_to_string("/proc/self/limits").expect("the limits");
    let limit = |text: String, column: usize| {
        let line =
            text.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit of files");
        line.split_whitespace().nth(column).and_then(|number| number.parse::<usize>().ok()).unwrap_or(1 << 16)
    };
    let most = limit(limits(), 1);
    let pid = std::process::id().to_string();
    // If that is not allowed, or there is no such program, the limit stays.
    let _ = Command::new("prlimit").args([&format!("--nofile={most}:{most}"), "--pid", &pid]).status();
    limit(limits(), 0)
}

/// Places orders on all connections, and asks for `/healthz` on new ones. Returns the orders a second, and the
/// times that `/healthz` took.
fn ask(server: &Server, first: u64, seconds: u64) -> (f64, Vec<Duration>) {
    let (next, begin, length) = (AtomicU64::new(first), Instant::now(), Duration::from_secs(seconds));
    thread::scope(|scope| {
        let healths = scope.spawn(|| {
            let mut healths = Vec::new();
            while begin.elapsed() < length {
                let begin = Instant::now();
                assert_eq!(server.get("/healthz").status, 200);
                healths.push(begin.elapsed());
                thread::sleep(PULSE);
            }
            healths
        });
        for _ in 0..CONNECTIONS {
            scope.spawn(|| place(server, &next, || begin.elapsed() < length));
        }
        let healths = healths.join().expect("healthy answers");
        // Each connection has taken its ids when it ends; the last requests are a small part.
        ((next.load(Ordering::SeqCst) - first) as f64 / begin.elapsed().as_secs_f64(), healths)
    })
}

fn place(server: &Server, next: &AtomicU64, more: impl Fn() -> bool) {
    let mut client = server.connect();
    while more() {
        let first = next.fetch_add(LINES, Ordering::SeqCst);
        let body = (first..first + LINES).map(|id| order(id, &format!("item-{}", id % 1_000)));
        let body = body.collect::<String>();
        let answer = client.send("POST", "/orders", &[], body.as_bytes()).expect("an answer");
        assert_eq!((answer.status, answer.text().matches("\"placed\"").count()), (200, LINES as usize));
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Never,
    Slow,
    Idle,
}

struct Rude {
    kind: Kind,
    stream: Option<TcpStream>,
    cut: u64,
}

/// Keeps the crowd busy, and brings back those that were cut off.
fn torment(server: SocketAddr, crowd: &mut [Rude], present: &AtomicBool, over: &AtomicBool) {
    let mut waiting = crowd.len();
    while !over.load(Ordering::SeqCst) {
        let mut returns = RETURNS;
        for rude in crowd.iter_mut() {
            if rude.stream.is_none() && returns > 0 {
                waiting = waiting.saturating_sub(1);
                returns -= 1;
                rude.come(server);
            }
            rude.go_on();
        }
        present.store(waiting == 0, Ordering::SeqCst);
        thread::sleep(PASS);
    }
}

impl Rude {
    fn new(kind: Kind) -> Self {
        Self { kind, stream: None, cut: 0 }
    }

    fn come(&mut self, server: SocketAddr) {
        let Ok(mut stream) = TcpStream::connect_timeout(&server, PATIENCE) else { return };
        stream.set_nonblocking(true).expect("an option");
        if let Kind::Slow = self.kind {
            let head = b"POST /orders HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";
            let _ = stream.write(head);
        }
        self.stream = Some(stream);
    }

    fn go_on(&mut self) {
        const PAGES: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let Some(stream) = &mut self.stream else { return };
        let done = match self.kind {
            Kind::Never => stream.write(PAGES),
            Kind::Slow => stream.write(b"{"),
            Kind::Idle => stream.read(&mut [0; 1]),
        };
        let is_there = match done {
            Ok(bytes) => bytes > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        if !is_there {
            self.cut += 1;
            self.stream = None;
        }
    }
}
