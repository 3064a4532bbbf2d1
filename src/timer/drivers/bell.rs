//! What wakes a shard: its advancer's waker, and a job that comes back from an executor.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::board::Board;

/// The bell of one shard.
pub(crate) struct Bell {
    board: Arc<Board>,
    shard: usize,
}

impl Bell {
    pub(crate) fn new(board: &Arc<Board>, shard: usize) -> Arc<Self> {
        Arc::new(Self { board: Arc::clone(board), shard })
    }

    /// Makes the driver that holds the shard visit it.
    pub(crate) fn ring(&self) {
        self.board.ring(self.shard);
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}
