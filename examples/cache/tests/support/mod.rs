//! Servers that tests start and stop, and a client that says what they reply.
#![allow(dead_code)] // Each test target uses a part of it.

pub(crate) mod client;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server may take so long to start on a machine that is busy.
const START: Duration = Duration::from_secs(30);

/// A server process on a port of its own. It ends with the value.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
}

impl Server {
    /// This package's program, with these arguments besides the address.
    pub(crate) fn cache(args: &[&str]) -> Self {
        Self::cache_in(args, &[])
    }

    /// The same, with these variables of the environment.
    pub(crate) fn cache_in(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::cache_on("0", args, variables)
    }

    /// The same, on this port.
    fn cache_on(port: &str, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cache"));
        let mut process = command
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(args)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let address = line().strip_prefix("listening on ").expect("the address").parse().expect("an address");
        let metrics = args.contains(&"--metrics").then(|| {
            let line = line();
            let url = line.strip_prefix("metrics on http://").expect("the address of metrics");
            url.strip_suffix("/metrics").expect("a path").parse().expect("an address")
        });
        Self { process, address, metrics }
    }

    /// Debian's Redis. `None`, with a message, if it is not there and cannot be installed.
    pub(crate) fn redis() -> Option<Self> {
        if !is_installed("redis-server") {
            skip("there is no redis-server, and apt-get cannot install it");
            return None;
        }
        (0..5).find_map(|_| Self::redis_on_a_free_port())
    }

    fn redis_on_a_free_port() -> Option<Self> {
        Self::redis_on(free_address())
    }

    /// This package's program at an address that stays free when it ends, until it is started again.
    pub(crate) fn cache_to_restart() -> Self {
        Self::cache_on(&free_address().port().to_string(), &["--threads", "2"], &[])
    }

    fn redis_on(address: SocketAddr) -> Option<Self> {
        let port = address.port().to_string();
        let args =
            ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "1"];
        let process = Command::new("redis-server")
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let mut server = Self { process, address, metrics: None };
        let start = Instant::now();
        while start.elapsed() < START {
            if server.process.try_wait().expect("its state").is_some() {
                // Another process has taken the port.
                return None;
            }
            if server.answers() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen on {address}");
    }

    /// Ends a server at once, and starts the like of it, which has no keys, on its port.
    pub(crate) fn restart(self, is_redis: bool) -> Self {
        let (address, port) = (self.address, self.port());
        drop(self);
        if is_redis {
            Self::redis_on(address).expect("its port")
        } else {
            Self::cache_on(&port, &["--threads", "2"], &[])
        }
    }

    /// Whether this Redis answers, and not that of another test, which has taken the port meanwhile.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return false };
        let line = format!("process_id:{}", self.process.id());
        stream.write_all(b"INFO server\r\nQUIT\r\n").is_ok()
            && BufReader::new(stream).lines().map_while(Result::ok).any(|it| it == line)
    }

    pub(crate) fn connect(&self) -> client::Client {
        client::Client::connect(self.address)
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// The memory that the process has, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.status("VmRSS:")
    }

    /// The most that it has had.
    pub(crate) fn peak(&self) -> usize {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> usize {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("its memory");
        let kib: usize = line.trim().strip_suffix(" kB").expect("a unit").parse().expect("a number");
        kib << 10
    }

    /// The pages that the kernel has given it so far.
    pub(crate) fn page_faults(&self) -> usize {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("its state");
        let fields = stat.rsplit(") ").next().expect("fields");
        fields.split(' ').nth(7).and_then(|it| it.parse().ok()).expect("a number")
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A free address whose port the system does not give to a connection. A client that connects to a port of those, while
/// no server has it, may get this port itself, and so meet itself there.
fn free_address() -> SocketAddr {
    const PORTS: std::ops::Range<u32> = 10_000..30_000;
    let start = std::process::id();
    let address = |number: u32| {
        let port = PORTS.start + (start + number * 7) % (PORTS.end - PORTS.start);
        TcpListener::bind(("127.0.0.1", port as u16)).and_then(|it| it.local_addr()).ok()
    };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Ordering: Relaxed; only the numbers matter.
    std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
        .take(1_000)
        .find_map(address)
        .expect("a port")
}

/// Says why a test is skipped, past the test runner, which would keep it to itself.
pub(crate) fn skip(why: &str) {
    writeln!(std::io::stderr(), "skipped: {why}").expect("an output for errors");
}

/// Whether a program of Debian's packages `redis-server` and `redis-tools` is there, perhaps now.
pub(crate) fn is_installed(program: &str) -> bool {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    };
    let install = || {
        let packages = ["install", "-y", "-qq", "redis-server", "redis-tools"];
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0);
        let mut apt = if is_root { Command::new("apt-get") } else { Command::new("sudo") };
        if !is_root {
            apt.args(["-n", "apt-get"]);
        }
        apt.args(packages).stdout(Stdio::null()).status().is_ok_and(|it| it.success())
    };
    // Two tests may install at the same time; then one of them waits for the other's lock.
    runs(program) || (0..3).any(|_| install() && runs(program)) || runs(program)
}
