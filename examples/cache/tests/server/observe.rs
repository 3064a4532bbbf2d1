use super::support::Server;

pub(crate) fn info(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn what_happened_is_counted() {
    let server = Server::cache(&["--threads", "3"]);
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
    // Extending a deadline leaves the timer in its node.
    for name in ["timers_scheduled", "timers_extended", "timers_pending"] {
        assert_eq!(info(&text, name), "30", "{name}");
    }
}

#[test]
fn info_has_the_sections_that_are_asked_for() {
    let server = Server::cache(&["--threads", "2"]);
    let mut client = server.connect();
    let headings = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(headings(&client.run("INFO").text()), 10);
    // What redis-py's own tests ask for first.
    let text = client.run("INFO").text();
    assert_eq!([info(&text, "arch_bits"), info(&text, "cluster_enabled")], ["64", "0"]);
    assert_eq!(headings(&client.run("INFO server MEMORY").text()), 2);
    assert_eq!(client.run("INFO nonsense").text(), "");
    client.run("HELLO 3");
    assert!(client.run("INFO cpu").text().starts_with("txt:# CPU\r\nused_cpu_sys:"));
}
