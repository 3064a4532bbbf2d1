//! Watchdogs, processes of their own, and user code that misbehaves on demand.

use std::any::type_name;
use std::env;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, ManualClock, Timer, TimerKey};

use super::timers::*;

/// For how long a test may run until it counts as hanging.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs `work` on a thread of its own, and panics if it does not end: a hang is a failure.
pub(crate) fn watched<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, ended) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let _done = done;
        work()
    });
    assert_eq!(ended.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected), "it hangs");
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Names the test that a process was started for.
const CHILD: &str = "SHARDWHEEL_CHILD";

/// Runs the calling test, whose closure `body` is, in a process of its own, which must neither
/// abort nor hang.
pub(crate) fn survives<F: FnOnce()>(body: F) {
    survives_in(Command::new(env::current_exe().expect("a test has a file")), body);
}

/// The same in a process that `command` starts.
pub(crate) fn survives_in<F: FnOnce()>(mut command: Command, body: F) {
    let closure = type_name::<F>().trim_end_matches("::{{closure}}");
    let (_, test) = closure.split_once("::").expect("a test of a module");
    if env::var(CHILD).is_ok_and(|child| child == test) {
        return body();
    }
    let command = command.args([test, "--exact", "--nocapture", "--test-threads=2"]).env(CHILD, test);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process starts");
    let (status, errors) = watch(child);
    assert!(status.is_some_and(|status| status.success()), "{status:?} (None: it hangs)\n{errors}");
}

/// How the process has ended, and what it wrote. It is killed when its time is over.
fn watch(mut child: Child) -> (Option<ExitStatus>, String) {
    let mut stderr = child.stderr.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        drop(stderr.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return (Some(status), reader.join().expect("reading does not panic"));
        }
        thread::sleep(ms(5));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    (None, reader.join().expect("reading does not panic"))
}

/// Schedules on a timer that is open and has room.
pub(crate) fn after(timer: &Timer, delay: Duration, callback: impl FnOnce() + Send + 'static) -> TimerKey {
    timer.schedule_after(delay, callback).expect("the timer is open")
}

/// Shut at first. Threads wait before it until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let is_open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
    }
}

/// Goes off once: when it is asked for the n-th time after it was set to n.
#[derive(Clone, Default)]
pub(crate) struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    /// 0 puts it out.
    pub(crate) fn set(&self, nth: usize) {
        self.0.store(nth, Ordering::SeqCst);
    }

    /// Whether it has gone off, or was put out.
    pub(crate) fn is_out(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn goes_off(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1)
    }
}

/// Panics when it is dropped.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a drop panics");
    }
}

/// The system's clock or a manual one, with user code that runs whenever it is read.
pub(crate) struct Tampered<F> {
    pub(crate) before: F,
    pub(crate) manual: Option<ManualClock>,
}

impl<F: Fn() + Send + Sync + 'static> Clock for Tampered<F> {
    fn now(&self) -> Instant {
        (self.before)();
        self.manual.as_ref().map_or_else(Instant::now, Clock::now)
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        self.manual.as_ref()
    }
}

/// Whether the calling thread is a shard's of a timer with that thread name.
pub(crate) fn is_on_shard_of(name: &str) -> bool {
    thread::current().name().is_some_and(|thread| thread.starts_with(name))
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
    // SAFETY: the functions below keep to the contract: the data is a counted reference to an `Act`
    // that any thread may use.
    unsafe { Waker::from_raw(raw(act)) }
}

const HOOKED: RawWakerVTable =
    RawWakerVTable::new(clone_hooked, wake_hooked, wake_by_ref_hooked, drop_hooked);

fn raw(act: Arc<Box<Act>>) -> RawWaker {
    RawWaker::new(Arc::into_raw(act).cast(), &HOOKED)
}

/// # Safety
///
/// `data` came from [`raw`], and its count is the caller's.
unsafe fn take(data: *const ()) -> Arc<Box<Act>> {
    // SAFETY: as the caller says.
    unsafe { Arc::from_raw(data.cast()) }
}

unsafe fn clone_hooked(data: *const ()) -> RawWaker {
    // SAFETY: a waker's data; its count stays the waker's.
    let act = std::mem::ManuallyDrop::new(unsafe { take(data) });
    act(To::Clone);
    raw(Arc::clone(&act))
}

unsafe fn wake_hooked(data: *const ()) {
    // SAFETY: the data of a waker that ends here.
    let act = unsafe { take(data) };
    act(To::Wake);
}

unsafe fn wake_by_ref_hooked(data: *const ()) {
    // SAFETY: a waker's data; its count stays the waker's.
    std::mem::ManuallyDrop::new(unsafe { take(data) })(To::Wake);
}

unsafe fn drop_hooked(data: *const ()) {
    // SAFETY: the data of a waker that ends here.
    let act = unsafe { take(data) };
    act(To::Drop);
}
