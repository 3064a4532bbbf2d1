//! NATS servers and workers, each in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::{Directory, PROGRAM, until};

/// One server, or several that are a cluster.
pub(crate) struct Nats {
    servers: Vec<Server>,
}

struct Server {
    command: Vec<String>,
    port: u16,
    log: PathBuf,
    child: Option<Child>,
}

impl Nats {
    /// Starts servers that keep their data in a directory.
    pub(crate) fn start(directory: &Directory, servers: usize) -> Self {
        Self::start_with(directory, servers, "")
    }

    /// Starts servers with more in their configuration.
    pub(crate) fn start_with(directory: &Directory, servers: usize, more: &str) -> Self {
        let config = directory.path().join("nats.conf");
        fs::write(&config, more).expect("a configuration");
        let (ports, routes) = (free_ports(servers), free_ports(servers));
        let mesh = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
        let server = |(number, (&port, &route)): (usize, (&u16, &u16))| {
            let data = directory.path().join(format!("nats-{number}"));
            let mut command = format!("-js -a 127.0.0.1 -p {port} -n n{number} -sd")
                .split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>();
            command.push(data.display().to_string());
            command.extend(["-c".to_owned(), config.display().to_string()]);
            if servers > 1 {
                let cluster =
                    format!("--cluster_name orders --cluster nats://127.0.0.1:{route} --routes {mesh}");
                command.extend(cluster.split(' ').map(str::to_owned));
            }
            Server { command, port, log: directory.path().join(format!("nats-{number}.log")), child: None }
        };
        let mut nats = Self { servers: ports.iter().zip(&routes).enumerate().map(server).collect() };
        (0..servers).for_each(|number| nats.launch(number));
        (0..servers).for_each(|number| nats.wait_until_open(number));
        nats
    }

    fn launch(&mut self, number: usize) {
        let server = &mut self.servers[number];
        let log = fs::File::options().create(true).append(true).open(&server.log).expect("a log");
        let program = std::env::var_os("NATS_SERVER").unwrap_or_else(|| "nats-server".into());
        let child = Command::new(program).args(&server.command).stdout(Stdio::null()).stderr(log).spawn();
        server.child = Some(child.expect("nats-server is installed"));
    }

    fn wait_until_open(&self, number: usize) {
        let port = self.servers[number].port;
        until("the server is open", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// `kill -9`, and back after a while.
    pub(crate) fn restart(&mut self, number: usize, away: Duration) {
        self.kill(number);
        thread::sleep(away);
        self.launch(number);
        self.wait_until_open(number);
    }

    /// Starts a server that was killed.
    pub(crate) fn begin_again(&mut self, number: usize) {
        self.launch(number);
        self.wait_until_open(number);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.servers[number].child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The address of the first server.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.servers[0].port))
    }

    /// The addresses, separated by commas.
    pub(crate) fn urls(&self) -> String {
        let urls = self.servers.iter().map(|server| format!("nats://127.0.0.1:{}", server.port));
        urls.collect::<Vec<_>>().join(",")
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|number| self.kill(number));
    }
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect::<Vec<_>>();
    listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect()
}

/// A worker, and what it has said. It is killed when this is dropped.
pub(crate) struct Worker {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    pub(crate) fn start(name: &str, nats: &Nats, args: &[&str]) -> Self {
        Self::start_at(name, &nats.urls(), args)
    }

    pub(crate) fn start_at(name: &str, urls: &str, args: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--nats", urls, "--worker", name]).args(args);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let said = Arc::<Mutex<Vec<_>>>::default();
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().expect("its output is a pipe"));
        let err: Box<dyn Read + Send> = Box::new(child.stderr.take().expect("its errors are a pipe"));
        for stream in [out, err] {
            let (said, name) = (Arc::clone(&said), name.to_owned());
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    eprintln!("{name}: {line}");
                    said.lock().expect("no panic").push(line);
                }
            });
        }
        Self { child, said }
    }

    /// How many lines were said that contain this.
    pub(crate) fn count(&self, part: &str) -> usize {
        let said = self.said.lock().expect("no panic");
        said.iter().filter(|line| line.contains(part)).count()
    }

    /// How many partitions it has taken and caught up with.
    pub(crate) fn owned(&self) -> usize {
        self.count(" owned")
    }

    pub(crate) fn wait_until_ready(&self) {
        until("the worker is ready", || self.count(" ready") > 0);
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(kill.is_ok_and(|status| status.success()), "{signal}");
    }

    /// Asks it to end, and returns its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().expect("the worker has ended").code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
