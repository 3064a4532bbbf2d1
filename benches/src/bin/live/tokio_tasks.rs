//! The same runtimes, with sleeps made by tasks: a worker keeps some of its state where its own tasks reach it
//! without a lock, and the alternative timer is made for that.
//!
//! A thread that measures starts one task and waits for it. The task gives way after each batch, since a worker looks
//! after its timers between tasks alone; a moment of the scheduler's own work is in the figures for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::yield_now;

use crate::engine::{Live, Sleeps};
use crate::ledger::Note;
use crate::tokio_time::Bare;

/// A runtime whose sleeps are made by its tasks.
pub(crate) struct InTasks<const ALTERNATIVE: bool>(Bare<ALTERNATIVE>);

/// With the timer that every runtime has.
pub(crate) type TokioTasks = InTasks<false>;

/// With the alternative one.
#[cfg(tokio_unstable)]
pub(crate) type TokioAlternativeTasks = InTasks<true>;

impl<const ALTERNATIVE: bool> Live for InTasks<ALTERNATIVE> {
    const NAME: &'static str = if ALTERNATIVE { "tokio alternative in tasks" } else { "tokio in tasks" };

    type Kept = <Bare<ALTERNATIVE> as Live>::Kept;

    fn start(tick: Duration) -> Self {
        Self(Bare::start(tick))
    }

    fn enter(&self) -> impl Sized {
        self.0.enter()
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        self.0.place(due, note)
    }
}

impl<const ALTERNATIVE: bool> Sleeps for InTasks<ALTERNATIVE> {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        self.0.sleep(duration)
    }

    fn repeat(self: &Arc<Self>, times: usize, work: impl Fn(&Self) + Send + 'static) {
        let engine = Arc::clone(self);
        let task = self.0.runtime.spawn(async move {
            for _ in 0..times {
                work(&engine);
                yield_now().await;
            }
        });
        self.0.runtime.block_on(task).expect("a task that makes sleeps panicked");
    }
}
