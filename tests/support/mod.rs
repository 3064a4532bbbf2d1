//! What the test targets share.

pub(crate) mod counting;
pub(crate) mod ledger;
pub(crate) mod processes;
pub(crate) mod timers;
pub(crate) mod wakers;

pub(crate) use counting::*;
pub(crate) use processes::*;
pub(crate) use timers::*;
pub(crate) use wakers::*;
