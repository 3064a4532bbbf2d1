//! The status page in a real browser: what it shows after a few scrapes of a server with orders.

mod support;

use std::process::Command;

use support::{Directory, Server, order, payment};

/// Names under which the browser is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> &'static str {
    let runs =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|run| run.status.success());
    BROWSERS.into_iter().find(runs).expect("the test needs chromium")
}

/// The text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap_or_else(|| panic!("no {from} in\n{text}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} after {from} in\n{text}")).0
}

#[test]
fn the_page_draws_the_figures_of_the_server() {
    let directory = Directory::new("page");
    let server = Server::start(&directory.path().join("data"), &["--check-after", "1h"]);
    let orders = (1..=1_234).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).status, 200);
    let payments = (1..=234).map(|id| payment(&format!("p-{id}"), id, 1999)).collect::<String>();
    assert_eq!(server.post("/payments", &payments).status, 200);
    let profile = directory.path().join("profile");
    let shown = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{}/", server.address))
        .output()
        .expect("the browser starts");
    let page = String::from_utf8_lossy(&shown.stdout);
    let pending = between(&page, "id=\"pending\"", "</section>");
    assert_eq!(between(pending, "<output>", "</output>"), "1,000");
    let decided = between(&page, "id=\"total\"", "</section>");
    assert_eq!(between(decided, "<output>", "</output>"), "234");
    let points = between(pending, "<polyline points=\"", "\"");
    assert!(points.split(' ').count() >= 2, "a line of some scrapes: {points:?}");
    let rate = between(&page, "id=\"placed\"", "</section>");
    assert_eq!(between(rate, "<output>", "</output>"), "0/s", "nothing is placed while the page looks");
    let state = between(&page, "id=\"state\">", "</p>");
    assert!(state.starts_with("ready; 0 checks"), "{state}");
}
