//! What clocks do while the machine is suspended. A test cannot suspend the machine, so most of them
//! simulate it, and one moves `CLOCK_BOOTTIME` by a time namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use shardwheel::{BootClock, Clock, ManualClock, Timer, WallSchedule};

use crate::support::{Built, HOUR, Log, after, hear, ms, secs, until};

/// For how long a machine has been suspended, in milliseconds.
#[derive(Clone, Default)]
struct Machine(Arc<AtomicU64>);

impl Machine {
    /// What a boot clock shows over a suspend: the clock of the timer's thread stands still, and this
    /// one has jumped.
    fn suspend(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }

    fn suspended(&self) -> Duration {
        ms(self.0.load(Ordering::SeqCst))
    }
}

/// The boot clock of a machine. The timer's thread reads it once a second.
struct Booted(Machine);

impl Clock for Booted {
    fn now(&self) -> Instant {
        Instant::now() + self.0.suspended()
    }
}

fn by_clock(clock: impl Clock) -> Timer {
    Timer::builder().shards(1).clock(clock).built()
}

/// The table of the guide's page `time`: what each clock does over a suspend of two hours, with a
/// timer that is due after one. Promises 1 and 4.
#[test]
fn what_each_clock_does_over_a_suspend_in_real_time() {
    let machine = Machine::default();
    let (sender, fired) = std::sync::mpsc::channel();
    let tells = |name| {
        let sender = sender.clone();
        move || sender.send(name).expect("the test waits")
    };
    let monotonic = Timer::builder().shards(1).built();
    after(&monotonic, HOUR, tells("monotonic"));
    let boot = by_clock(Booted(machine.clone()));
    after(&boot, HOUR, tells("boot"));
    let manual_clock = ManualClock::new();
    let manual = by_clock(manual_clock.clone());
    after(&manual, HOUR, tells("manual"));
    // The wall clock has gone on, and the schedule's timer is by the clock that stood still.
    let (begin, wall) = (SystemTime::now(), machine.clone());
    let date = move |after| Some(begin + HOUR).filter(|&date| date > after);
    let dates =
        WallSchedule::new(date).clock(move || SystemTime::now() + wall.suspended()).look_every(ms(20));
    let key = monotonic.schedule_with(dates, tells("wall")).expect("the timer is open");

    // The threads sleep.
    thread::sleep(ms(50));
    assert!(fired.try_recv().is_err(), "nothing is due");
    machine.suspend(2 * HOUR);
    let mut seen = [hear(&fired), hear(&fired)];
    seen.sort_unstable();
    assert_eq!(seen, ["boot", "wall"], "soon, where time has passed");
    until("the schedule ends", || !monotonic.is_pending(key));
    assert_eq!((monotonic.stats().pending, manual.stats().pending), (1, 1), "an hour is left to them");
    manual_clock.jump(2 * HOUR);
    assert_eq!(hear(&fired), "manual");
}

/// What became due during a suspend fires in the order of the deadlines, also beyond the finest
/// wheel; what is due later keeps the rest of its time. Promises 1 and 2.
#[test]
fn what_passed_during_a_suspend_fires_in_order_in_real_time() {
    let machine = Machine::default();
    let timer = by_clock(Booted(machine.clone()));
    let log = Log::new();
    for minute in [50, 10, 0, 30, 40, 20] {
        let entries = log.clone();
        after(&timer, ms(minute * 60_000 + 3_600_000), move || entries.add(minute));
    }
    let later = after(&timer, 3 * HOUR, || ());
    machine.suspend(2 * HOUR);
    until("all six fire", || timer.stats().fired == 6);
    assert_eq!(log.take(), [0, 10, 20, 30, 40, 50]);
    let left = timer.deadline(later).expect("it is pending").saturating_duration_since(timer.now());
    assert!(left <= HOUR + ms(1) && left > HOUR - secs(60), "{left:?}");
}

#[cfg(all(any(target_os = "linux", target_os = "macos", windows), not(miri)))]
mod real {
    use super::*;

    fn boot_clock() -> BootClock {
        BootClock::new().expect("the system has such a clock")
    }

    /// All boot clocks of a process agree, and are not ahead of the monotonic clock while the machine
    /// runs: a deadline that comes from `Instant::now` is not early. Promise 1.
    #[test]
    fn boot_clocks_agree_and_are_not_ahead_in_real_time() {
        let [one, two] = [(); 2].map(|()| boot_clock());
        let mut last = one.now();
        for _ in 0..10_000 {
            let (first, second, third) = (one.now(), two.now(), Instant::now());
            assert!(last <= first && first <= second && second <= third, "{first:?} {second:?} {third:?}");
            last = second;
        }
        assert!(last.elapsed() < secs(20), "{:?} behind", last.elapsed());
    }
}

/// `CLOCK_BOOTTIME` jumps by an hour under a timer, as over a suspend, and the monotonic clock does
/// not: a process of one thread enters a time namespace whose boot time is an hour ahead. What is due
/// within the hour fires, and what is due after it does not. Needs the right to make a namespace;
/// without it the test says so and ends. Promises 1 and 4.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn the_boot_clock_goes_on_where_the_monotonic_clock_stands() {
    use std::fs;
    use std::os::fd::AsRawFd;

    use crate::support::{Count, alone};

    const NOT_PERMITTED: i32 = 77;

    fn enter_namespace() -> std::io::Result<()> {
        let checked = |result| if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
        // SAFETY: the call takes a number, and accesses no memory of the process.
        checked(unsafe { libc::unshare(libc::CLONE_NEWTIME) })?;
        fs::write("/proc/self/timens_offsets", "boottime 3600 0\n")?;
        let namespace = fs::File::open("/proc/self/ns/time_for_children")?;
        // SAFETY: the file is open during the call.
        checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWTIME) })
    }

    fn uptime() -> f64 {
        let text = fs::read_to_string("/proc/uptime").expect("Linux has it");
        text.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("a number of seconds")
    }

    fn in_child() -> i32 {
        let clock = BootClock::new().expect("Linux has such a clock");
        let builder = Timer::builder().clock(clock);
        let (timer, mut driver) = builder.build_driven().expect("settings within their limits");
        let count = Count::default();
        for minutes in [1, 59, 61] {
            after(&timer, secs(60 * minutes), count.adds());
        }
        assert_eq!(driver.turn(), 0, "nothing is due");
        let (before, begin, booted) = (clock.now(), Instant::now(), uptime());
        if let Err(error) = enter_namespace() {
            eprintln!("no time namespace to be had: {error}");
            return NOT_PERMITTED;
        }
        driver.turn();
        assert_eq!((count.get(), timer.stats().pending), (2, 1));
        let jumped = clock.now().saturating_duration_since(before);
        assert!(jumped >= HOUR && begin.elapsed() < secs(60), "{jumped:?}, {:?}", begin.elapsed());
        // The system says the same, to a hundredth of a second.
        assert!((uptime() - booted - jumped.as_secs_f64()).abs() < 5.0);
        0
    }

    alone(|| {
        // SAFETY: the child uses the allocator, whose locks are free after a fork, and what is tested
        // here.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = std::panic::catch_unwind(in_child).unwrap_or(1);
            // SAFETY: nothing of this process is needed any more.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: the status is a place for an integer.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        assert!(matches!(code, Some(0 | NOT_PERMITTED)), "{code:?}");
    });
}
