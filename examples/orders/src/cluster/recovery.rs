//! What an owner begins with: the newest snapshot, the last result, and a log that goes on from
//! there.
//!
//! The log must have each message after the snapshot, and it must reach as far as the last result;
//! so must the results reach as far as the snapshot. Otherwise decisions would no longer follow
//! from the log: the partition stops, until somebody has restored a backup.

use async_nats::jetstream::stream::State;

use super::broker::{Broker, LastResult};
use super::failure::Failure;
use super::keeper::Keeper;
use super::names;
use super::partition::{Partition, Position};
use super::setup::lost;

/// Where an owner begins.
pub(crate) struct Begin {
    pub(crate) keeper: Keeper,
    pub(crate) partition: Partition,
    /// The last result that stands.
    pub(crate) last: LastResult,
}

impl Begin {
    pub(crate) async fn read(broker: &Broker, number: u32) -> Result<Self, Failure> {
        broker.state(names::BOOKS).await?;
        let keeper = Keeper::load(broker.clone(), number).await?;
        let last = broker.last_result(number).await?;
        let mut partition = keeper.restore().await?;
        partition.home = (number, broker.settings.partitions);
        follows(&partition.position, &last, &broker.state(&names::log(number)).await?)?;
        Ok(Self { keeper, partition, last })
    }
}

/// The number of the first message that a stream has, or will have.
pub(crate) fn first(log: &State) -> u64 {
    if log.messages == 0 { log.last_sequence + 1 } else { log.first_sequence }
}

/// Whether books, the last result and the log fit each other.
fn follows(position: &Position, last: &LastResult, log: &State) -> Result<(), Failure> {
    let (begin, end, input) = (first(log), log.last_sequence, position.input);
    // Messages without an answer have no result.
    if input > last.input && position.digest != last.digest {
        return Err(lost(&format!("the results of messages {} to {input} are lost", last.input + 1)));
    }
    if input == last.input {
        compare(position, last)?;
    }
    if begin > input + 1 {
        let (from, to) = (input + 1, begin - 1);
        return Err(lost(&format!("the log has lost messages {from} to {to}, which no snapshot includes")));
    }
    let known = input.max(last.input);
    if end < known {
        return Err(lost(&format!(
            "the log ends with message {end}, but messages up to {known} were decided"
        )));
    }
    Ok(())
}

/// The books up to the last result must be those of the owner that published it.
pub(crate) fn compare(position: &Position, last: &LastResult) -> Result<(), Failure> {
    if last.digest == position.digest {
        return Ok(());
    }
    let input = last.input;
    Err(lost(&format!(
        "the decisions up to message {input} differ from those that stand, or a worker has another version"
    )))
}
