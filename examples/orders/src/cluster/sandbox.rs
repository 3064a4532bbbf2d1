//! The code that reads what the broker holds, without a broker: for `sandbox.rs` of this package.

use async_nats::jetstream::message::StreamMessage;

use crate::serve::books::Shop;
use crate::store::StoreError;

use super::broker::LastResult;
use super::partition::{MAX_LINES, Partition};
use super::reader::Input;
use super::{client, keeper, owner, snapshot};

const SHOP: Shop = Shop { stock: 5, check_after: 100, max_pending: usize::MAX, in_memory: usize::MAX };
const REMEMBER: u64 = 200;
const HOME: (u32, u32) = (0, 2);
/// Bytes of a result, as if the broker took no more.
const RESULT: usize = 1_024;

/// An owner of a partition.
pub(crate) struct Owner(Partition);

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.position.fmt(f)
    }
}

impl Owner {
    pub(crate) fn new() -> Self {
        let mut partition = Partition::new(SHOP, REMEMBER).expect("an empty partition");
        partition.home = HOME;
        Self(partition)
    }

    /// Returns the lines that answer a message.
    pub(crate) fn read(&mut self, message: &StreamMessage) -> String {
        let Some(input) = Input::of(message.clone()) else { return String::new() };
        let (mut lines, before) = (String::new(), self.0.position);
        let applied = self.0.apply(&input, &mut lines).expect("no message is an error");
        assert!(self.0.position.time >= before.time, "time does not go back");
        let (found, sent) = (client::lines(lines.as_bytes()).len(), applied.answers.len());
        assert_eq!(found, sent + applied.changes.ended.len(), "a line for each answer and each outcome");
        assert!(sent <= MAX_LINES && lines.len() <= 2 * MAX_LINES * 250, "{} bytes", lines.len());
        let (mut rest, mut bytes) = (&lines[..], 0);
        while !rest.is_empty() {
            let (part, after) = rest.split_at(owner::cut(rest, RESULT).expect("a line fits"));
            assert!(!part.is_empty() && part.ends_with('\n'), "whole lines");
            (bytes, rest) = (bytes + part.len(), after);
        }
        assert_eq!(bytes, lines.len());
        lines
    }

    /// An owner that begins with the snapshot of this one.
    pub(crate) fn snapshot(&self) -> Result<Self, StoreError> {
        let mut partition = snapshot::decode(&snapshot::encode(&self.0), SHOP, REMEMBER)?;
        partition.home = HOME;
        assert_eq!(partition.position, self.0.position);
        Ok(Self(partition))
    }
}

/// Reads a message as each thing that an owner begins with. It is refused, or not.
pub(crate) fn begin(message: &StreamMessage) {
    let _ = LastResult::of(0, message);
    let _ = client::lines(&message.payload);
    keeper::read_head(&message.payload);
    if let Ok(partition) = snapshot::decode(&message.payload, SHOP, REMEMBER) {
        let same = snapshot::decode(&snapshot::encode(&partition), SHOP, REMEMBER);
        assert!(same.is_ok_and(|same| same.position == partition.position));
    }
}
