//! Wakers that tell what becomes of them, and polls by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// In real time, what is due after this is polled before it is due, on a busy machine too.
pub(crate) const SOON: Duration = Duration::from_millis(500);

/// Counts how often it is woken; the `Arc` counts who holds it.
#[derive(Default)]
pub(crate) struct Bell(AtomicUsize);

impl Bell {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&bell));
        (bell, waker)
    }

    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs something when it is woken, once.
pub(crate) struct Acts(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Acts {
    pub(crate) fn waker(action: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Self(Mutex::new(Some(Box::new(action))))))
    }
}

impl Wake for Acts {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = action {
            action();
        }
    }
}

/// Polls once with that waker.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls a future that has to be ready.
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future, Waker::noop()) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is to be ready"),
    }
}

/// Polls a future that must not be ready.
pub(crate) fn is_pending<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    assert!(poll(future, waker).is_pending(), "too early");
}
