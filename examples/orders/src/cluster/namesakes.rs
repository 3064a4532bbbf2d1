//! Other workers that have the name of this one.
//!
//! Each worker renews an entry of the bucket with its name, and writes into it what no other one writes. If
//! two have one name, the others count one worker, and neither gets its share. A worker that died leaves its
//! entry, and does not renew it. So a worker that finds an entry when it begins ends if that is renewed; the
//! one that was first says so in `/healthz`, and goes on.

use async_nats::jetstream::kv::Entry;

use super::broker::Broker;
use super::failure::Failure;
use super::names;
use super::status::Health;
use super::watch;

/// So many renewals of an entry show that a worker lives. Some may have been on their way when it died.
const ENOUGH: u32 = 3;
/// Of so many renewals, one is said.
const SAID: u32 = 15;

#[derive(Default)]
pub(crate) struct Namesakes {
    name: String,
    /// The revision of an entry that another worker had left when this one began.
    before: Option<u64>,
    /// How often others have renewed the entry since.
    renewals: u32,
}

impl Namesakes {
    /// Looks whether another worker has, or had, a name.
    pub(crate) async fn before(broker: &Broker, name: &str) -> Self {
        let entry = broker.entry(&names::worker(name)).await.unwrap_or_default();
        let before = entry.filter(|(_, holder)| !holder.is_empty()).map(|(revision, _)| revision);
        Self { name: name.to_owned(), before, renewals: 0 }
    }

    /// Whether a change of the bucket shows that another worker has had the name for longer than this one,
    /// which writes `session` into its entries.
    pub(crate) fn show(&mut self, entry: &Entry, session: &str, health: &Health) -> bool {
        let is_other = watch::read(entry).is_some_and(|(other, _)| other != session);
        let is_new = self.before.is_none_or(|before| entry.revision > before);
        if entry.key != names::worker(&self.name) || !is_other || !is_new {
            return false;
        }
        self.renewals += 1;
        if self.renewals < ENOUGH {
            return false;
        }
        if self.renewals % SAID == ENOUGH {
            say!("{}: another worker has this name as well", self.name);
        }
        health.note_namesake(&self.name);
        self.before.is_some()
    }

    pub(crate) fn refusal(&self) -> Failure {
        let name = &self.name;
        Failure::permanent(format!("another worker is named {name} already; give this one another --worker"))
    }
}
