//! Sessions of the tools that people use: redis-cli, redis-benchmark, redis-py, node-redis and ioredis, and units of
//! Redis's own test suite.

mod suite;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::{Server, is_installed, skip};

/// Runs a program with this input; its output. It has to succeed.
fn run(program: impl AsRef<Path>, args: &[&str], input: &[u8]) -> String {
    let mut command = Command::new(program.as_ref());
    let mut process = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    process.stdin.take().expect("its input").write_all(input).expect("written");
    let Output { status, stdout, stderr } = process.wait_with_output().expect("its end");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}\n{err}");
    assert!(!out.contains("WARNING") && !err.contains("WARNING"), "{command:?}\n{out}\n{err}");
    out.into_owned()
}

/// A server, if this program of Debian's `redis-tools` is there.
fn server_for(tool: &str, args: &[&str]) -> Option<Server> {
    if !is_installed(tool) {
        skip(&format!("there is no {tool}, and apt-get cannot install it"));
        return None;
    }
    Some(Server::cache(args))
}

#[test]
fn redis_cli() {
    let Some(server) = server_for("redis-cli", &["--threads", "2", "--requirepass", "secret"]) else {
        return;
    };
    let port = server.port();
    let cli = |args: &[&str], input: &str| {
        let all = [&["-p", &port, "-a", "secret", "--no-auth-warning"], args].concat();
        run("redis-cli", &all, input.as_bytes())
    };
    assert_eq!(cli(&["PING"], ""), "PONG\n");
    assert_eq!(cli(&["-3", "SET", "greeting", "hello world", "EX", "100"], ""), "OK\n");
    assert_eq!(cli(&["-3", "--json", "MGET", "greeting", "none"], ""), "[\"hello world\",null]\n");
    let session = "get greeting\nttl greeting\nexpire greeting 200 GT\nincr n\nnonsense x\nquit\n";
    let expected =
        "hello world\n100\n1\n1\nERR unknown command 'nonsense', with args beginning with: 'x' \n\n";
    let output = cli(&[], session);
    assert_eq!(output.replacen("\n99\n", "\n100\n", 1), expected);
    let stream: String = (0..1_000).map(|key| format!("SET scan:{key} v\r\n")).collect();
    assert!(cli(&["--pipe"], &stream).contains("errors: 0, replies: 1000"));
    assert_eq!(cli(&["--scan", "--pattern", "scan:*"], "").lines().count(), 1_000);
    assert!(cli(&["INFO", "keyspace"], "").contains("db0:keys=1002,expires=1"));
    assert_eq!(cli(&["-r", "3", "-i", "0", "INCR", "counter"], ""), "1\n2\n3\n");
    assert_eq!(cli(&["-x", "SET", "stdin"], "from stdin"), "OK\n");
    assert_eq!(cli(&["GET", "stdin"], ""), "from stdin\n");
}

#[test]
fn redis_benchmark() {
    let Some(server) = server_for("redis-benchmark", &["--threads", "2"]) else { return };
    let port = server.port();
    let benchmark = |args: &[&str]| {
        let output = run("redis-benchmark", &[&["-p", &port, "-n", "5000", "-r", "500"], args].concat(), b"");
        assert!(!output.contains("ERR"), "{output}");
        output
    };
    let tests = benchmark(&["-t", "ping_inline,ping_mbulk,set,get,incr,mset", "--csv"]);
    assert_eq!(tests.lines().count(), 7, "{tests}");
    assert!(
        benchmark(&["-P", "16", "-c", "50", "SET", "k:__rand_int__", "v", "EX", "60"])
            .contains("throughput summary")
    );
    assert!(
        benchmark(&["-P", "16", "-c", "50", "-3", "GET", "k:__rand_int__"]).contains("throughput summary")
    );
    assert!(server.connect().run("DBSIZE").integer() > 400);
}

/// A Python with these packages, which pip installs. `None`, with a message, if they cannot be installed.
fn python(name: &str, packages: &[&str], import: &str) -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = environment.join("bin/python");
    let runs = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let place = environment.to_str().expect("a path");
    let is_there = runs(&python, &["-c", import])
        || runs(Path::new("python3"), &["-m", "venv", place])
            && runs(&python, &[&["-m", "pip", "install", "--quiet"], packages].concat());
    if !is_there {
        skip(&format!("{} cannot be installed", packages.join(", ")));
    }
    is_there.then_some(python)
}

#[test]
fn redis_py() {
    let Some(python) = python("redis-py", &["redis"], "import redis") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/session.py");
    ["2", "3"].into_iter().for_each(|protocol| session_with_a_restart(&python, &[script, protocol]));
}

/// A directory with the clients of Node, which npm installs, and with this script. `None`, with a message, if they
/// cannot be installed.
fn node(script: &str) -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-clients");
    std::fs::create_dir_all(&place).expect("a directory");
    let runs = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(&place).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let is_there = || runs("node", &["-e", "require('redis'); require('ioredis')"]);
    let install = ["install", "--silent", "--prefix", ".", "redis@6", "ioredis@6"];
    if !(is_there() || runs("npm", &install) && is_there()) {
        skip("node-redis and ioredis cannot be installed");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(script);
    let script = place.join(script);
    std::fs::copy(source, &script).expect("a copy");
    Some(script)
}

#[test]
fn node_clients() {
    let Some(script) = node("session.js") else { return };
    let script = script.to_str().expect("a path");
    for client in ["node-redis-2", "node-redis-3", "ioredis"] {
        session_with_a_restart(Path::new("node"), &[script, client]);
    }
}

/// A session of a client with this cache and with Redis, each of which is started anew when the session asks for it.
fn session_with_a_restart(program: &Path, args: &[&str]) {
    for is_redis in [false, true] {
        let server = if is_redis { Server::redis() } else { Some(Server::cache_to_restart()) };
        let Some(mut server) = server else { continue };
        let mut command = Command::new("timeout");
        command
            .arg("120")
            .arg(program)
            .args(args)
            .arg(server.port())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().map(|line| line.expect("text"));
        assert_eq!(line().as_deref(), Some("restart"), "{command:?}");
        server = server.restart(is_redis);
        process.stdin.take().expect("its input").write_all(b"\n").expect("written");
        assert_eq!(line().as_deref(), Some("all is well"), "{command:?}");
        assert!(process.wait().expect("its end").success());
        drop(server);
    }
}
