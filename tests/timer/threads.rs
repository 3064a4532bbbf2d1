//! The timer's threads: their stacks, and the functions that they call first and last.

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::Instant;

use shardwheel::{Drivers, Timer};

use crate::support::{Built, Count, after, ms, until};
#[cfg(target_os = "linux")]
use crate::support::{HOUR, alone, secs};

/// Shuts the timer down, which waits for the hooks at the end, but for 20 ms at most: on a loaded
/// machine they may go on after it.
fn shut_down_until(timer: &Timer, all_have_run: impl Fn() -> bool) {
    let begin = Instant::now();
    drop(timer.shutdown());
    assert!(all_have_run() || begin.elapsed() >= ms(20), "it has not waited");
    until("all hooks have run", all_have_run);
}

/// The functions are called on each of the timer's threads: the first before `build` returns, the
/// last before the shutdown does.
#[test]
fn each_thread_calls_its_functions_once() {
    let (starts, stops) = (Count::default(), Count::default());
    let (on_start, on_stop) = (starts.clone(), stops.clone());
    let (sender, receiver) = mpsc::channel();
    let timer = Timer::builder()
        .shards(3)
        .on_thread_start(move || {
            sender.send(thread::current().name().map(str::to_owned)).unwrap();
            on_start.one();
        })
        .on_thread_stop(move || on_stop.one())
        .built();
    assert_eq!((starts.get(), stops.get()), (3, 0));
    let mut names: Vec<_> = receiver.try_iter().flatten().collect();
    names.sort();
    assert_eq!(names, ["shardwheel-0", "shardwheel-1", "shardwheel-2"]);
    shut_down_until(&timer, || stops.get() == 3);
    assert_eq!((starts.get(), stops.get()), (3, 3));
}

/// A panic in one of them is counted and reported, and the threads work on.
#[test]
fn a_panic_in_them_ends_no_thread() {
    let reports = Count::default();
    let reported = reports.clone();
    let timer = Timer::builder()
        .shards(2)
        .drivers(Drivers::OnePerShard)
        .on_thread_start(|| panic!("at the start"))
        .on_thread_stop(|| panic!("at the end"))
        .on_panic(move |_| reported.one())
        .built();
    assert_eq!((timer.stats().panics, reports.get()), (2, 2));
    let (sender, receiver) = mpsc::channel();
    after(&timer, ms(1), move || sender.send(()).unwrap());
    receiver.recv().expect("the callback runs");
    shut_down_until(&timer, || reports.get() == 4);
    assert_eq!(reports.get(), 4);
}

/// The last of them may use the timer, which is being shut down.
#[test]
fn the_last_one_may_use_the_timer() {
    let (sender, receiver) = mpsc::channel::<Timer>();
    let receiver = std::sync::Mutex::new(receiver);
    let timer = Timer::builder()
        .shards(1)
        .on_thread_stop(move || {
            let timer = receiver.lock().unwrap().recv().unwrap();
            // Refused, unless the shard is about to end only now.
            let _ = timer.schedule_after(ms(1), || ());
            assert_eq!(timer.shutdown().count(), 0);
        })
        .built();
    sender.send(timer.clone()).expect("the hook receives it");
    drop(timer.shutdown());
    assert_eq!(timer.stats().panics, 0);
}

/// A callback may use most of a large stack.
#[test]
fn callbacks_run_on_stacks_of_the_given_size() {
    /// Uses about 1 KiB of stack for each level.
    fn deep(levels: usize) -> u8 {
        let block = std::hint::black_box([levels as u8; 1_024]);
        let rest = if levels == 0 { 0 } else { deep(levels - 1) };
        block[levels % 1_024].wrapping_add(rest)
    }
    let timer = Timer::builder().thread_stack_size(64 << 20).built();
    let (sender, receiver) = mpsc::channel();
    let callback = move || sender.send(deep(std::hint::black_box(20_000))).unwrap();
    after(&timer, ms(1), callback);
    receiver.recv().expect("the stack is large enough");
}

/// A size that no system has memory for is an error, not an abort.
#[test]
fn a_stack_that_the_system_refuses_is_an_error() {
    let refused = Timer::builder().shards(1).thread_stack_size(usize::MAX / 8 * 7).build();
    assert!(refused.is_err(), "{refused:?}");
}

/// The first timer of a process with several threads lets another thread register for `membarrier`,
/// which waits for all processors: the thread that makes the timer may be a runtime's.
#[cfg(target_os = "linux")]
#[test]
fn the_first_timer_waits_for_no_registration() {
    alone(|| {
        // SAFETY: the call has no arguments.
        let this = unsafe { libc::syscall(libc::SYS_gettid) };
        let (is_made, has_looked) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            // Looks at the system call that the test's thread is in.
            let watcher = scope.spawn(|| {
                let mut has_registered = false;
                while !is_made.load(Ordering::SeqCst) {
                    let call = std::fs::read_to_string(format!("/proc/self/task/{this}/syscall"));
                    let number = call.ok().and_then(|call| call.split(' ').next()?.parse().ok());
                    has_registered |= number == Some(libc::SYS_membarrier);
                    has_looked.store(true, Ordering::SeqCst);
                }
                has_registered
            });
            until("the watcher looks", || has_looked.load(Ordering::SeqCst));
            let timer = Timer::new().expect("the defaults are valid");
            is_made.store(true, Ordering::SeqCst);
            assert!(!watcher.join().expect("no panic"));
            drop(timer);
        });
    });
}

/// Forks the process. The child ends with what `is_right` returns, and the parent waits for it.
#[cfg(target_os = "linux")]
fn in_a_child(is_right: impl FnOnce() -> bool) {
    // SAFETY: the child uses the allocator, whose locks are free after a fork, and what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = i32::from(!is_right());
        // SAFETY: nothing of this process is needed any more.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: the status is a place for an integer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

/// Whether a timer that is due soon fires within `limit`.
#[cfg(target_os = "linux")]
fn fires(timer: &Timer, limit: Duration) -> bool {
    let (sender, receiver) = mpsc::channel();
    after(timer, ms(1), move || sender.send(()).unwrap());
    receiver.recv_timeout(limit).is_ok()
}

/// The child of a fork makes timers, whatever the parent's threads were doing.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_process_makes_timers() {
    alone(|| {
        let first = Timer::new().expect("the defaults are valid");
        for _ in 0..20 {
            in_a_child(|| {
                drop(Timer::builder().build_driven().expect("the defaults are valid"));
                fires(&Timer::new().expect("the defaults are valid"), secs(20))
            });
            thread::sleep(ms(1) / 2);
        }
        drop(first);
    });
}

/// The global timer of a process has no threads in the child of a fork: its timers never fire there.
/// All calls return, a new timer works beside it, and a child that makes the first use of the global
/// timer has one that fires.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_process_and_the_global_timer() {
    alone(|| {
        let makes_one = || fires(&Timer::new().expect("the defaults are valid"), secs(20));
        in_a_child(|| fires(Timer::global(), secs(20)) && makes_one());
        assert!(fires(Timer::global(), secs(20)));
        in_a_child(|| {
            let global = Timer::global();
            let key = after(global, HOUR, || ());
            !fires(global, ms(200)) && global.cancel(key) && global.stats().pending == 1 && makes_one()
        });
    });
}
