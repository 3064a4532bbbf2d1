//! The surface of `serve`: routes, answers, limits and time limits, over real connections.

mod limits;
mod lines;
mod requests;
#[path = "../support/mod.rs"]
mod support;

const HOUR: [&str; 2] = ["--check-after", "1h"];

fn names(statuses: &str) -> Vec<String> {
    statuses.split(' ').map(str::to_owned).collect()
}
