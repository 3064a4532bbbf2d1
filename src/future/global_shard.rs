//! The shard of the global `Timer`: of the process's, or of a scope's.

use std::ops::Deref;
use std::sync::Arc;

use crate::timer::{Inherited, ShardHandle, Timer};

/// The shard of the global `Timer` that a future waits on.
pub enum GlobalShard {
    /// That `Timer` is never freed, so its uses are not counted.
    Process(&'static ShardHandle),
    /// One of the [scope](crate::ManualClock::scope) of a manual clock.
    Scope(Arc<ShardHandle>),
}

impl GlobalShard {
    pub(super) fn current() -> Self {
        match Inherited::current().scope {
            None => Self::Process(Timer::global().handle()),
            Some(scope) => Self::Scope(Arc::clone(scope.timer.handle())),
        }
    }
}

impl Deref for GlobalShard {
    type Target = ShardHandle;

    fn deref(&self) -> &ShardHandle {
        match self {
            Self::Process(shard) => shard,
            Self::Scope(shard) => shard,
        }
    }
}
