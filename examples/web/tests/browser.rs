//! Runs `behaviour.rs` in a real Chromium, in a page and in a worker of that page.

#![cfg(not(target_family = "wasm"))]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

#[path = "../src/host.rs"]
mod host;

struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn open(address: &str, profile: &Path) -> Browser {
    let program = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    let browser = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .stderr(Stdio::null())
        .spawn();
    Browser(browser.expect("there is a Chromium; CHROMIUM names another program"))
}

#[test]
fn a_timer_works_in_a_page_and_in_a_worker() {
    let files = ["tests/in_browser/index.html", "tests/in_browser/worker.js", "tests/in_browser/harness.js"];
    let folder = host::build(&["--example", "behaviour"], "debug/examples", "behaviour", &files).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let profile = env::temp_dir().join(format!("shardwheel-web-{}", std::process::id()));
    let _ = fs::remove_dir_all(&profile);
    let browser = open(&address, &profile);
    // The page has a time limit for each behaviour; this is for a browser that does not start.
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(300));
        eprintln!("the browser has not answered for 5 minutes");
        std::process::exit(1);
    });
    let report = host::serve(&listener, &folder).unwrap();
    drop(browser);
    let _ = fs::remove_dir_all(&profile);
    println!("{report}");
    let (passed, failed): (Vec<_>, Vec<_>) = report.lines().partition(|line| line.contains(": ok"));
    assert!(failed.is_empty(), "{failed:#?}");
    for place in ["page ", "worker "] {
        assert!(passed.iter().filter(|line| line.starts_with(place)).count() >= 15, "few ran in a {place}");
    }
}
