//! What a worker of a cluster reads from the broker, for a fuzzer: the real reading code, without a
//! broker.
//!
//! Two owners of one partition read the same messages, and the second one begins again now and then from
//! a snapshot. They must write the same lines, whatever the messages hold.

use async_nats::HeaderMap;
use async_nats::datetime;
use async_nats::jetstream::message::StreamMessage;

use crate::cluster::sandbox::Owner;

/// A message of a stream.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The number in its stream.
    pub sequence: u64,
    /// When the broker took it in, in ns since 1970.
    pub time: i64,
    /// Where it was published.
    pub subject: &'a str,
    /// Names and values, none of which has a line break.
    pub headers: Vec<(&'a str, &'a str)>,
    /// What it holds.
    pub payload: Vec<u8>,
}

impl Message<'_> {
    /// As the broker's client returns it.
    fn stored(&self) -> StreamMessage {
        let mut headers = HeaderMap::new();
        self.headers.iter().for_each(|&(name, value)| headers.insert(name, value));
        StreamMessage {
            subject: self.subject.into(),
            sequence: self.sequence,
            headers,
            payload: self.payload.clone().into(),
            time: datetime::from_nanos(self.time.into()).expect("64 bits are some centuries"),
        }
    }
}

/// A partition's messages, and two owners that read them.
#[derive(Debug)]
pub struct Sandbox {
    owners: [Owner; 2],
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { owners: [Owner::new(), Owner::new()] }
    }
}

impl Sandbox {
    /// Both owners read a message of the log.
    ///
    /// # Panics
    ///
    /// If they write different lines, or lines that a client cannot read.
    pub fn log(&mut self, message: &Message<'_>) {
        let ([first, second], message) = (&mut self.owners, message.stored());
        assert_eq!(first.read(&message), second.read(&message), "two owners decide the same");
    }

    /// The second owner begins again, from a snapshot of the first one.
    ///
    /// # Panics
    ///
    /// If the snapshot cannot be read.
    pub fn restart(&mut self) {
        let [first, second] = &mut self.owners;
        *second = first.snapshot().expect("a snapshot can be read");
    }

    /// An owner reads a last result, a head of snapshots and a snapshot that hold anything.
    pub fn begin(&self, message: &Message<'_>) {
        crate::cluster::sandbox::begin(&message.stored());
    }
}
