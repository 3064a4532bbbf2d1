use super::support::Server;
use super::support::client::{Value, pipeline};

/// "Try CLIENT HELP." leads somewhere.
#[test]
fn every_container_has_a_help() {
    let server = Server::cache(super::TWO);
    let mut client = server.connect();
    for container in ["CLIENT", "CONFIG", "COMMAND", "PUBSUB", "OBJECT", "MEMORY", "SLOWLOG", "LATENCY"] {
        let help = client.run(&format!("{container} HELP"));
        assert!(
            help.elements()[0].text().starts_with(&format!("{} <subcommand>", container.to_lowercase())),
            "{help:?}"
        );
        assert_eq!(help.elements().last().map(Value::text).as_deref(), Some("help"));
    }
    assert!(client.run("CLIENT HELP").elements().contains(&Value::Simple("setname".into())));
    for line in ["CLIENT TRACKING on", "CLIENT MAINT_NOTIFICATIONS on", "CLIENT NONSENSE"] {
        let text = client.run(line).text();
        assert!(text.starts_with("ERR unknown subcommand") && text.ends_with("Try CLIENT HELP."), "{text}");
    }
    assert!(client.run("HELP").text().starts_with("ERR unknown command"));
}

/// What is not replied is done, wherever the key is; messages come all the same.
#[test]
fn replies_are_muted() {
    let server = Server::cache(&["--threads", "3"]);
    let (mut client, mut publisher) = (server.connect(), server.connect());
    client.run("HELLO 3");
    assert_eq!(client.run("CLIENT REPLY on").text(), "OK");
    client.run("SET a 0");
    let mut lines = vec!["CLIENT REPLY OFF".to_owned(), "MULTI".into()];
    lines.extend((0..100).map(|key| format!("SET key{key} {key}")));
    lines.extend(["EXEC", "SUBSCRIBE news", "MGET key1 key2", "NONSENSE"].map(String::from));
    client.send(&pipeline(&lines));
    assert_eq!(
        client.read(),
        Value::Push(vec![Value::bulk("subscribe"), Value::bulk("news"), Value::Integer(1)])
    );
    assert_eq!(publisher.run("PUBLISH news text").integer(), 1);
    assert_eq!(client.read(), Value::Push(["message", "news", "text"].map(Value::bulk).to_vec()));
    assert_eq!(client.run("CLIENT REPLY ON").text(), "OK");
    assert_eq!(client.run("GET key99"), Value::bulk("99"));
    for key in 0..100 {
        let skipped = ["CLIENT REPLY SKIP".to_owned(), format!("INCR key{key}"), format!("GET key{key}")];
        client.send(&pipeline(&skipped));
        assert_eq!(client.read(), Value::bulk(&format!("{}", key + 1)));
    }
}

/// Keys without a common tag are refused, and nothing is done, however many threads there are; with one, they are not.
#[test]
fn commands_on_several_keys_go_by_the_tag() {
    const APART: &str = "CROSSSLOT Keys in request don't hash to the same slot";
    for args in [&["--threads", "1"][..], super::TWO, &["--threads", "4"], &["--one-thread"], &[]] {
        let server = Server::cache(args);
        let mut client = server.connect();
        let is_one = args == ["--one-thread"];
        let expected = if is_one { "OK" } else { APART };
        for number in 0..20 {
            client.run(&format!("SET from{number} {number} EX 1000"));
            let (from, to) = (format!("from{number}"), format!("to{number}"));
            assert_eq!(client.run(&format!("RENAME {from} {to}")).text(), expected, "{args:?}");
            assert_eq!(client.run(&format!("EXISTS {to}")).integer(), i64::from(is_one));
            let (there, gone) = if is_one { (&to, &from) } else { (&from, &to) };
            assert!(client.run(&format!("TTL {there}")).integer() > 900);
            let all = client.run(&format!("MSETNX {gone} 1 {{{number}}}other 2"));
            assert_eq!(all, if is_one { Value::Integer(1) } else { Value::Error(APART.into()) });
            client.run(&format!("DEL {gone} {{{number}}}other"));
            assert_eq!(client.run(&format!("WATCH {there} {gone}")).text(), expected);
            assert_eq!(client.run(&format!("WATCH {there}")).text(), "OK");
            assert_eq!(client.run(&format!("WATCH {gone}")).text(), expected);
            client.run("UNWATCH");
            // The key is its own tag.
            assert_eq!(client.run(&format!("WATCH {there} {{{there}}}x {there}")).text(), "OK");
            client.run("UNWATCH");
            assert_eq!(client.run(&format!("MSETNX {{t}}a{number} 1 {{t}}b{number} 2")).integer(), 1);
            assert_eq!(client.run(&format!("RENAMENX {{t}}a{number} {{t}}c{number}")).integer(), 1);
        }
        assert_eq!(client.run("DBSIZE").integer(), 60, "{args:?}");
    }
}

/// A client may take a page without keys for the end, so none comes before: threads without keys, and empty tables, are
/// passed.
#[test]
fn a_scan_of_few_keys_has_no_empty_page() {
    for threads in ["1", "2", "8"] {
        let server = Server::cache(&["--threads", threads]);
        let mut client = server.connect();
        for keys in 0..12 {
            let (mut cursor, mut found, mut pages) = ("0".to_owned(), 0, 0);
            while pages == 0 || cursor != "0" {
                let reply = client.run(&format!("SCAN {cursor}"));
                let page = reply.elements()[1].elements().len();
                assert!(page > 0 || keys == 0, "{threads} threads, {keys} keys: page {pages} is empty");
                (cursor, found, pages) = (reply.elements()[0].text(), found + page, pages + 1);
            }
            assert_eq!(found, keys, "{threads} threads");
            client.run(&format!("SET key{keys} v"));
        }
    }
}

/// An estimate that grows with the value.
#[test]
fn the_memory_of_a_key_is_told() {
    let server = Server::cache(super::TWO);
    let mut client = server.connect();
    for len in [0, 100, 10_000] {
        client.run_args(&["SET", "key", &"x".repeat(len)]);
        let memory = client.run("MEMORY USAGE key SAMPLES 5").integer() as usize;
        assert!((len + 50..len + 150).contains(&memory), "{len}: {memory}");
    }
}
