//! A process for each run: the program starts itself again, and the child says what it counted and measured in one
//! line of JSON.

use std::io;

use serde_json::{Value, json};
use shardwheel_benches::{ask_child, back_memory, pin};

use crate::plan::Plan;
use crate::run::{self, Count, Outcome};

/// What the child is given, after [`CHILD`](shardwheel_benches::CHILD).
pub(crate) fn words(plan: &Plan) -> [String; 2] {
    [plan.timers().to_string(), plan.seed().to_string()]
}

/// Reads what [`words`] wrote.
pub(crate) fn parse(words: &[String]) -> Option<Plan> {
    let [timers, seed] = words else { return None };
    Plan::new(timers.parse().ok()?, seed.parse().ok()?)
}

/// Measures in this process, a child.
pub(crate) fn run(plan: &Plan) {
    pin(0);
    println!("{}", line(&run::run(plan)));
}

/// What a timer takes, its payload and its key included, and some to spare.
const BYTES: usize = 48;

/// Has a child process measure, in memory that the machine has.
pub(crate) fn ask(plan: &Plan) -> io::Result<Outcome> {
    back_memory(plan.timers() * BYTES);
    read(&ask_child(words(plan))?)
}

fn line(outcome: &Outcome) -> Value {
    let count = |count: &Count| json!([count.what, count.counted, count.expected]);
    json!({ "counts": outcome.counts.iter().map(count).collect::<Vec<_>>(), "figures": outcome.figures })
}

fn read(line: &[u8]) -> io::Result<Outcome> {
    let mut answer = serde_json::from_slice::<Value>(line)?;
    let counts = serde_json::from_value::<Vec<(String, u64, u64)>>(answer["counts"].take())?;
    let count = |(what, counted, expected)| Count { what, counted, expected };
    let counts = counts.into_iter().map(count).collect();
    Ok(Outcome { counts, figures: serde_json::from_value(answer["figures"].take())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_comes_back() {
        let counts = vec![Count { what: "fired".to_owned(), counted: u64::MAX, expected: 1 }];
        let outcome = Outcome { counts, figures: vec![("µs".to_owned(), 1.25)] };
        let line = line(&outcome).to_string();
        assert!(!line.contains('\n'));
        assert_eq!(read(line.as_bytes()).unwrap(), outcome);
        assert!(read(b"{}").is_err());
    }
}
