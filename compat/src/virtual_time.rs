//! tokio: virtual time for tests.
//!
//! The clock of a scope and tokio's paused clock go together. tokio's clock leads, because tokio
//! knows when its tasks wait and when `spawn_blocking` is at work: it moves on its own to the next
//! of tokio's timers. Three parties keep the two in step:
//!
//! - The *driver* is a task that waits, by one of tokio's timers, for the next deadline of the
//!   scope's clock.
//! - The *hooks* run on the runtime's thread. After each wait of the thread, and before any task
//!   runs, the scope's clock follows tokio's, and runs what is due.
//! - The *watch* is a thread in real time. It permits the driver one step when the runtime's thread
//!   is parked, so that what sockets have to say comes before the step. If nothing is pending, it
//!   permits a probe after [`SILENCE`]: a step of a millisecond, which tokio makes unless
//!   `spawn_blocking` is at work. Then nothing can wake the program: it has stalled.
//!
//! The watch learns that the thread is about to park, not that it has looked at its sockets: the
//! system may take the processor away in between. So the watch pauses, and it wakes the thread and
//! looks again: it permits a step only if it alone has woken the thread.

use std::future::{IntoFuture, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, ManualClock, Timer};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task;
use tokio::time;

/// How long a program that has nothing pending is waited for, in real time: another thread or a
/// socket may wake it.
const SILENCE: Duration = Duration::from_secs(3);

/// How long the watch leaves a parked thread alone, and how often it must find it so.
const PAUSE: Duration = Duration::from_micros(50);
const LOOKS: u32 = 2;

/// How often the thread parks for a step of the driver. The first time it may have been woken for
/// the step itself, and tokio does not move its clock then.
const PARKS: u32 = 2;

/// Runs an async test by virtual time, in the place of `#[tokio::test(start_paused = true)]`:
/// whenever all its tasks wait, the time moves to the next deadline. Hours take no time.
///
/// `program` gets the clock, and runs in that clock's [scope](ManualClock::scope) on a runtime of
/// tokio with one thread. shardwheel's free functions and [`Timer::global`] go by the clock, and
/// so do [`shardwheel::now`], each [`Timer`] that is built with the clock, and `tokio::time`. That
/// holds for the tasks that the program spawns, and for callbacks, too. The threads of
/// `spawn_blocking` and other threads are outside of the scope: they go by the system's time.
///
/// # What holds the time up
///
/// The time stands still while
///
/// - a task can run,
/// - a closure of `spawn_blocking` runs, and what tokio does by one, such as its `fs`,
/// - a future in [`real_work`] is pending,
/// - data is on its way between two sockets of this program.
///
/// What tokio does not tell is *not* seen: a socket whose peer is another process or another thread,
/// a child process, a thread of your own that wakes a task later. A time limit passes while the
/// program waits for such work: put it in [`real_work`]. tokio's own timers look at no socket
/// before they move the time, as under `start_paused`.
///
/// [`ManualClock::advance`] moves the time by hand; tokio's follows when the tasks wait next. After
/// tokio's `advance`, the clock follows when the tasks wait next.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{sleep, timeout};
/// use shardwheel_compat::virtual_time;
///
/// // #[test]
/// fn a_slow_answer_is_given_up() {
///     virtual_time(|clock| async move {
///         let answer = tokio::spawn(async { sleep(Duration::from_secs(7200)).await });
///         assert!(timeout(Duration::from_secs(3600), answer).await.is_err());
///         assert_eq!(clock.elapsed(), Duration::from_secs(3600));
///     });
/// }
/// # a_slow_answer_is_given_up();
/// ```
///
/// # Panics
///
/// If the program *stalls*: it waits, nothing is pending that could wake it, and nothing else has
/// woken it for three seconds of real time. The message says at which time, and what is pending; with
/// the feature `introspect` also where it was set. The panic of the program itself goes on as it is.
///
/// It panics within another runtime of tokio, and if no thread or runtime can be made.
///
/// # Performance
///
/// Before each step to the next deadline, another thread pauses twice for 50 us and looks whether
/// there is work: some 4 ms a step were seen where nine programs shared each core. A program that
/// waits for ever beside a recurring timer never ends.
#[track_caller]
pub fn virtual_time<F: IntoFuture>(program: impl FnOnce(ManualClock) -> F) -> F::Output {
    let shared = Arc::new(Shared::new());
    let output = thread::scope(|threads| {
        let _end = End(&shared);
        threads.spawn(|| shared.watch());
        let (output, _waiting) = shared.clock.scope(|| shared.run(program));
        output
    });
    match output {
        Ok(output) => output,
        Err(stall) => panic!("{stall}"),
    }
}

/// Holds the time of a [`virtual_time`] up until `work` is ready: for work of which tokio does not
/// know, such as the answer of another process.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::timeout;
/// use shardwheel_compat::{real_work, virtual_time};
///
/// virtual_time(|_clock| async {
///     let (sender, answer) = tokio::sync::oneshot::channel();
///     std::thread::spawn(move || {
///         std::thread::sleep(Duration::from_millis(20));
///         sender.send(7)
///     });
///     let limited = timeout(Duration::from_millis(1), real_work(answer)).await;
///     assert_eq!(limited, Ok(Ok(7)));
/// });
/// ```
///
/// # Panics
///
/// Outside of a runtime of tokio.
///
/// # Performance
///
/// While it is pending, it takes a thread of tokio's pool for `spawn_blocking`, by which tokio knows
/// that there is work. In a program in real time it has no other effect.
pub async fn real_work<F: IntoFuture>(work: F) -> F::Output {
    // Dropped with this future, which ends the closure.
    let (_at_work, end) = mpsc::channel::<()>();
    drop(task::spawn_blocking(move || end.recv()));
    work.await
}

struct Shared {
    clock: ManualClock,
    /// When the program began: by the clock, and by tokio.
    start: OnceLock<(Instant, time::Instant)>,
    state: Mutex<State>,
    /// The watch waits for it.
    parked: Condvar,
    /// The driver waits for it.
    changed: Notify,
}

#[derive(Default)]
struct State {
    has_ended: bool,
    is_parked: bool,
    parks: u64,
    /// The watch has woken the thread, and how often it alone did in turn.
    is_look: bool,
    looks: u32,
    /// The watch permits a step.
    may_step: bool,
    /// The step that the driver waits for.
    step: Option<Step>,
}

#[derive(Clone, Copy)]
struct Step {
    /// The clock's next deadline; `None` for a probe.
    next: Option<Instant>,
    /// The same time by tokio.
    at: time::Instant,
    parks_left: u32,
}

/// Ends the watch, also if the program panics.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state().has_ended = true;
        self.0.parked.notify_one();
    }
}

impl Shared {
    fn new() -> Self {
        let (clock, start, state) = (ManualClock::new(), OnceLock::new(), Mutex::default());
        Self { clock, start, state, parked: Condvar::new(), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the program; an error is a stall.
    fn run<F: IntoFuture>(
        self: &Arc<Self>,
        program: impl FnOnce(ManualClock) -> F,
    ) -> Result<F::Output, String> {
        let (park, unpark, driver) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .on_thread_park(move || park.before_park())
            .on_thread_unpark(move || unpark.after_park())
            .build()
            .unwrap_or_else(|error| panic!("the runtime cannot be made: {error}"));
        runtime.block_on(async {
            self.start.get_or_init(|| (self.clock.now(), time::Instant::now()));
            let mut stall = tokio::spawn(async move { driver.drive().await });
            let mut program = pin!(program(self.clock.clone()).into_future());
            poll_fn(|context| {
                if let Poll::Ready(output) = program.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                Pin::new(&mut stall).poll(context).map(|stall| Err(stall.expect("the driver runs")))
            })
            .await
        })
    }

    /// How far tokio's clock has moved.
    fn elapsed_by_tokio(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, |(_, start)| start.elapsed())
    }

    // ---- the hooks ---------------------------------------------------------------------------

    fn before_park(&self) {
        let (next, behind) = (self.clock.next_deadline(), self.clock.elapsed() > self.elapsed_by_tokio());
        let mut state = self.state();
        if behind || state.step.is_some_and(|step| step.next != next) {
            state.step = None;
            self.changed.notify_one();
        }
        state.is_parked = true;
        state.parks += 1;
        self.parked.notify_one();
    }

    fn after_park(&self) {
        let mut state = self.state();
        state.is_parked = false;
        if !mem::take(&mut state.is_look) {
            state.looks = 0;
        }
        if let Some(step) = &mut state.step {
            step.parks_left -= 1;
            if time::Instant::now() >= step.at {
                state.step = None;
            } else if step.parks_left == 0 {
                state.step = None;
                self.changed.notify_one();
            }
        }
        drop(state);
        let ahead = self.elapsed_by_tokio().saturating_sub(self.clock.elapsed());
        if !ahead.is_zero() {
            self.clock.advance(ahead);
        }
    }

    // ---- the watch ---------------------------------------------------------------------------

    fn watch(&self) {
        let mut state = self.state();
        while !state.has_ended {
            if !state.is_parked || state.is_look || state.may_step || state.step.is_some() {
                state = self.parked.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (parks, is_pending) = (state.parks, self.clock.next_deadline().is_some());
            let patience = if is_pending { PAUSE } else { SILENCE };
            let is_still_parked =
                |state: &mut State| state.is_parked && state.parks == parks && !state.has_ended;
            let waited = self.parked.wait_timeout_while(state, patience, is_still_parked);
            let outcome;
            (state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            if outcome.timed_out() {
                (state.is_look, state.looks) = (true, state.looks + 1);
                state.may_step = !is_pending || state.looks >= LOOKS;
                self.changed.notify_one();
            }
        }
    }

    // ---- the driver --------------------------------------------------------------------------

    /// Makes tokio's clock stop at the deadlines of the scope's clock. Returns what a stall is.
    async fn drive(&self) -> String {
        loop {
            let behind = self.clock.elapsed().saturating_sub(self.elapsed_by_tokio());
            if !behind.is_zero() {
                time::advance(behind).await;
            }
            let elapsed = self.clock.elapsed();
            let Some(step) = self.next_step() else {
                self.changed.notified().await;
                continue;
            };
            let is_there = time::timeout_at(step.at, self.changed.notified()).await.is_err();
            if is_there && step.next.is_none() {
                return stall(elapsed);
            }
        }
    }

    /// The step that the watch has permitted.
    fn next_step(&self) -> Option<Step> {
        let mut state = self.state();
        if !mem::take(&mut state.may_step) {
            return None;
        }
        let (next, (begin, by_tokio)) = (self.clock.next_deadline(), self.start.get()?);
        let probe = || time::Instant::now() + Duration::from_millis(1);
        let at = next.map_or_else(probe, |next| *by_tokio + (next - *begin));
        state.step = Some(Step { next, at, parks_left: PARKS });
        state.step
    }
}

/// What a program says that has stalled.
fn stall(elapsed: Duration) -> String {
    let (tasks, timer) = (Handle::current().metrics().num_alive_tasks() - 1, Timer::global());
    let pending = timer.stats().pending;
    let text = format!(
        "the program has stalled after {elapsed:?} of virtual time: it waits, nothing that is pending \
         will wake it, and nothing else has for {SILENCE:?} (timers of the scope that are pending and \
         never due: {pending}; spawned tasks: {tasks}). What waits for another thread or process \
         belongs in `real_work`"
    );
    #[cfg(feature = "introspect")]
    let text = format!("{text}\n{}", timer.pending());
    text
}
