//! `feed` and `audit` against a server in a process of its own.

mod support;

use std::fs;
use std::process::{Command, Output, Stdio};

use support::{Directory, PROGRAM, Server, order, until};

/// Generated files, and a data directory for a server.
struct Shop {
    directory: Directory,
}

impl Shop {
    fn new(name: &str, sample: &[&str]) -> Self {
        let directory = Directory::new(name);
        support::sample(directory.path(), sample);
        Self { directory }
    }

    fn serve(&self, args: &[&str]) -> Server {
        Server::start(&self.directory.path().join("data"), args)
    }

    /// A command with both files.
    fn command(&self, subcommand: &str, server: [&str; 2], args: &[&str]) -> Command {
        support::with_files(self.directory.path(), subcommand, server, args)
    }

    fn feed(&self, server: &Server, args: &[&str]) -> Run {
        Run::of(self.command("feed", ["--to", &url(server)], args).output())
    }

    fn audit(&self, server: &Server, args: &[&str]) -> Run {
        Run::of(self.command("audit", ["--from", &url(server)], args).output())
    }
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address)
}

/// The number of orders in the store, whichever process placed them.
fn placed(server: &Server) -> usize {
    server.metric("orders_pending") as usize + server.outcomes().len()
}

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    fn of(output: std::io::Result<Output>) -> Self {
        let output = output.expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// The number in the last column of a row.
    fn row(&self, begin: &str) -> u64 {
        let row = self.out.lines().find_map(|line| line.strip_prefix(begin)?.strip_suffix(" |"));
        let number = row.and_then(|row| row.rsplit(' ').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {begin:?} in\n{}{}", self.out, self.err))
    }
}

#[test]
fn a_feed_is_answered_line_by_line_and_its_audit_finds_no_difference() {
    let shop = Shop::new("feed", &["--count", "3000", "--items", "40"]);
    let server = shop.serve(&["--check-after", "20s"]);
    let fed = shop.feed(&server, &[]).succeeded();
    assert_eq!(fed.row("| orders | placed"), 3_000, "{}", fed.out);
    assert!(fed.err.contains(" payments are late by their dates"), "{}", fed.err);
    let audited = shop.audit(&server, &["--wait"]).succeeded();
    assert!(audited.out.contains("3000 outcomes"), "{}", audited.out);
    let again = shop.feed(&server, &["--connections", "3", "--batch", "77"]).succeeded();
    assert_eq!(again.row("| orders | duplicate"), 3_000, "a repetition is harmless");
    assert_eq!(again.row("| payments | duplicate"), fed.row("| payments | counted"));
}

/// What is sold out depends on the order in which the orders of an item come in. The feed ends before
/// the first check, which gives stock back: its 100 requests take a fraction of that time, also where
/// a disk takes 100 ms to sync.
#[test]
fn what_is_sold_out_is_what_replay_says() {
    let shop = Shop::new("scarce", &["--count", "600", "--items", "13"]);
    let stock = ["--stock", "90"];
    let server = shop.serve(&["--check-after", "20s", "--stock", "90"]);
    let fed = shop.feed(&server, &["--batch", "7"]).succeeded();
    assert!(fed.row("| orders | sold_out") > 100, "{}", fed.out);
    assert!(fed.row("| payments | unknown_order") > 100, "{}", fed.out);
    shop.audit(&server, &["--wait", stock[0], stock[1]]).succeeded();
}

/// The files' half hour lasts four seconds, so stock that a check takes back is sold again.
#[test]
fn a_paced_feed_sends_each_line_at_its_date() {
    let directory = Directory::new("paced");
    let (header, later) = ("order_id,item,quantity,amount_cents,placed_at_ms\n", 2_400_000);
    let orders = format!("{header}1,nut,1,100,0\n2,nut,1,100,1\n3,nut,1,100,{later}\n4,nut,1,100,{later}\n");
    let payments = format!("order_id,amount_cents,paid_at_ms\n3,100,{later}\n1,100,1840000\n");
    fs::write(directory.path().join("orders.csv"), orders).expect("a file");
    fs::write(directory.path().join("payments.csv"), payments).expect("a file");
    let shop = Shop { directory };
    let server = shop.serve(&["--check-after", "4s", "--stock", "1"]);
    let fed = shop.feed(&server, &["--speed", "450"]).succeeded();
    assert_eq!((fed.row("| orders | placed"), fed.row("| orders | sold_out")), (2, 2), "{}", fed.out);
    assert_eq!((fed.row("| payments | counted"), fed.row("| payments | late")), (1, 1), "{}", fed.out);
    shop.audit(&server, &["--wait", "--stock", "1"]).succeeded();
}

#[test]
fn a_feed_that_is_killed_is_repeated_and_what_was_answered_is_a_duplicate() {
    let shop = Shop::new("repeated", &["--count", "30000", "--items", "40"]);
    let server = shop.serve(&["--check-after", "1h"]);
    let args = ["--batch", "20"];
    let mut feed = shop.command("feed", ["--to", &url(&server)], &args).spawn().expect("the program starts");
    until("a tenth is placed", || server.metric("orders_pending") > 3_000.0);
    feed.kill().expect("it is killed");
    feed.wait().expect("it has ended");
    let fed = shop.feed(&server, &args).succeeded();
    let (placed, duplicates) = (fed.row("| orders | placed"), fed.row("| orders | duplicate"));
    assert!(placed > 0 && duplicates > 3_000 && placed + duplicates == 30_000, "{}", fed.out);
    assert_eq!(server.metric("orders_answered_total{status=\"placed\"}"), 30_000.0);
}

/// The server is killed and started again at the same address while a feed runs.
#[test]
fn a_feed_survives_the_crashes_of_the_server() {
    let shop = Shop::new("crashes", &["--count", "10000", "--items", "40"]);
    let data = shop.directory.path().join("data");
    let args = ["--check-after", "30s"];
    let mut server = Server::start(&data, &args);
    let (address, url) = (server.address.to_string(), url(&server));
    let mut feed = shop.command("feed", ["--to", &url], &["--batch", "10"]);
    let feed = feed.stdout(Stdio::piped()).spawn().expect("the program starts");
    for crash in 1..=4_u8 {
        until("some orders are placed", || placed(&server) > usize::from(crash) * 1_500);
        server.kill();
        server = Server::launch_at(&address, Command::new(PROGRAM), &data, &args);
        server.wait_until_ready();
    }
    let fed = Run::of(feed.wait_with_output()).succeeded();
    assert!(!fed.out.contains("\n0 requests were sent more than once"), "{}", fed.out);
    shop.audit(&server, &["--wait"]).succeeded();
}

#[test]
fn a_full_server_and_one_that_is_not_there_are_waited_for_until_the_bound() {
    let shop = Shop::new("bounds", &["--count", "500", "--items", "4"]);
    let server = shop.serve(&["--check-after", "1h", "--max-pending", "100"]);
    let full = shop.feed(&server, &["--give-up-after", "1s"]);
    assert_eq!(full.code, Some(2));
    assert!(full.err.contains("given up") && full.err.contains("503"), "{}", full.err);
    let data = shop.directory.path().join("data");
    let address = server.address.to_string();
    server.kill();
    let url = format!("http://{address}");
    let gone = Run::of(shop.command("feed", ["--to", &url], &["--give-up-after", "300ms"]).output());
    assert_eq!(gone.code, Some(2));
    assert!(gone.err.contains("given up"), "{}", gone.err);
    let server = Server::launch_at(&address, Command::new(PROGRAM), &data, &["--check-after", "1h"]);
    let fed = Run::of(shop.command("feed", ["--to", &url], &[]).output()).succeeded();
    assert!(fed.row("| orders | duplicate") >= 100, "{}", fed.out);
    assert_eq!(placed(&server), 500);
}

#[test]
fn wrong_targets_and_wrong_tokens_are_refused_at_once() {
    let shop = Shop::new("refused", &["--count", "10"]);
    let data = shop.directory.path().join("data");
    let server = Server::launch(Command::new(PROGRAM), &data, &["--token", "s3cret", "--check-after", "5s"]);
    for (to, reason) in
        [("ftp://x:1", "http://HOST:PORT"), ("http://x", "http://HOST:PORT"), (&*url(&server), "401")]
    {
        for (subcommand, option) in [("feed", "--to"), ("audit", "--from")] {
            let run = Run::of(shop.command(subcommand, [option, to], &[]).output());
            assert_eq!(run.code, Some(2), "{to}");
            assert!(run.err.contains(reason), "{to}: {}", run.err);
        }
    }
    let token = ["--token", "s3cret"];
    shop.feed(&server, &token).succeeded();
    shop.audit(&server, &["--wait", token[0], token[1]]).succeeded();
}

/// Ids that a server does not take, and lines that the replay finds bad, are reported and left out.
#[test]
fn bad_lines_are_reported_and_left_out() {
    let directory = Directory::new("bad-lines");
    let head = "order_id,item,quantity,amount_cents,placed_at_ms\n";
    let orders = ["A-1,nut,1,5,0\n", "7,nut,1,5,0\n", "7,nut,1,5,1\n", "07,nut,1,5,0\n"].concat();
    fs::write(directory.path().join("orders.csv"), head.to_owned() + &orders).expect("a file");
    fs::write(directory.path().join("payments.csv"), "order_id,amount_cents,paid_at_ms\n8,5,0\n7,5,0\n")
        .expect("a file");
    let shop = Shop { directory };
    let server = shop.serve(&["--check-after", "1h"]);
    let fed = shop.feed(&server, &[]).succeeded();
    assert_eq!((fed.row("| orders | placed"), fed.row("| payments | counted")), (1, 1));
    for reason in [
        "line 2: order_id is \"A-1\"",
        "line 4: order 7 was placed",
        "line 5: order 7 was placed",
        "line 2: there is no order 8",
    ] {
        assert!(fed.err.contains(reason), "{reason} in {}", fed.err);
    }
    shop.audit(&server, &[]).succeeded();
}

#[test]
fn an_audit_finds_what_differs() {
    let shop = Shop::new("differs", &["--count", "300", "--items", "4"]);
    let server = shop.serve(&["--check-after", "2s"]);
    let nothing = shop.audit(&server, &[]);
    assert_eq!((nothing.code, nothing.row("| every order that replay accepts")), (Some(1), 300));
    shop.feed(&server, &[]).succeeded();
    shop.audit(&server, &["--wait"]).succeeded();
    assert_eq!(server.post("/orders", &order(99_999, "item-1")).statuses(), ["placed"]);
    until("it is decided", || server.metric("orders_pending") == 0.0);
    let other = shop.audit(&server, &[]);
    assert_eq!((other.code, other.row("| no other order has one")), (Some(1), 1), "{}", other.out);
    let stock = shop.audit(&server, &["--stock", "3"]);
    assert_eq!((stock.code, stock.row("| nothing is oversold")), (Some(1), 4), "{}", stock.out);
}
