//! What goes wrong in a cluster, of two kinds, and how long it is tried again.
//!
//! A failure is *temporary* if time may mend it: a server that is away, a stream that elects a leader, a
//! result that another owner was first to publish. It is tried again after a pause that grows, and what
//! is waited for is said every few seconds. A failure is *permanent* if only a person mends it. Its text
//! says what to do.
//!
//! | what fails | what it is |
//! |---|---|
//! | a request without an answer, a connection that is cut | temporary |
//! | the broker names its own state: a code of 500 or more, or one of [`PASSING`] | temporary |
//! | the broker refuses the request: any other code | permanent |
//! | a task has panicked | temporary |
//! | books, settings or files that cannot be read | permanent |

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use async_nats::jetstream::{self, ErrorCode, consumer, context, kv, stream};
use tokio::sync::oneshot;
use tokio::task::JoinError;

use crate::client;
use crate::store::StoreError;

use super::reader::Gap;
use super::setup;
use super::status::Health;

/// How often it is said what is waited for.
pub(crate) const SAY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Failure {
    Temporary(String),
    Permanent(String),
}

impl Failure {
    pub(crate) fn temporary(text: impl Into<String>) -> Self {
        Self::Temporary(text.into())
    }

    pub(crate) fn permanent(text: impl Into<String>) -> Self {
        Self::Permanent(text.into())
    }

    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::Permanent(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Temporary(text) | Self::Permanent(text)) = self;
        f.write_str(text)
    }
}

/// Codes below 500 that time may mend: another owner was first; servers that are to come; limits of an
/// account's storage, of consumers and of requests.
const PASSING: [ErrorCode; 7] = [
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE,
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
    ErrorCode::CLUSTER_NO_PEERS,
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ErrorCode::MAXIMUM_CONSUMERS_LIMIT,
    ErrorCode::STREAM_TOO_MANY_REQUESTS,
    ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY,
];

/// What the broker says when it has no room.
const FULL: [ErrorCode; 5] = [
    ErrorCode::INSUFFICIENT_RESOURCES,
    ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ErrorCode::MEMORY_RESOURCES_EXCEEDED,
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ErrorCode::STREAM_STORE_FAILED,
];

/// A failure by the word of the broker, if it has one; else the request got no answer.
fn of_request(error: &dyn Error, word: Option<&jetstream::Error>) -> Failure {
    let Some(word) = word else { return Failure::Temporary(error.to_string()) };
    let advice = "the broker has no room: raise its max_file_store, or the limit that it names";
    let is_full = FULL.contains(&word.error_code());
    let text = if is_full { format!("{error}; {advice}") } else { error.to_string() };
    let passes = word.code() >= 500 || PASSING.contains(&word.error_code());
    if passes { Failure::Temporary(text) } else { Failure::Permanent(text) }
}

/// The broker's word among the causes of an error.
fn word<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a jetstream::Error> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// The code that the broker gave.
pub(crate) fn code(error: &(dyn Error + 'static)) -> Option<ErrorCode> {
    word(error).map(jetstream::Error::error_code)
}

/// Failures of requests. Some kinds of errors have the broker's word in themselves.
macro_rules! requests {
    ($($error:ty $(, $word:path)?;)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                $(if let $word(word) = error.kind() {
                    return of_request(&error, Some(&word));
                })?
                of_request(&error, word(&error))
            }
        }
    )*};
}

requests! {
    async_nats::PublishError;
    context::PublishError;
    context::RequestError;
    context::KeyValueError;
    context::GetStreamError, context::GetStreamErrorKind::JetStream;
    context::CreateStreamError, context::CreateStreamErrorKind::JetStream;
    stream::LastRawMessageError, stream::LastRawMessageErrorKind::JetStream;
    stream::ConsumerError, stream::ConsumerErrorKind::JetStream;
    stream::PurgeError, stream::PurgeErrorKind::JetStream;
    consumer::StreamError;
    kv::CreateError;
    kv::EntryError;
    kv::PutError;
    kv::UpdateError;
}

macro_rules! others {
    ($($error:ty => $kind:ident,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$kind(error.to_string())
            }
        }
    )*};
}

others! {
    shardwheel::Elapsed => Temporary,
    oneshot::error::RecvError => Temporary,
    JoinError => Temporary,
    io::Error => Permanent,
    serde_json::Error => Permanent,
    StoreError => Permanent,
}

impl From<Gap> for Failure {
    fn from(gap: Gap) -> Self {
        match gap {
            Gap::Stream(name) => setup::missing(&name),
            // A new owner finds out why.
            Gap::Message(_) => Self::Temporary(gap.to_string()),
        }
    }
}

impl From<Failure> for Box<dyn Error + Send + Sync> {
    fn from(failure: Failure) -> Self {
        failure.to_string().into()
    }
}

/// How long to try, and where to say what is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    most: Duration,
    health: Option<Arc<Health>>,
}

impl Patience {
    pub(crate) fn of(most: Duration) -> Self {
        Self { most, health: None }
    }

    /// A worker waits for its broker as long as it lives.
    pub(crate) fn without_end(health: Arc<Health>) -> Self {
        Self { most: Duration::MAX, health: Some(health) }
    }

    /// Tries until it succeeds, or fails for ever. One attempt takes no longer than `each`, and all of
    /// them not much longer than this patience.
    pub(crate) async fn insist<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        each: Duration,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        let (begin, mut said, mut waits) = (Instant::now(), None, client::waits());
        loop {
            let attempted = shardwheel::timeout(each, attempt()).await;
            match attempted.unwrap_or_else(|_| Err(Failure::temporary("no answer"))) {
                Err(Failure::Temporary(text)) if begin.elapsed() < self.most => {
                    self.wait(&text, begin, &mut said);
                    shardwheel::sleep(waits.next().unwrap_or_default()).await;
                }
                result => return result,
            }
        }
    }

    fn wait(&self, text: &str, begin: Instant, said: &mut Option<Instant>) {
        let text = format!("waiting for NATS: {text}");
        if said.is_none_or(|at| at.elapsed() >= SAY) {
            *said = Some(Instant::now());
            say!("{text}; trying again for {} s", begin.elapsed().as_secs());
        }
        if let Some(health) = &self.health {
            health.wait_for(Some(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the broker sends them.
    fn said(code: u64, error_code: u64) -> Failure {
        let word = format!("{{\"code\":{code},\"err_code\":{error_code},\"description\":\"d\"}}");
        let word = serde_json::from_str::<jetstream::Error>(&word).expect("an error");
        let other = context::PublishErrorKind::Other;
        kv::UpdateError::with_source(
            kv::UpdateErrorKind::Other,
            context::PublishError::with_source(other, word),
        )
        .into()
    }

    #[test]
    fn what_the_broker_says_of_itself_is_temporary_and_what_it_refuses_is_not() {
        let (full, not_leader, second) = (said(503, 10_077), said(500, 10_009), said(400, 10_071));
        assert!([&full, &not_leader, &second].iter().all(|failure| !failure.is_permanent()));
        assert!(full.to_string().contains("no room") && !second.to_string().contains("no room"));
        let (sealed, too_long) = (said(400, 10_109), said(400, 10_054));
        assert!(sealed.is_permanent() && too_long.is_permanent());
        let lost = Failure::from(context::PublishError::new(context::PublishErrorKind::TimedOut));
        assert!(!lost.is_permanent());
        let gone = Failure::from(Gap::Stream("shop-1".to_owned()));
        assert!(gone.is_permanent() && gone.to_string().contains("the stream shop-1 is missing"));
    }

    #[tokio::test]
    async fn what_is_temporary_is_tried_again_and_what_is_permanent_is_not() {
        let mut attempts = 0;
        let patience = Patience::of(Duration::from_secs(60));
        let failed =
            patience.insist(SAY, || {
                attempts += 1;
                let permanent = attempts == 3;
                async move {
                    Err::<(), _>(if permanent { Failure::permanent("p") } else { Failure::temporary("t") })
                }
            });
        assert!(failed.await.is_err_and(|failure| failure.is_permanent()));
        assert_eq!(attempts, 3);
        let patience = Patience::of(Duration::ZERO);
        let silent = patience.insist(Duration::from_millis(1), std::future::pending::<Result<(), _>>);
        assert_eq!(silent.await.map_err(|failure| failure.to_string()), Err("no answer".to_owned()));
    }
}
