//! What goes wrong in a cluster, of two kinds, and how long it is tried again.
//!
//! A failure is *temporary* if time may mend it: a server that is away, a stream that elects a
//! leader, a result that another owner was first to publish, and whatever else the broker answers.
//! It is tried again after a pause that grows, and what is waited for is said every few seconds. A
//! failure is *permanent* if only a person mends it: settings that differ, and what the broker has
//! lost. Its text says what to do.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::status::Health;

/// How often it is said what is waited for.
pub(crate) const SAY: Duration = Duration::from_secs(5);

/// The waits between two attempts of whatever the broker is asked.
pub(crate) fn waits() -> impl Iterator<Item = Duration> {
    let double = |wait: &Duration| Some(Duration::from_secs(2).min(*wait * 2));
    std::iter::successors(Some(Duration::from_millis(20)), double)
}

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

/// What others report may pass.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Temporary(error.to_string())
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
        let (begin, mut said, mut waits) = (Instant::now(), None, waits());
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
