//! What an owner begins with: the newest snapshot, the last result, and a log that goes on from
//! there.
//!
//! The log must have each message after the snapshot, but for single ones that were deleted, and it must
//! reach as far as the last result. Otherwise messages that were answered are lost, and decisions would no
//! longer follow from the log: the partition stops, until somebody has restored a backup.

use async_nats::jetstream::stream::State;

use super::broker::{Broker, LastResult};
use super::failure::Failure;
use super::keeper::Keeper;
use super::names;
use super::partition::{Partition, Position};
use super::setup::RESTORE;

/// Where an owner begins.
pub(crate) struct Begin {
    pub(crate) keeper: Keeper,
    pub(crate) partition: Partition,
    /// The last result that stands.
    pub(crate) last: LastResult,
}

impl Begin {
    pub(crate) async fn read(broker: &Broker, number: u32, keep_log: bool) -> Result<Self, Failure> {
        broker.state(names::BOOKS).await?;
        let keeper = Keeper::load(broker.clone(), number, keep_log).await?;
        let last = broker.last_result(number).await?;
        let mut partition = keeper.restore().await?;
        fits(&partition.position, &last)?;
        partition.home = (number, broker.settings.partitions);
        let log = broker.state(&names::log(number)).await?;
        follows(&partition.position, &last, &log)?;
        Ok(Self { keeper, partition, last })
    }
}

/// The number of the first message that a stream has, or will have.
pub(crate) fn first(log: &State) -> u64 {
    if log.messages == 0 { log.last_sequence + 1 } else { log.first_sequence }
}

fn follows(position: &Position, last: &LastResult, log: &State) -> Result<(), Failure> {
    let (begin, end, input) = (first(log), log.last_sequence, position.input);
    if begin > input + 1 {
        return Err(Failure::permanent(format!(
            "the log has lost messages {} to {}, which no snapshot includes; {RESTORE}",
            input + 1,
            begin - 1
        )));
    }
    let known = input.max(last.input);
    if end < known {
        return Err(Failure::permanent(format!(
            "the log ends with message {end}, but messages up to {known} were decided; {RESTORE}"
        )));
    }
    Ok(())
}

/// Whether the last result follows from books. It does not if results of what they include are gone.
fn fits(position: &Position, last: &LastResult) -> Result<(), Failure> {
    // After a part of a result, the rest of the lines shows it.
    if position.input < last.input || last.ahead > 0 || position.digest == last.digest {
        return Ok(());
    }
    if position.input == last.input {
        return Err(differ(last));
    }
    Err(Failure::permanent(if last.is_none() {
        format!("the results are lost; {RESTORE}")
    } else {
        let (input, first) = (position.input, last.input + 1);
        format!("the results of messages {first} to {input} are lost; {RESTORE}")
    }))
}

/// The books up to the last result must be those of the owner that published it.
pub(crate) fn compare(position: &Position, last: &LastResult) -> Result<(), Failure> {
    // After a part of a result, the rest of the lines shows it.
    if last.ahead > 0 || last.digest == position.digest { Ok(()) } else { Err(differ(last)) }
}

pub(crate) fn differ(last: &LastResult) -> Failure {
    Failure::permanent(format!(
        "the decisions up to message {} differ from those that stand, as a message that was decided is gone, \
         or a worker has another version; {RESTORE}",
        last.input
    ))
}
