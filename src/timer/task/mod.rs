//! The payload of a timer's node: what it does, and how it is stored.

mod body;
mod inline;
mod member;
mod payload;
mod recurring;

pub(crate) use body::{RunContext, TaskBody, TaskKind};
pub(in crate::timer) use inline::{Inline, fits};
pub(in crate::timer) use member::Members;
pub(crate) use member::Membership;
pub(in crate::timer) use payload::RanTask;
pub(crate) use payload::Task;
pub use recurring::Occurrence;
pub(in crate::timer) use recurring::Recurring;
