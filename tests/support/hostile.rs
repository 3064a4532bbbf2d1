//! User code that panics or acts on demand.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work`, which must panic with a literal, and returns the literal.
pub(crate) fn panics<R>(work: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).err().expect("the work panics");
    (*panic.downcast::<&'static str>().expect("the panic has a literal")).to_owned()
}

/// Runs `work` in a drop, while a panic unwinds.
pub(crate) fn while_unwinding(work: impl FnOnce()) {
    struct InDrop<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for InDrop<F> {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|work| work());
        }
    }
    let unwinds = move || {
        let _work = InDrop(Some(work));
        panic!("the caller panics");
    };
    assert_eq!(panics(unwinds), "the caller panics");
}

/// Panics when it is dropped.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a drop panics");
    }
}

/// Goes off once, at the n-th call after it was set to n.
#[derive(Clone, Default)]
pub(crate) struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    /// Sets the fuse; 0 puts it out.
    pub(crate) fn set(&self, nth: usize) {
        self.0.store(nth, Ordering::SeqCst);
    }

    /// Whether the fuse has gone off, or was put out.
    pub(crate) fn is_out(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn goes_off(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1)
    }
}
