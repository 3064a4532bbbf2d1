use super::support::Server;
use super::support::client::{Value, encode};
use super::time::wait_for;

/// The value of a field in a line of CLIENT LIST.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    line.split(' ').find_map(|it| it.strip_prefix(name)?.strip_prefix('=')).expect("the field")
}

#[test]
fn clients_of_all_threads_are_listed_and_killed() {
    let server = Server::cache(&["--threads", "3"]);
    let mut others: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for (number, other) in others.iter_mut().enumerate() {
        other.run("HELLO 3");
        other.run(&format!("CLIENT SETNAME other{number}"));
    }
    others[0].run("SUBSCRIBE a");
    others[0].run("PSUBSCRIBE a*");
    others[1].run("MULTI");
    others[1].run("GET a");
    let mut client = server.connect();
    let list = client.run("CLIENT LIST").text();
    assert_eq!(list.lines().count(), 7, "{list}");
    assert!(matches!(others[2].run("CLIENT LIST"), Value::Verbatim(_)));
    let line = |name: &str| {
        let found = list.lines().find(|line| field(line, "name") == name);
        found.unwrap_or_else(|| panic!("{list}")).to_owned()
    };
    let (first, second) = (line("other0"), line("other1"));
    assert_eq!(
        ["flags", "sub", "psub", "multi", "resp"].map(|it| field(&first, it)),
        ["P", "1", "1", "-1", "3"]
    );
    assert_eq!(["flags", "sub", "multi", "resp"].map(|it| field(&second, it)), ["N", "0", "1", "3"]);
    assert_eq!(client.run(&format!("CLIENT KILL {}", field(&first, "addr"))).text(), "OK");
    assert_eq!(client.run(&format!("CLIENT KILL {}", field(&first, "addr"))).text(), "ERR No such client");
    let by_id = format!("CLIENT KILL ID {} ADDR {}", field(&second, "id"), field(&second, "addr"));
    assert_eq!([client.run(&by_id).integer(), client.run(&by_id).integer()], [1, 0]);
    assert_eq!(others[1].try_read(), None);
    assert_eq!(client.run("CLIENT KILL SKIPME yes").integer(), 4);
    wait_for(|| client.run("INFO clients").text().contains("connected_clients:1\r\n"));
    let id = client.run("CLIENT ID").integer();
    assert_eq!(client.run(&format!("CLIENT KILL ID {id} SKIPME no")).integer(), 1);
    assert_eq!(client.try_read(), None);
}

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
    let pipeline = |lines: &[String]| -> Vec<u8> {
        lines.iter().flat_map(|line| encode(&line.split(' ').collect::<Vec<_>>())).collect()
    };
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
    let own = client.run("CLIENT INFO").text().trim_end().replacen("txt:", "", 1);
    assert_eq!([field(&own, "sub"), field(&own, "resp")], ["1", "3"]);
    assert!(publisher.run("CLIENT LIST").text().contains(&format!("id={} ", field(&own, "id"))));
}

/// Keys of one thread, by a hash tag, in one piece; else the error of a Redis cluster, and nothing is done.
#[test]
fn commands_on_several_keys_need_one_thread() {
    let server = Server::cache(&["--threads", "3"]);
    let mut client = server.connect();
    let (mut refused, mut done) = (0, 0);
    for number in 0..100 {
        client.run(&format!("SET from{number} {number} EX 1000"));
        match client.run(&format!("RENAME from{number} to{number}")) {
            Value::Error(text) => {
                assert_eq!(text, "CROSSSLOT Keys in request don't hash to the same slot");
                assert_eq!(
                    client.run(&format!("MGET from{number} to{number}")).elements()[1],
                    Value::NullBulk
                );
                assert!(client.run(&format!("TTL from{number}")).integer() > 900);
                refused += 1;
            }
            reply => {
                assert_eq!(reply.text(), "OK");
                assert!(client.run(&format!("TTL to{number}")).integer() > 900);
                assert_eq!(client.run(&format!("EXISTS from{number}")).integer(), 0);
                done += 1;
            }
        }
        assert_eq!(client.run(&format!("MSETNX {{t}}a{number} 1 {{t}}b{number} 2")).integer(), 1);
        assert_eq!(client.run(&format!("RENAMENX {{t}}a{number} {{t}}c{number}")).integer(), 1);
    }
    assert!(refused > 30 && done > 10, "{refused} {done}");
    assert_eq!(client.run("DBSIZE").integer(), 300);
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
