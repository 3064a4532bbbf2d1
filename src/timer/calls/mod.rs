//! What a user does with a timer: schedules, cancels, reschedules, groups, asks.

mod by_key;
mod group;
#[cfg(feature = "introspect")]
pub(crate) mod introspect;
mod once;
mod recurring;

pub use by_key::CancelGuard;
pub use group::{Group, WeakGroup};
