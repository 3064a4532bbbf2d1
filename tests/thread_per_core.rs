//! The example `thread_per_core`, run within this process: its own unit tests, the whole program by
//! its arguments and its exit code, and its event loops alone.
//!
//! No test depends on speed. That a timer is not early is checked to the nanosecond; that it is not
//! late, by a time that is far shorter than the loop would sleep without a wake, and far longer
//! than any machine should take.

#[allow(dead_code, reason = "the example's `main` is not called here")]
#[path = "../examples/thread_per_core/main.rs"]
mod thread_per_core;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shardwheel::Config;
use thread_per_core::clock::{Clock, Moment};
use thread_per_core::event_loop::{EventLoop, Handle};

/// How long a loop sleeps that is not woken.
const LONG: Duration = Duration::from_secs(3_600);
/// How long a test waits for an event that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a loop of these tests does when a timer fires.
enum Job {
    /// Reports that it was due at that time.
    Ring(Moment),
    /// Reports it too, and schedules the next one on the other loop, back and forth, as many times
    /// more.
    Pass {
        due: Moment,
        left: u32,
        to: Handle<Job>,
        back: Handle<Job>,
    },
    Stop,
}

/// When a timer was due, and when it fired.
struct Rung {
    due: Moment,
    fired: Moment,
}

impl Rung {
    fn assert_in_time(&self) {
        let Self { due, fired } = *self;
        assert!(fired >= due, "early: due at {due:?}, fired at {fired:?}");
        assert!(fired < due + PATIENCE, "late: due at {due:?}, fired at {fired:?}");
    }
}

/// A thread with a poller and a shard.
struct Thread {
    handle: Handle<Job>,
    /// How often its poll has returned.
    returns: Arc<AtomicUsize>,
    rung: Receiver<Rung>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// Starts a thread that sleeps until a timer an hour away.
    fn asleep(clock: &Clock) -> Self {
        Self::start(clock, Some(clock.now() + LONG))
    }

    fn start(clock: &Clock, timer: Option<Moment>) -> Self {
        let (event_loop, handle) = EventLoop::new(clock).expect("a poller");
        if let Some(due) = timer {
            handle.schedule(due, Job::Ring(due)).expect("the timer is open");
        }
        let returns = Arc::new(AtomicUsize::new(0));
        let (bell, rung) = mpsc::channel();
        let (clock, counter) = (clock.clone(), Arc::clone(&returns));
        let thread = Some(thread::spawn(move || go_round(event_loop, &clock, &counter, &bell)));
        let thread = Self { handle, returns, rung, thread };
        // The loop is most likely asleep by now; otherwise the test still holds.
        thread::sleep(Duration::from_millis(50));
        thread
    }

    fn ring(&self, due: Moment) {
        self.handle.schedule(due, Job::Ring(due)).expect("the timer is open");
    }

    fn rung(&self) -> Rung {
        self.rung.recv_timeout(PATIENCE).expect("it is woken")
    }

    fn returns(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.returns.load(Ordering::Relaxed)
    }

    /// Also wakes the loop: a test of a shard that does not wake must fail, not hang.
    fn tell_to_stop(&self) {
        // The loop may have stopped before.
        let _ = self.handle.send(Job::Stop);
        self.handle.wake();
    }

    /// Stops the loop, and returns how often its poll has returned before.
    fn stop(mut self) -> usize {
        let returns = self.returns();
        self.tell_to_stop();
        self.thread.take().expect("it runs").join().expect("the thread does not panic");
        returns
    }
}

/// A thread that no test has stopped ends with its test.
impl Drop for Thread {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

/// The thread's loop, until a message stops it.
fn go_round(mut event_loop: EventLoop<Job>, clock: &Clock, returns: &AtomicUsize, bell: &Sender<Rung>) {
    let mut stopped = false;
    while !stopped {
        event_loop.sleep().expect("the poller is sound");
        // Ordering: Relaxed, a count.
        returns.fetch_add(1, Ordering::Relaxed);
        event_loop.fire(|fired| {
            let now = clock.now();
            // The test may have ended, and dropped its end of the channel.
            let ring = |due| drop(bell.send(Rung { due, fired: now }));
            match fired.payload {
                Job::Ring(due) => ring(due),
                Job::Pass { due, left, to, back } => {
                    ring(due);
                    pass_on(left, now, &to, back);
                }
                Job::Stop => stopped = true,
            }
        });
    }
}

fn pass_on(left: u32, now: Moment, to: &Handle<Job>, back: Handle<Job>) {
    if left > 0 {
        // Not a whole number of ticks.
        let due = now + Duration::from_micros(1_700);
        to.schedule(due, Job::Pass { due, left: left - 1, to: back, back: to.clone() })
            .expect("the timer is open");
    }
}

fn clock() -> Clock {
    Clock::start_now(Config::default())
}

// The pattern.

#[test]
fn a_timer_from_a_neighbour_wakes_a_thread_that_polls_for_an_hour() {
    let clock = clock();
    let [a, b] = [(); 2].map(|()| Thread::asleep(&clock));
    let due = clock.now();
    let (to, back) = (b.handle.clone(), a.handle.clone());
    a.handle.schedule(due, Job::Pass { due, left: 1, to, back }).expect("the timer is open");
    a.rung().assert_in_time();
    b.rung().assert_in_time();
    a.stop();
    b.stop();
}

#[test]
fn timers_go_to_and_fro_between_two_threads_and_none_is_early() {
    const PASSES: u32 = 200;
    let clock = clock();
    let [a, b] = [(); 2].map(|()| Thread::asleep(&clock));
    let due = clock.now();
    let (to, back) = (b.handle.clone(), a.handle.clone());
    a.handle.schedule(due, Job::Pass { due, left: PASSES, to, back }).expect("the timer is open");
    for pass in 0..=PASSES {
        let thread = if pass.is_multiple_of(2) { &a } else { &b };
        thread.rung().assert_in_time();
    }
    a.stop();
    b.stop();
}

#[test]
fn a_timer_wakes_a_thread_that_has_none_and_polls_for_ever() {
    let clock = clock();
    let thread = Thread::start(&clock, None);
    thread.ring(clock.now() + Duration::from_millis(20));
    thread.rung().assert_in_time();
    thread.stop();
}

#[test]
fn a_timer_that_is_brought_nearer_wakes() {
    let clock = clock();
    let thread = Thread::asleep(&clock);
    let far = clock.now() + 2 * LONG;
    let near = clock.now() + Duration::from_millis(20);
    let key = thread.handle.schedule(far, Job::Ring(near)).expect("the timer is open");
    let moved = thread.handle.reschedule(key, near).expect("the timer is pending");
    thread.rung().assert_in_time();
    assert!(thread.handle.cancel(moved).is_none(), "it has fired");
    thread.stop();
}

#[test]
fn many_threads_schedule_on_one_and_each_timer_fires_once_and_not_early() {
    const THREADS: u64 = 4;
    const TIMERS: u64 = 100;
    let clock = clock();
    let thread = Thread::asleep(&clock);
    thread::scope(|scope| {
        for producer in 0..THREADS {
            let (clock, handle) = (clock.clone(), thread.handle.clone());
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(producer);
                for _ in 0..TIMERS {
                    let due = clock.now() + Duration::from_micros(rng.u64(..50_000));
                    handle.schedule(due, Job::Ring(due)).expect("the timer is open");
                    thread::sleep(Duration::from_micros(rng.u64(..500)));
                }
            });
        }
    });
    (0..THREADS * TIMERS).for_each(|_| thread.rung().assert_in_time());
    thread.tell_to_stop();
    assert!(thread.rung.recv_timeout(PATIENCE).is_err(), "the thread ends, and rings no more");
}

/// Neither by time that passes, nor by what others schedule for later, put off or cancel.
#[test]
fn a_thread_whose_next_timer_is_an_hour_away_is_not_woken() {
    let clock = clock();
    let thread = Thread::asleep(&clock);
    thread::sleep(Duration::from_millis(600));
    let later = clock.now() + 2 * LONG;
    let key = thread.handle.schedule(later, Job::Ring(later)).expect("the timer is open");
    let key = thread.handle.reschedule(key, later + LONG).expect("the timer is pending");
    thread::sleep(Duration::from_millis(300));
    assert!(thread.handle.cancel(key).is_some());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(thread.stop(), 0, "returns of its poll");
}

/// What it schedules after it has fired what was due, it takes into account when it next sleeps.
#[test]
fn a_thread_does_not_wake_itself() {
    let clock = clock();
    let (mut event_loop, handle) = EventLoop::new(&clock).expect("a poller");
    handle.schedule(clock.now() + LONG, Job::Stop).expect("the timer is open");
    for _ in 0..20 {
        event_loop.fire(drop);
        let due = clock.now() + Duration::from_millis(2);
        handle.schedule(due, Job::Ring(due)).expect("the timer is open");
        event_loop.sleep().expect("the poller is sound");
        assert!(!event_loop.was_woken());
        assert!(clock.now() >= due);
        assert_eq!(event_loop.fire(drop), 1);
    }
}

// The program.

struct Run {
    code: u8,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["thread_per_core"].iter().chain(args).map(OsString::from);
    let code = thread_per_core::run(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    Run { code, out: text(out), err: text(err) }
}

fn assert_balanced(args: &[&str]) {
    let run = run(args);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.contains("holds") && !run.out.contains("BROKEN"), "{}", run.out);
    for row in ["connections", "packets", "early firings", "lateness p99", "poll wake-ups"] {
        assert!(run.out.contains(row), "{row} in\n{}", run.out);
    }
}

#[test]
fn the_program_balances() {
    assert_balanced(&["--threads", "2", "--clients", "60", "--idle-timeout", "200", "--seconds", "1"]);
}

#[test]
fn it_balances_with_more_threads_than_cores_and_clients_that_come_too_late() {
    assert_balanced(&["--threads", "7", "--clients", "90", "--idle-timeout", "20", "--seconds", "1"]);
}

#[test]
fn wrong_arguments_are_exit_code_2() {
    for (args, named) in [
        (["--threads", "1"], "2..=64"),
        (["--clients", "many"], "'many'"),
        (["--idle-timeout", "1"], "20..=60000"),
        (["--seconds", "0"], "'0'"),
    ] {
        let run = run(&args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(named), "{args:?}: {}", run.err);
    }
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("--idle-timeout") && help.err.is_empty());
}
