//! Reads a stream from one message on, in order and without gaps, across all that happens to
//! servers and connections.
//!
//! The stream's leader is asked for each message by its number, several at a time while there are
//! many. So nothing that the broker sends by itself can be lost: an answer that does not come is a
//! failure, and the message is asked for again. A subscription to the stream's subjects is the
//! *bell*: it only says that a message is on its way. The leader stores it a moment later, and the
//! bell may be lost with a connection, so after a bell the reader asks again after pauses that
//! grow, up to [`LONGEST`].

use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use futures_util::future::try_join_all;
use futures_util::{FutureExt, StreamExt};

use super::broker::{Broker, Failure};

/// Messages that are asked for at once, at most.
const WIDEST: u64 = 32;
/// The pauses while the next message is not there.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);
/// After so many answers in a row that there is no next message the leader is asked for its last one.
const MISSES: u32 = 10;

/// A message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) sequence: u64,
    /// When the broker took it in, in ns since 1970.
    pub(crate) time: u64,
    pub(crate) subject: String,
    pub(crate) payload: bytes::Bytes,
}

pub(crate) struct Reader {
    name: String,
    stream: Stream<()>,
    bell: Subscriber,
    next: u64,
    /// How many messages are asked for at once.
    width: u64,
    pause: Duration,
    /// How often in a row the next message was not there.
    misses: u32,
}

impl Reader {
    /// A reader that begins with message number `next`.
    pub(crate) async fn new(
        broker: &Broker,
        name: String,
        subjects: String,
        next: u64,
    ) -> Result<Self, Failure> {
        let bell = broker.jetstream.client().subscribe(subjects).await?;
        let stream = broker.stream(&name).await?;
        Ok(Self { name, stream, bell, next, width: 1, pause: SHORTEST, misses: 0 })
    }

    /// The next messages, as far as the leader has them now.
    ///
    /// # Errors
    ///
    /// The leader does not answer, or a message is gone. The reader is where it was.
    pub(crate) async fn read(&mut self) -> Result<Vec<Input>, Failure> {
        // What has rung so far is asked for now.
        while let Some(Some(_)) = self.bell.next().now_or_never() {}
        // Asked before the message itself, so that one which comes meanwhile is not taken for lost.
        let last = if self.misses >= MISSES { self.stream.get_info().await?.state.last_sequence } else { 0 };
        let numbers = self.next..self.next + self.width;
        let found = try_join_all(numbers.map(|number| message(&self.stream, number))).await?;
        let inputs = found.into_iter().map_while(|input| input).collect::<Vec<_>>();
        if inputs.is_empty() && self.next <= last {
            return Err(format!("{}: message {} is gone", self.name, self.next).into());
        }
        if inputs.is_empty() {
            self.misses = self.misses.saturating_add(1);
        } else {
            (self.pause, self.misses) = (SHORTEST, 0);
        }
        self.next += inputs.len() as u64;
        self.width = (2 * inputs.len() as u64).clamp(1, WIDEST);
        Ok(inputs)
    }

    /// Waits until there may be more. A caller may drop the future.
    pub(crate) async fn more(&mut self) {
        let pause = self.pause;
        self.pause = LONGEST.min(pause * 2);
        tokio::select! {
            Some(_) = self.bell.next() => self.pause = SHORTEST,
            () = shardwheel::sleep(pause) => {}
        }
    }
}

async fn message(stream: &Stream<()>, number: u64) -> Result<Option<Input>, Failure> {
    match stream.get_raw_message(number).await {
        Ok(message) => Ok(Some(Input::of(message)?)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Input {
    fn of(message: StreamMessage) -> Result<Self, Failure> {
        let time = u64::try_from(message.time.unix_timestamp_nanos())?;
        let StreamMessage { sequence, subject, payload, .. } = message;
        Ok(Self { sequence, time, subject: subject.to_string(), payload })
    }
}
