//! Item 15 and the bytes of item 16 of the issue "Unbreakable": what the end of a timer allocates,
//! and what threads that have ended leave behind. A global allocator counts for the whole process,
//! so one test does all, step by step.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures::executor::block_on_stream;
use shardwheel::{Config, ManualClock, Timer, shard};

/// Bytes in use, and the most there were.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

impl Counting {
    fn add(bytes: usize) {
        PEAK.fetch_max(IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

// SAFETY: all is passed on to the system's allocator as it is; counting neither allocates nor
// unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// By how much the heap grows while `work` runs, at most. (Nodes are mapped, and are not on the
/// heap.)
fn peak_of<R>(work: impl FnOnce() -> R) -> (usize, R) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

const HOUR: Duration = Duration::from_secs(3600);
const MIB: usize = 1 << 20;

/// Timers of which a copy would take 30 MiB and more.
const TIMERS: usize = 500_000;

/// What may be allocated that does not grow with them.
const CONSTANT: usize = MIB;

fn full_timer(by_hand: bool) -> Timer {
    let builder = Timer::builder().shards(2);
    let builder = if by_hand { builder.clock(ManualClock::new()) } else { builder };
    let timer = builder.build().expect("settings within their limits");
    (0..TIMERS).for_each(|_| assert!(timer.schedule_after(HOUR, || ()).is_ok()));
    timer
}

/// Item 15: a timer's end, by drop or by shutdown, copies nothing.
fn ends_without_a_copy(by_hand: bool) {
    let timer = full_timer(by_hand);
    let (peak, ()) = peak_of(|| drop(timer));
    assert!(peak <= CONSTANT, "a dropped timer allocates {peak} bytes");

    let timer = full_timer(by_hand);
    let (peak, mut unfired) = peak_of(|| timer.shutdown());
    assert!(peak <= CONSTANT, "shutdown allocates {peak} bytes");
    assert_eq!(unfired.len(), TIMERS);
    let (peak, taken) = peak_of(|| unfired.by_ref().take(TIMERS / 2).count());
    assert!(peak <= CONSTANT, "taking what has not fired allocates {peak} bytes");
    assert_eq!((taken, unfired.len()), (TIMERS / 2, TIMERS - TIMERS / 2));
    let (peak, ()) = peak_of(|| drop(unfired));
    assert!(peak <= CONSTANT, "dropping the rest allocates {peak} bytes");
    assert_eq!(timer.stats().handed_back, TIMERS as u64);
}

/// Item 15: neither do sleeps, which are woken.
fn sleeps_end_without_a_copy() {
    const SLEEPS: usize = 200_000;
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    let wait = |_| {
        let mut interval = timer.interval(HOUR);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(futures::Stream::poll_next(std::pin::Pin::new(&mut interval), &mut context).is_pending());
        interval
    };
    let mut waiting: Vec<_> = (0..SLEEPS).map(wait).collect();
    let (peak, unfired) = peak_of(|| timer.shutdown());
    assert!(unfired.is_empty());
    assert!(peak <= CONSTANT, "shutdown allocates {peak} bytes for sleeps");
    let last = waiting.pop().expect("there are some");
    assert!(block_on_stream(last).next().is_some_and(|tick| tick.is_err()));
}

/// Item 16: threads that were at work at once and have ended leave a bounded number of bytes.
fn threads_leave_little(threads: usize) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let before = IN_USE.load(Ordering::Relaxed);
    let meeting = Barrier::new(threads);
    thread::scope(|scope| {
        for i in 0..threads {
            let (scheduler, meeting) = (&scheduler, &meeting);
            let visit = move || {
                let key = scheduler.schedule(1 << 40, i).expect("it is open");
                assert_eq!(scheduler.cancel(key), Some(i));
                meeting.wait();
            };
            thread::Builder::new().stack_size(1 << 17).spawn_scoped(scope, visit).expect("a thread starts");
        }
    });
    let left = || IN_USE.load(Ordering::Relaxed).saturating_sub(before);
    // A thread gives its lane up a moment after a scope takes it to have ended.
    for tick in (1..20_000).take_while(|&tick| tick < 100 || left() > 8 * MIB) {
        assert_eq!(advancer.advance(tick).count(), 0);
        thread::sleep(Duration::from_micros(100));
    }
    assert!(left() <= 8 * MIB, "{threads} threads leave {} bytes", left());
}

/// All of it; what fails is told at the end.
#[test]
fn items_15_and_16_memory_at_the_end_and_after_a_crowd() {
    let steps: [(&str, fn()); 4] = [
        ("threads", || ends_without_a_copy(false)),
        ("by hand", || ends_without_a_copy(true)),
        ("sleeps", sleeps_end_without_a_copy),
        ("crowd", || threads_leave_little(2_000)),
    ];
    let failed: Vec<_> =
        steps.into_iter().filter(|(_, step)| std::panic::catch_unwind(step).is_err()).collect();
    let names: Vec<_> = failed.into_iter().map(|(name, _)| name).collect();
    assert!(names.is_empty(), "{names:?}");
}
