//! Wakers that count or act, and polls by hand.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

use shardwheel::Advancer;

/// A waker that counts its wakes. Its `Arc` counts the wakers that are alive.
#[derive(Default)]
pub(crate) struct Bell(AtomicUsize);

impl Bell {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&bell));
        (bell, waker)
    }

    /// A new bell, registered as the shard's waker.
    pub(crate) fn hung_in<T>(advancer: &mut Advancer<T>) -> Arc<Self> {
        let (bell, waker) = Self::new();
        advancer.register_waker(&waker);
        bell
    }

    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn has_rung(&self) -> bool {
        self.rings() > 0
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that runs an action at its first wake.
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

/// Polls a future that must be ready; again if it has given way to other tasks.
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    let (bell, waker) = Bell::new();
    loop {
        match poll(future, &waker) {
            Poll::Ready(output) => return output,
            Poll::Pending => assert_eq!(bell.0.swap(0, Ordering::SeqCst), 1, "the future is not ready"),
        }
    }
}

/// Polls a future that must not be ready.
pub(crate) fn is_pending<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    assert!(poll(future, waker).is_pending(), "the future is ready too early");
}

/// What is being done with a waker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Clone,
    Wake,
    Drop,
}

type Act = dyn Fn(To) + Send + Sync;

/// A waker that runs `act` whenever it is cloned, woken or dropped.
pub(crate) fn hooked(act: impl Fn(To) + Send + Sync + 'static) -> Waker {
    let act: Arc<Box<Act>> = Arc::new(Box::new(act));
    // SAFETY: the functions below keep to the contract: the data is a counted reference to an
    // `Act`, which is `Sync`.
    unsafe { Waker::from_raw(raw(act)) }
}

/// A waker whose drops panic. A panic of this one is caught.
pub(crate) struct DropPanics(Option<Waker>);

pub(crate) fn drop_panics() -> DropPanics {
    DropPanics(Some(hooked(|to| assert!(to != To::Drop, "a waker's drop panics"))))
}

impl Deref for DropPanics {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        self.0.as_ref().expect("it goes with the drop")
    }
}

impl Drop for DropPanics {
    fn drop(&mut self) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(self.0.take())));
    }
}

const HOOKED: RawWakerVTable =
    RawWakerVTable::new(clone_hooked, wake_hooked, wake_by_ref_hooked, drop_hooked);

fn raw(act: Arc<Box<Act>>) -> RawWaker {
    RawWaker::new(Arc::into_raw(act).cast(), &HOOKED)
}

/// # Safety
///
/// `data` came from [`raw`], and the caller owns one of its counts.
unsafe fn take(data: *const ()) -> Arc<Box<Act>> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(data.cast()) }
}

unsafe fn clone_hooked(data: *const ()) -> RawWaker {
    // SAFETY: a waker's data; the waker keeps its count.
    let act = ManuallyDrop::new(unsafe { take(data) });
    act(To::Clone);
    raw(Arc::clone(&act))
}

unsafe fn wake_hooked(data: *const ()) {
    // SAFETY: the data of a waker that ends here.
    let act = unsafe { take(data) };
    act(To::Wake);
}

unsafe fn wake_by_ref_hooked(data: *const ()) {
    // SAFETY: a waker's data; the waker keeps its count.
    ManuallyDrop::new(unsafe { take(data) })(To::Wake);
}

unsafe fn drop_hooked(data: *const ()) {
    // SAFETY: the data of a waker that ends here.
    let act = unsafe { take(data) };
    act(To::Drop);
}
