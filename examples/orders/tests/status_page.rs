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
fn the_page_shows_the_figures_of_the_server() {
    let directory = Directory::new("page");
    let data = directory.path().join("data");
    let server = Server::start(&data, &["--check-after", "1h"]);
    let orders = (1..=1_234).map(|id| order(id, "nut")).collect::<String>();
    assert_eq!(server.post("/orders", &orders).status, 200);
    let payments = (1..=234).map(|id| payment(&format!("p-{id}"), id, 1999)).collect::<String>();
    assert_eq!(server.post("/payments", &payments).status, 200);
    let page = page(&directory, &format!("http://{}/", server.address));
    let pending = between(&page, "id=\"pending\"", "</section>");
    assert_eq!(between(pending, "<output>", "</output>"), "1,000");
    let decided = between(&page, "id=\"total\"", "</section>");
    assert_eq!(between(decided, "<output>", "</output>"), "234");
    let rate = between(&page, "id=\"placed\"", "</section>");
    assert_eq!(between(rate, "<output>", "</output>"), "0/s", "nothing is placed while the page looks");
    let state = between(&page, "id=\"state\">", "</p>");
    assert!(state.starts_with("ready; 0 checks"), "{state}");
}

/// The token stands behind `#` in the address, which is not sent.
#[test]
fn the_page_asks_for_the_token() {
    let directory = Directory::new("page-token");
    let data = directory.path().join("data");
    let server = Server::launch(Command::new(support::PROGRAM), &data, &["--token", "s3cret"]);
    let state = |address: &str| {
        let page = page(&directory, address);
        (between(&page, "id=\"state\">", "</p>").to_owned(), page.contains("id=\"ask\" hidden"))
    };
    let address = format!("http://{}/", server.address);
    assert_eq!(state(&address), ("no figures: the server answers 401".to_owned(), false));
    let (shown, hidden) = state(&format!("{address}#token=s3cret"));
    assert!(shown.starts_with("ready; 0 checks") && hidden, "{shown}");
}

/// The page as the browser has it after some seconds.
fn page(directory: &Directory, address: &str) -> String {
    let profile = directory.path().join("profile");
    let shown = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .output()
        .expect("the browser starts");
    String::from_utf8_lossy(&shown.stdout).into_owned()
}
