//! The HTTP side of the example `orders`: a whole server in this process, and requests as bytes over
//! real connections. An input is a sequence of pieces, which go over one connection: requests that are
//! made of known words, each of which must have its answer, or bytes of any kind. Nothing panics,
//! whatever comes back is whole answers with known statuses, and the server stays healthy.

#![no_main]

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;
use std::{env, fs, mem, process, thread};

use libfuzzer_sys::fuzz_target;
use orders::Streams;
use serde_json::Value;

/// How long an answer may take: shorter than the server's own time limit.
const PATIENCE: Duration = Duration::from_secs(20);

static SERVER: LazyLock<SocketAddr> = LazyLock::new(start);

const TARGETS: &[&str] = &[
    "/orders",
    "/payments",
    "/orders",
    "/payments",
    "/orders/1",
    "/orders/18446744073709551615",
    "/orders/x",
    "/stock/nut",
    "/stock/a%2Fb%C3%A9",
    "/stock/%zz",
    "/stock/",
    "/outcomes?after=0&limit=3",
    "/outcomes?after=18446744073709551615",
    "/outcomes?limit=-1",
    "/outcomes",
    "/healthz",
    "/metrics",
    "/",
    "//",
    "*",
    "/nothing",
    "http://a/healthz",
    "http://a",
    "/orders?x",
];

const HEADERS: &[&str] = &[
    "",
    "expect: 100-continue\r\n",
    "connection: close\r\n",
    "authorization: bearer  t \r\n",
    "authorization: Bearer x\r\n",
    "transfer-encoding: chunked\r\n",
    "content-length: 3\r\n",
    "a: \u{fffd}\r\n",
];

const METHODS: &[&str] = &["POST", "POST", "POST", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "PUT", "BREW"];

/// Parts of bodies: whole lines, fields, and what breaks them.
const WORDS: &[&str] = &[
    "{\"order_id\":1,\"item\":\"nut\",\"quantity\":2,\"amount_cents\":1999}\n",
    "{\"order_id\":2,\"item\":\"bolt\",\"quantity\":1,\"amount_cents\":5}\n",
    "{\"payment_id\":\"p\",\"order_id\":1,\"amount_cents\":1999}\n",
    "{\"payment_id\":\"q\",\"order_id\":2,\"amount_cents\":4}\n",
    "{",
    "}",
    "}\n",
    "\n",
    ",",
    ":",
    "[",
    "]",
    " ",
    "\r\n",
    "\"order_id\":",
    "\"item\":",
    "\"quantity\":",
    "\"amount_cents\":",
    "\"payment_id\":",
    "\"quantitty\":1",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "1.5",
    "1e3",
    "4294967295",
    "4294967296",
    "1000000000000",
    "18446744073709551615",
    "18446744073709551616",
    "null",
    "true",
    "\"nut\"",
    "\"\"",
    "\"a b\"",
    "\"\\u200b\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"é\"",
    "\u{feff}",
    "\"",
    "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
];

const STATUSES: &[&str] =
    &["placed", "sold_out", "duplicate", "conflict", "invalid", "counted", "unknown_order", "late"];

/// What the server may say of a request, whatever it is. It is never at fault itself, and never full here.
const CODES: &[u16] = &[100, 200, 400, 401, 404, 405, 413, 414, 431];

/// Inputs between two looks at the server's health.
const LOOK: usize = 16;

fuzz_target!(|data: &[u8]| {
    let mut connection = Connection::open();
    let mut rest = data;
    while let [head, len, after @ ..] = rest {
        let (chosen, left) = after.split_at(usize::from(*len).min(after.len()));
        rest = left;
        let goes_on = if head & 1 == 0 { connection.send(chosen) } else { connection.ask(chosen) };
        if !goes_on {
            break;
        }
    }
    connection.end();
    static INPUTS: AtomicUsize = AtomicUsize::new(0);
    // Ordering: Relaxed; it only counts.
    if INPUTS.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK) {
        assert!(is_healthy(*SERVER), "after {data:?}");
    }
});

/// Starts the server, in a directory that takes little time to sync. It ends with the process.
fn start() -> SocketAddr {
    let memory = ["/dev/shm".into(), env::temp_dir()].into_iter().find(|place| place.is_dir());
    let data = memory.expect("a place for files").join(format!("orders-fuzz-{}", process::id()));
    let _ = fs::remove_dir_all(&data);
    let (lines, first) = mpsc::channel();
    thread::spawn(move || {
        let args = ["orders", "serve", "--listen", "127.0.0.1:0", "--token", "t", "--check-after", "5ms"];
        let args = args.into_iter().map(Into::into).chain(["--data".into(), data.into()]);
        let (mut out, mut err) = (Lines(Vec::new(), lines), io::stderr());
        let code = orders::run(args, &mut Streams { input: &mut io::empty(), out: &mut out, err: &mut err });
        panic!("the server has ended with {code}");
    });
    let line = String::from_utf8(first.recv().expect("the first line")).expect("text");
    let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
    let address = address.unwrap_or_else(|| panic!("{line:?} is no address"));
    while !is_healthy(address) {
        thread::sleep(Duration::from_millis(10));
    }
    address
}

fn is_healthy(server: SocketAddr) -> bool {
    let mut connection = Connection::to(server);
    connection.write(b"GET /healthz HTTP/1.1\r\nauthorization: Bearer t\r\n\r\n").expect("it is sent");
    connection.read(false).expect("an answer").status == 200
}

/// Passes on what is written, at each flush.
struct Lines(Vec<u8>, mpsc::Sender<Vec<u8>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // No receiver is left after the first line.
        let _ = self.1.send(mem::take(&mut self.0));
        Ok(())
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
    /// Bytes of any kind were sent: it is open which of them are requests.
    raw: bool,
}

struct Answer {
    status: u16,
    closes: bool,
    body: Vec<u8>,
}

impl Connection {
    fn open() -> Self {
        Self::to(*SERVER)
    }

    fn to(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).expect("the server accepts a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_nodelay(true).expect("an option");
        Self { stream: BufReader::new(stream), raw: false }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends bytes of any kind. False if the server has ended the connection.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.raw = true;
        self.write(bytes).is_ok()
    }

    /// Sends a request of known words, and checks its answer. False if there can be no further request.
    fn ask(&mut self, words: &[u8]) -> bool {
        let [method, target, header, body @ ..] = words else { return true };
        let (method, target) = (pick(METHODS, *method), pick(TARGETS, *target));
        let header = pick(HEADERS, *header);
        let body = body.iter().map(|&word| pick(WORDS, word)).collect::<String>();
        let mut request = format!("{method} {target} HTTP/1.1\r\nhost: a\r\n{header}");
        let has_token = header.starts_with("authorization");
        request += if has_token { "" } else { "authorization: Bearer t\r\n" };
        if header.starts_with("transfer") || header.starts_with("content") {
            return self.send(format!("{request}\r\n{body}").as_bytes());
        }
        let request = format!("{request}content-length: {}\r\n\r\n{body}", body.len());
        if self.raw {
            return self.send(request.as_bytes());
        }
        self.write(request.as_bytes()).expect("the server goes on with the connection");
        let answer = self.read(method == "HEAD").expect("an answer to a request that is whole");
        check_code(answer.status);
        if answer.status == 200 && method == "POST" {
            check_lines(&body, &answer.body);
        }
        !answer.closes
    }

    /// Reads an answer, past the invitation to send a body.
    fn read(&mut self, to_head: bool) -> io::Result<Answer> {
        loop {
            let (mut answer, length) = self.read_head()?;
            if answer.status != 100 {
                answer.body = vec![0; if to_head { 0 } else { length }];
                self.stream.read_exact(&mut answer.body)?;
                return Ok(answer);
            }
        }
    }

    /// Reads the head of an answer, and the length of its body.
    fn read_head(&mut self) -> io::Result<(Answer, usize)> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        // A client of version 1.0 is answered in its own.
        let rest = ["HTTP/1.1 ", "HTTP/1.0 "].into_iter().find_map(|version| head.strip_prefix(version));
        let status = rest.and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer: {head:?}"));
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let closes = head.contains("\r\nconnection: close\r\n");
        Ok((Answer { status, closes, body: Vec::new() }, length.unwrap_or(0)))
    }

    /// Sends no more. After bytes of any kind, what is left to read is a sequence of answers: of the last one
    /// any part, since the server may end the connection.
    fn end(mut self) {
        if !self.raw || self.stream.get_ref().shutdown(Shutdown::Write).is_err() {
            return;
        }
        let failure = loop {
            let length = match self.read_head() {
                Ok((answer, length)) => {
                    check_code(answer.status);
                    length
                }
                Err(failure) => break failure,
            };
            // The answer to a HEAD request has no body.
            if self.stream.fill_buf().is_ok_and(|next| next.starts_with(b"HTTP/1.")) {
                continue;
            }
            let mut body = vec![0; length];
            if let Err(failure) = self.stream.read_exact(&mut body) {
                break failure;
            }
        };
        let ended = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(ended.contains(&failure.kind()), "the server ends the connection: {failure}");
    }
}

fn check_code(status: u16) {
    assert!(CODES.contains(&status), "{status}");
}

fn pick<'a>(from: &[&'a str], number: u8) -> &'a str {
    from[usize::from(number) % from.len()]
}

/// Each line that is not blank has a line of JSON with a known status.
fn check_lines(body: &str, answers: &[u8]) {
    let lines = body.split('\n').filter(|line| !line.trim_ascii().is_empty()).count();
    let answers = std::str::from_utf8(answers).expect("text");
    assert_eq!(answers.lines().count(), lines, "{answers}");
    for answer in answers.lines() {
        let answer = serde_json::from_str::<Value>(answer).expect("a line of JSON");
        let status = answer["status"].as_str().expect("a status");
        assert!(
            STATUSES.contains(&status) && (status == "invalid") == answer["error"].is_string(),
            "{answer}"
        );
    }
}
