//! A process for each run: the program starts itself again, and the child says what it measured in one line of
//! JSON.

use std::io;

use serde_json::{Value, json};
use shardwheel_benches::{ask_child, back_memory, pin};

use crate::peer::{Measure, Outcome, Peer, Task};
use crate::sections::Section;

/// What the child is given, after [`CHILD`](shardwheel_benches::CHILD).
pub(crate) fn words(section: &Section, peer: &Peer, task: Task) -> [String; 4] {
    [section.name.to_owned(), peer.engine.to_owned(), task.size.to_string(), task.round.to_string()]
}

/// Measures in this process, a child.
pub(crate) fn run(measure: Measure, task: Task) {
    pin(0);
    println!("{}", line(&measure(task)));
}

/// What a timer takes at most, in the hungriest of the structures.
const BYTES: usize = 256;

/// Has a child process measure, in memory that the machine has.
pub(crate) fn ask(section: &Section, peer: &Peer, task: Task) -> io::Result<Outcome> {
    back_memory(task.size * BYTES);
    read(&ask_child(words(section, peer, task))?)
}

fn line(outcome: &Outcome) -> Value {
    json!({ "checksum": outcome.checksum, "figures": outcome.figures })
}

fn read(line: &[u8]) -> io::Result<Outcome> {
    let mut answer = serde_json::from_slice::<Value>(line)?;
    let checksum = answer["checksum"].as_u64().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Outcome { checksum, figures: serde_json::from_value(answer["figures"].take())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_comes_back() {
        let figures = vec![("µs".to_owned(), 1.25), ("a".to_owned(), 0.0)];
        let outcome = Outcome { checksum: u64::MAX, figures };
        let line = line(&outcome).to_string();
        assert!(!line.contains('\n'));
        assert_eq!(read(line.as_bytes()).unwrap(), outcome);
        assert!(read(b"{}").is_err());
    }
}
