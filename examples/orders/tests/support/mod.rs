//! A server in a process of its own, and a client that speaks to it over plain sockets.

#![allow(dead_code, reason = "every target uses its own part")]

pub(crate) mod lossy;
pub(crate) mod nats;
pub(crate) mod shop;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use order_reconciliation::Streams;
use serde_json::Value;

/// How long a test waits for what has to come. The machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_orders");

/// A directory for one test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts the program, and waits until it is ready.
    pub(crate) fn start(data: &Path, args: &[&str]) -> Self {
        let server = Self::launch(Command::new(PROGRAM), data, args);
        server.wait_until_ready();
        server
    }

    /// Starts a command that ends up in the program, and reads its address.
    pub(crate) fn launch(command: Command, data: &Path, args: &[&str]) -> Self {
        Self::launch_at("127.0.0.1:0", command, data, args)
    }

    /// Starts the program, and kills it after a time, if it is ready or not.
    pub(crate) fn interrupt(data: &Path, args: &[&str], after: Duration) {
        let child = Self::spawn("127.0.0.1:0", Command::new(PROGRAM), data, args);
        let server = Self { child, address: ([127, 0, 0, 1], 0).into() };
        thread::sleep(after);
        server.kill();
    }

    fn spawn(address: &str, mut command: Command, data: &Path, args: &[&str]) -> Child {
        command.arg("serve").arg("--data").arg(data).args(["--listen", address]).args(args);
        // A group of its own, as some commands run the program as their child.
        let command = command.stdout(Stdio::piped()).process_group(0);
        command.spawn().expect("the program starts")
    }

    pub(crate) fn launch_at(address: &str, command: Command, data: &Path, args: &[&str]) -> Self {
        let mut child = Self::spawn(address, command, data, args);
        let mut line = String::new();
        let out = child.stdout.take().expect("its output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the first line");
        let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("the first line is {line:?}")) }
    }

    pub(crate) fn wait_until_ready(&self) {
        until("the server is ready", || self.try_get("/healthz").is_ok_and(|answer| answer.status == 200));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }

    /// Asks it to end, and returns its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(kill.is_ok_and(|status| status.success()));
        self.child.wait().expect("the server has ended").code()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).expect("the server accepts a connection")
    }

    /// One request on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.try_get(path).expect("an answer")
    }

    fn try_get(&self, path: &str) -> io::Result<Answer> {
        Client::connect(self.address)?.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.connect().send("POST", path, &[], body.as_bytes()).expect("an answer")
    }

    /// The value of a metric, by its whole name.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }

    /// All outcomes, page by page.
    pub(crate) fn outcomes(&self) -> Vec<Value> {
        let mut all = Vec::<Value>::new();
        loop {
            let after = all.last().map_or(0, |last| last["seq"].as_u64().expect("a number"));
            let page = self.get(&format!("/outcomes?after={after}&limit=10000")).lines();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection that is kept.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// What a server answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Lower-case names, as they came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("the server writes text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of a body, as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text();
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// The field `status` of each line.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let status = |line: &Value| line["status"].as_str().expect("a status").to_owned();
        self.lines().iter().map(status).collect()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a request, and reads the answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> io::Result<Answer> {
        let headers = headers.iter().map(|header| format!("{header}\r\n")).collect::<String>();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n{headers}\r\n");
        self.write(&[head.as_bytes(), body].concat())?;
        self.read()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the head of an answer.
    pub(crate) fn read_head(&mut self) -> io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head.to_lowercase())
    }

    /// Reads one answer.
    pub(crate) fn read(&mut self) -> io::Result<Answer> {
        let head = self.read_head()?;
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let mut body = vec![0; field("content-length:").unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok(Answer { status, head, body })
    }
}

/// The numbers of the command line, by option, with their defaults. Test runners pass options of their own,
/// which mean nothing here.
pub(crate) fn options<const N: usize>(defaults: [(&str, u64); N]) -> [u64; N] {
    let args = std::env::args().collect::<Vec<_>>();
    defaults.map(|(name, default)| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    })
}

/// The memory of a process, in bytes.
pub(crate) fn memory(pid: u32) -> f64 {
    status(pid, "VmRSS:")
}

/// The most that it was so far.
pub(crate) fn peak_memory(pid: u32) -> f64 {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1_024.0
}

/// Waits until something is true, with patience.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited too long until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// How long the disk takes to sync 4 KiB in a file that is long enough: the median of 101 times.
pub(crate) fn median_sync(directory: &Path) -> Duration {
    let path = directory.join("sync");
    let mut file = fs::File::create(&path).expect("a file");
    let mut times = [Duration::ZERO; 101];
    for time in &mut times {
        file.rewind().and_then(|()| file.write_all(&[1; 4_096])).expect("a write");
        let begin = Instant::now();
        file.sync_data().expect("a sync");
        *time = begin.elapsed();
    }
    fs::remove_file(path).expect("the file is removed");
    times.sort();
    times[50]
}

/// Writes a generated data set to `orders.csv` and `payments.csv`.
pub(crate) fn sample(directory: &Path, args: &[&str]) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { out: &mut out, err: &mut err };
    let program = [OsString::from("order-reconciliation"), "--write-sample".into(), directory.into()];
    let args = program.into_iter().chain(args.iter().map(OsString::from));
    let code = order_reconciliation::run(args, &mut streams);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&err));
}

/// A subcommand with the files in a directory, and a server.
pub(crate) fn with_files(directory: &Path, subcommand: &str, server: [&str; 2], args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg(subcommand).args(server).args(args);
    command.arg("--orders").arg(directory.join("orders.csv"));
    command.arg("--payments").arg(directory.join("payments.csv"));
    command
}

/// The line of an order of two units at 19.99 in all.
pub(crate) fn order(id: u64, item: &str) -> String {
    format!("{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":2,\"amount_cents\":1999}}\n")
}

pub(crate) fn payment(id: &str, order_id: u64, cents: u64) -> String {
    format!("{{\"payment_id\":\"{id}\",\"order_id\":{order_id},\"amount_cents\":{cents}}}\n")
}
