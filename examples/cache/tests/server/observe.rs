use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::support::Server;

/// The response of the metrics' address.
fn scrape(server: &Server) -> String {
    let mut stream = TcpStream::connect(server.metrics.expect("an address")).expect("a connection");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n").expect("sent");
    stream.write_all(b"\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

/// A figure of all threads together.
pub(crate) fn metric(server: &Server, name: &str) -> u64 {
    let text = scrape(server);
    let prefix = format!("shardwheel_cache_{name}{{thread=");
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
    assert!(!lines.is_empty(), "no {name} in {text}");
    lines.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().expect("a number")).sum()
}

pub(crate) fn info(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn what_happened_is_counted() {
    let server = Server::cache(&["--threads", "3", "--metrics", "127.0.0.1:0"]);
    let mut client = server.connect();
    for key in 0..30 {
        client.run(&format!("SET k{key} v EX 100"));
        client.run(&format!("GET k{key}"));
        client.run(&format!("EXPIRE k{key} 200"));
    }
    client.run("GET none");
    client.run("INCR k1");
    client.run("GET");
    client.run("NONSENSE");
    let text = client.run("INFO everything").text();
    let expected = [
        ("redis_version", "7.0.15"),
        ("connected_clients", "1"),
        ("keyspace_hits", "30"),
        ("keyspace_misses", "1"),
        ("total_error_replies", "3"),
        ("db0", "keys=30,expires=30,avg_ttl=0"),
        ("role", "master"),
        ("total_connections_received", "1"),
    ];
    for (name, value) in expected {
        assert_eq!(info(&text, name), value, "{name}");
    }
    assert!(info(&text, "used_memory").parse::<u64>().unwrap() > 30 * 40);
    assert!(info(&text, "used_memory_rss").parse::<u64>().unwrap() > 1_000_000);
    assert!(info(&text, "cmdstat_get").starts_with("calls=31,"), "{text}");
    assert!(info(&text, "cmdstat_get").ends_with("rejected_calls=1,failed_calls=0"));
    assert!(info(&text, "cmdstat_incr").ends_with("rejected_calls=0,failed_calls=1"));
    // Extending a deadline leaves the timer in its node.
    assert_eq!(
        (metric(&server, "timers_scheduled_total"), metric(&server, "timers_extended_total")),
        (30, 30)
    );
    assert_eq!((metric(&server, "timers_pending"), metric(&server, "keys")), (30, 30));
    // Counters are named as Prometheus has it.
    assert_eq!(metric(&server, "connections_received_total"), 1);
    assert_eq!(metric(&server, "keyspace_hits_total"), 30);
    assert!(scrape(&server).contains("# TYPE shardwheel_cache_keyspace_hits_total counter\n"));
    assert!(scrape(&server).contains("shardwheel_cache_commands_total{command=\"set\"} 30\n"));
}

/// A client that asks for metrics and does not finish is given up.
#[test]
fn a_stuck_client_does_not_keep_metrics_from_others() {
    let server = Server::cache(&["--threads", "2", "--metrics", "127.0.0.1:0"]);
    let start = Instant::now();
    let stuck = (0..6).map(|_| {
        let mut stuck = TcpStream::connect(server.metrics.expect("an address")).expect("a connection");
        stuck.write_all(b"GET /metrics HTT").expect("sent");
        stuck
    });
    let stuck: Vec<_> = stuck.collect();
    assert!(scrape(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(start.elapsed() < Duration::from_secs(4), "it waited for the others: {:?}", start.elapsed());
    for mut stuck in stuck {
        let mut rest = Vec::new();
        assert_eq!(stuck.read_to_end(&mut rest).map_or(0, |_| rest.len()), 0);
    }
}

#[test]
fn info_has_the_sections_that_are_asked_for() {
    let server = Server::cache(&["--threads", "2"]);
    let mut client = server.connect();
    let headings = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(headings(&client.run("INFO").text()), 9);
    // What redis-py's own tests ask for first.
    let text = client.run("INFO").text();
    assert_eq!([info(&text, "arch_bits"), info(&text, "cluster_enabled")], ["64", "0"]);
    assert_eq!(headings(&client.run("INFO server MEMORY").text()), 2);
    assert_eq!(client.run("INFO nonsense").text(), "");
    client.run("HELLO 3");
    assert!(client.run("INFO cpu").text().starts_with("txt:# CPU\r\nused_cpu_sys:"));
}
