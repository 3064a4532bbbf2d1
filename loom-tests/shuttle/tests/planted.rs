//! A mistake that was put in on purpose is found, and the schedule that has shown it shows it again
//! from its string. Also the check that the mistake is what is found.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use shardwheel::DelayQueue;
use shardwheel_shuttle_tests::{VirtualClock, config, millis, timer};
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::sync::atomic::AtomicBool;
use shuttle::{FailurePersistence, Runner, thread};

const SCHEDULES: usize = 20_000;

/// What the crate's parker is: a flag, and the thread that waits for it.
struct Flag {
    is_set: AtomicBool,
    thread: thread::Thread,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.is_set.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Waits for a value. The right order is to clear the flag, then to look. The careless consumer
/// looks, then clears: a wake between the two is lost.
fn receive(queue: &DelayQueue<u64>, is_careless: bool) -> u64 {
    let flag = Arc::new(Flag { is_set: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(Arc::clone(&flag));
    let mut next = pin!(queue.next());
    loop {
        if !is_careless {
            flag.is_set.store(false, Ordering::SeqCst);
        }
        if let Poll::Ready(expired) = next.as_mut().poll(&mut Context::from_waker(&waker)) {
            return expired.expect("the timer has not ended").value;
        }
        if is_careless {
            flag.is_set.store(false, Ordering::SeqCst);
        }
        while !flag.is_set.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

/// Runs the model by a scheduler; the message of its failure, if it fails.
fn run(scheduler: impl Scheduler + 'static, is_careless: bool) -> Result<(), String> {
    let mut config = config();
    config.failure_persistence = FailurePersistence::File(Some(env!("CARGO_TARGET_TMPDIR").into()));
    let runner = Runner::new(scheduler, config);
    let body = move || {
        VirtualClock::start();
        let timer = timer().shards(1).build().expect("it starts");
        let queue = DelayQueue::new(&timer);
        queue.insert(7, millis(1)).expect("it is open");
        assert_eq!(receive(&queue, is_careless), 7);
    };
    let failed = catch_unwind(AssertUnwindSafe(|| _ = runner.run(body)));
    failed.map_err(|message| match message.downcast::<String>() {
        Ok(message) => *message,
        Err(_) => "a panic without a message".into(),
    })
}

/// Takes a schedule that a failure has left.
fn take_schedule() -> Option<String> {
    let mut files = std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).expect("it exists").flatten();
    let path = files.find(|file| file.file_name().to_string_lossy().starts_with("schedule"))?.path();
    let schedule = std::fs::read_to_string(&path).expect("it is text");
    std::fs::remove_file(path).expect("it is a file");
    Some(schedule)
}

#[test]
fn a_lost_wake_is_found_and_replayed() {
    // A run that was stopped may have left one.
    while take_schedule().is_some() {}
    let random = || RandomScheduler::new_from_seed(37, SCHEDULES);
    let priorities = || PctScheduler::new_from_seed(37, 3, SCHEDULES);
    assert_eq!(run(random(), false), Ok(()));
    assert_eq!(run(priorities(), false), Ok(()));
    for failure in [run(random(), true), run(priorities(), true)] {
        assert!(failure.as_ref().is_err_and(|message| message.contains("deadlock")), "{failure:?}");
        let schedule = take_schedule().expect("the failure has left its schedule");
        println!("a schedule with the mistake: {schedule}");
        assert_eq!(run(ReplayScheduler::new_from_encoded(&schedule), true), failure);
        assert_eq!(take_schedule(), Some(schedule), "the same one");
    }
}
