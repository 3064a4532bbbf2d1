//! Workers and NATS servers are killed, paused and restarted at random under load, and what is left is
//! compared with a replay.
//!
//! ```text
//! cargo test --release -p orders --test cluster_faults -- \
//!     [--seconds S] [--servers N] [--rate ORDERS_A_SECOND] [--lease MS] [--seed N] [--cuts N]
//! ```
//!
//! Three workers share the partitions. While a feed sends orders and payments at a steady pace,
//! faults follow each other: a worker is killed and started again; a worker is stopped for longer
//! than its lease, and goes on without knowing it; a server is killed and comes back; a fourth
//! worker comes, and goes. With `--cuts N` the only fault is that a worker's connection falls
//! silent, N times. At the end every order must have one outcome, or be sold out, as a replay
//! decides it from the answers; nothing is oversold, and nothing early.

mod support;

use std::fmt::Write;
use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::nats::{Nats, Worker};
use support::proxy::Proxy;
use support::{Directory, audit, options};

const CHECK_AFTER: u64 = 1_500;
const STOCK: u64 = 1_000;
/// Orders of an item: a little more than there is stock for.
const PER_ITEM: u64 = 450;
const NAMES: [&str; 3] = ["anna", "bert", "carl"];
const GUEST: &str = "dora";
/// Two servers are not lost within this time: the one that comes back has to catch up.
const BETWEEN_SERVERS: Duration = Duration::from_secs(12);
/// On average.
const BETWEEN_CUTS: Duration = Duration::from_millis(700);

fn main() {
    let [servers, rate, lease] = options([("--servers", 1), ("--rate", 1_500), ("--lease", 1_000)]);
    let [seconds, seed, cuts] = options([("--seconds", 30), ("--seed", 1), ("--cuts", 0)]);
    let seconds = if cuts > 0 { cuts * BETWEEN_CUTS.as_millis() as u64 / 1_000 } else { seconds };
    let directory = Directory::new("cluster-faults");
    write_files(&directory, seconds, rate);
    let nats = Nats::start(&directory, servers as usize);
    let mut scene = Scene::new(nats, Duration::from_millis(lease), servers as usize, seed);
    // Servers elect leaders in much less, and the broker forgets repeated messages after two minutes.
    let feed = ["--speed", "1", "--check-after", "1h", "--give-up-after", "3m"];
    let mut feed = support::feed(directory.path(), &scene.nats.urls(), &feed);
    let feed = feed.stdout(Stdio::piped()).spawn().expect("the program starts");
    match cuts {
        0 => scene.torment(Duration::from_secs(seconds)),
        cuts => (0..cuts).for_each(|_| scene.cut()),
    }
    let fed = end(feed);
    let audited = audit::cluster(&scene.nats.urls(), directory.path(), STOCK, CHECK_AFTER);
    println!("{fed}{:?}: {audited}", scene.done);
}

/// Half of the orders are paid in full, a sixth each in two parts, wrongly, and not at all. Some of the
/// payments come when the check is near.
fn write_files(directory: &Directory, seconds: u64, rate: u64) {
    let mut orders = "order_id,item,quantity,amount_cents,placed_at_ms\n".to_owned();
    let mut payments = "order_id,amount_cents,paid_at_ms\n".to_owned();
    for id in 1..=seconds * rate {
        let (item, quantity, amount) = (id / PER_ITEM, id * 7 % 4 + 1, id * 31 % 5_000 + 200);
        let at = id * 1_000 / rate;
        let _ = writeln!(orders, "{id},item-{item},{quantity},{amount},{at}");
        let paid_at = at + id * 13 % (CHECK_AFTER + 200);
        let parts = match id * 11 % 6 {
            0..=2 => vec![amount],
            3 => vec![amount / 2, amount - amount / 2],
            4 => vec![amount + id % 2 * 2 - 1],
            _ => vec![],
        };
        parts.iter().for_each(|part| assert!(writeln!(payments, "{id},{part},{paid_at}").is_ok()));
    }
    fs::write(directory.path().join("orders.csv"), orders).expect("a file");
    fs::write(directory.path().join("payments.csv"), payments).expect("a file");
}

fn end(child: Child) -> String {
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("the program writes text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

/// How often each fault was done.
#[derive(Debug, Default)]
struct Done {
    workers_killed: u32,
    workers_paused: u32,
    servers_killed: u32,
    guests: u32,
    connections_cut: u32,
}

struct Scene {
    nats: Nats,
    servers: usize,
    lease: Duration,
    workers: Vec<Worker>,
    /// A proxy for each of the workers that stay, before the first server.
    proxies: Vec<Proxy>,
    rng: fastrand::Rng,
    done: Done,
    server_killed: Instant,
}

impl Scene {
    fn new(nats: Nats, lease: Duration, servers: usize, seed: u64) -> Self {
        let rng = fastrand::Rng::with_seed(seed);
        let (done, server_killed) = (Done::default(), Instant::now());
        let proxies = NAMES.iter().map(|_| Proxy::start(nats.address())).collect();
        let workers = Vec::new();
        let mut scene = Self { nats, servers, lease, workers, proxies, rng, done, server_killed };
        scene.workers = NAMES.iter().map(|name| scene.worker(name)).collect();
        scene.workers.iter().for_each(Worker::wait_until_ready);
        scene
    }

    fn worker(&self, name: &str) -> Worker {
        let (replicas, lease) = (self.servers.to_string(), format!("{}ms", self.lease.as_millis()));
        let (check_after, stock) = (format!("{CHECK_AFTER}ms"), STOCK.to_string());
        let shop = ["--partitions", "6", "--check-after", &check_after, "--stock", &stock];
        let own = ["--replicas", &replicas, "--lease", &lease, "--snapshot-every", "1000"];
        let proxy = NAMES.iter().position(|own| *own == name).map(|number| self.proxies[number].url.clone());
        // With several servers, a worker goes from one to the other.
        let urls = proxy.filter(|_| self.servers == 1).unwrap_or_else(|| self.nats.urls());
        Worker::start_at(name, &urls, &[&shop[..], &own].concat())
    }

    /// Each fault once, and then at random.
    fn torment(&mut self, time: Duration) {
        let begin = Instant::now();
        for fault in 0.. {
            thread::sleep(Duration::from_millis(self.rng.u64(200..1_200)));
            if begin.elapsed() >= time {
                break;
            }
            match if fault < 4 { fault } else { self.rng.u32(0..4) } {
                0 => self.kill_worker(),
                1 => self.pause_worker(),
                2 => self.kill_server(),
                _ => self.guest(),
            }
        }
    }

    fn kill_worker(&mut self) {
        let victim = self.rng.usize(0..NAMES.len());
        println!("{} is killed", NAMES[victim]);
        // Dropping it kills it.
        drop(self.workers.remove(victim));
        thread::sleep(Duration::from_millis(self.rng.u64(0..2_000)));
        self.workers.insert(victim, self.worker(NAMES[victim]));
        self.done.workers_killed += 1;
    }

    /// It goes on after others have taken what it held.
    fn pause_worker(&mut self) {
        let victim = self.rng.usize(0..NAMES.len());
        println!("{} is paused", NAMES[victim]);
        self.workers[victim].signal("-STOP");
        thread::sleep(self.lease + self.lease.mul_f64(0.3 + self.rng.f64()));
        self.workers[victim].signal("-CONT");
        self.done.workers_paused += 1;
    }

    /// A worker's connection falls silent.
    fn cut(&mut self) {
        let victim = self.rng.usize(0..NAMES.len());
        self.proxies[victim].cut();
        self.done.connections_cut += 1;
        thread::sleep(BETWEEN_CUTS.mul_f64(0.5 + self.rng.f64()));
    }

    fn kill_server(&mut self) {
        if self.done.servers_killed > 0 && self.server_killed.elapsed() < BETWEEN_SERVERS {
            return;
        }
        let away = Duration::from_millis(self.rng.u64(300..3_000));
        let victim = self.rng.usize(0..self.servers);
        println!("server {victim} is killed");
        self.nats.restart(victim, away);
        self.server_killed = Instant::now();
        self.done.servers_killed += 1;
    }

    /// A fourth worker gets a share, and gives it back.
    fn guest(&mut self) {
        println!("{GUEST} is a guest");
        let guest = self.worker(GUEST);
        guest.wait_until_ready();
        thread::sleep(self.lease * 2);
        assert_eq!(guest.terminate(), Some(0));
        self.done.guests += 1;
    }
}
