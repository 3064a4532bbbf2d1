//! How a `Timer` behaves in a browser. `harness.js` runs each function here in an instance of its own.

#![cfg(target_family = "wasm")]

use std::cell::Cell;
use std::future::pending;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use js_sys::{Promise, WebAssembly};
use shardwheel::{Clock, DelayQueue, Instant, ManualClock, Timer};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    fn failed(message: &str);
    #[wasm_bindgen(js_name = timeoutsPending)]
    fn timeouts_pending() -> u32;
    #[wasm_bindgen(js_name = mostTimeouts)]
    fn most_timeouts() -> u32;
    #[wasm_bindgen(js_name = timeoutsMade)]
    fn timeouts_made() -> u32;
    #[wasm_bindgen(js_name = nextTask)]
    fn next_task() -> Promise;
    fn pass(millis: f64, every: f64) -> Promise;
}

const HOUR: Duration = Duration::from_secs(3_600);

/// What is called on behalf of one behaviour.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn up(&self) -> impl FnMut() + Send + use<> {
        let count = self.clone();
        move || _ = count.0.fetch_add(1, Relaxed)
    }

    fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn timer() -> Timer {
    panic::set_hook(Box::new(|panic| failed(&panic.to_string())));
    Timer::new().unwrap()
}

async fn task() {
    JsFuture::from(next_task()).await.unwrap();
}

/// Time passes by the stub; the browser wakes at multiples of so many milliseconds.
async fn passes(by: Duration, every: f64) {
    JsFuture::from(pass(by.as_secs_f64() * 1_000.0, every)).await.unwrap();
}

#[wasm_bindgen]
pub async fn sleeps_are_never_early() {
    let timer = timer();
    for delay in [0, 1, 5, 20, 40].map(millis) {
        let begin = Instant::now();
        timer.sleep(delay).await.unwrap();
        assert!(begin.elapsed() >= delay, "{delay:?}: {:?}", begin.elapsed());
        timer.sleep_until(begin).await.unwrap();
    }
    assert_eq!(most_timeouts(), 1);
}

#[wasm_bindgen]
pub async fn timeouts_end_what_waits() {
    let timer = timer();
    assert!(timer.timeout(millis(10), pending::<()>()).await.is_err());
    assert_eq!(timer.timeout(HOUR, async { 7 }).await.unwrap(), 7);
}

#[wasm_bindgen]
pub async fn intervals_tick() {
    let (timer, begin) = (timer(), Instant::now());
    let mut interval = timer.interval(millis(10));
    for _ in 0..4 {
        interval.tick().await.unwrap();
    }
    assert!(begin.elapsed() >= millis(30));
}

#[wasm_bindgen]
pub async fn the_global_timer_works() {
    timer();
    let count = Count::default();
    Timer::global().schedule_after(millis(5), count.up()).unwrap();
    shardwheel::sleep(millis(10)).await;
    assert!(shardwheel::timeout(millis(5), pending::<()>()).await.is_err());
    shardwheel::interval(millis(5)).tick().await;
    assert_eq!((count.get(), most_timeouts()), (1, 1));
}

#[wasm_bindgen]
pub async fn callbacks_come_again_and_are_cancelled() {
    let (timer, count, cancelled) = (timer(), Count::default(), Count::default());
    let key = timer.schedule_after(millis(10), cancelled.up()).unwrap();
    let every = timer.schedule_every(millis(5), count.up()).unwrap();
    assert!(timer.cancel(key));
    timer.sleep(millis(60)).await.unwrap();
    assert!(timer.cancel(every));
    assert!(count.get() >= 1 && cancelled.get() == 0, "{}", count.get());
}

/// One that schedules at once, for ever, leaves the browser time for other tasks.
#[wasm_bindgen]
pub async fn a_callback_schedules() {
    fn again(timer: Timer, count: Count) {
        count.0.fetch_add(1, Relaxed);
        let own = timer.clone();
        let _ = timer.schedule_at(own.now(), move || again(own, count));
    }
    let (timer, count) = (timer(), Count::default());
    again(timer.clone(), count.clone());
    for _ in 0..2_000 {
        if count.get() >= 20 {
            break;
        }
        task().await;
    }
    assert!(count.get() >= 20 && most_timeouts() == 1, "{} calls", count.get());
    drop(timer.shutdown());
}

#[wasm_bindgen]
pub async fn a_delay_queue_gives_values_in_order() {
    let queue = DelayQueue::new(&timer());
    for number in [3_u64, 1, 2] {
        queue.insert(number, millis(15 * number)).unwrap();
    }
    for number in 1..=3 {
        assert_eq!(queue.next().await.unwrap().value, number);
    }
}

#[wasm_bindgen]
pub async fn an_earlier_timer_sets_the_timeout_anew() {
    let (timer, count) = (timer(), Count::default());
    timer.schedule_after(24 * HOUR, || ()).unwrap();
    task().await;
    assert_eq!((timeouts_pending(), timeouts_made()), (1, 1));
    timer.schedule_after(millis(10), count.up()).unwrap();
    task().await;
    assert_eq!((timeouts_pending(), timeouts_made()), (1, 2));
    // A later one changes nothing.
    timer.schedule_after(HOUR, || ()).unwrap();
    task().await;
    assert_eq!(timeouts_made(), 2);
    while count.get() == 0 {
        task().await;
    }
    assert_eq!((timeouts_pending(), most_timeouts()), (1, 1));
}

#[wasm_bindgen]
pub async fn an_idle_timer_has_no_timeout() {
    let timer = timer();
    task().await;
    assert_eq!((timeouts_pending(), timeouts_made()), (0, 0));
    timer.sleep(millis(5)).await.unwrap();
    task().await;
    assert_eq!(timeouts_pending(), 0);
    // Of two hundred timers that one task sets, the first to be due alone has a timeout.
    let made = timeouts_made();
    (0..200).for_each(|number| _ = timer.schedule_after(HOUR - millis(number), || ()).unwrap());
    task().await;
    assert_eq!((timeouts_pending(), timeouts_made()), (1, made + 1));
}

#[wasm_bindgen]
pub async fn the_last_handle_clears_the_timeout() {
    let (timer, count) = (timer(), Count::default());
    let weak = timer.downgrade();
    timer.schedule_after(millis(20), count.up()).unwrap();
    task().await;
    assert_eq!(timeouts_pending(), 1);
    drop(timer);
    task().await;
    assert_eq!((timeouts_pending(), weak.upgrade().is_none()), (0, true));
    // The last handle in a callback.
    let timer = self::timer();
    let own = timer.clone();
    timer.schedule_after(millis(5), move || drop(own)).unwrap();
    drop(timer);
    shardwheel::sleep(millis(30)).await;
    task().await;
    assert_eq!((timeouts_pending(), count.get()), (0, 0));
}

#[wasm_bindgen]
pub async fn a_shutdown_hands_back_what_is_pending() {
    let (timer, count) = (timer(), Count::default());
    (0..3).for_each(|_| _ = timer.schedule_after(HOUR, count.up()).unwrap());
    timer.shutdown().for_each(|task| task.run());
    assert!(timer.schedule_after(HOUR, || ()).is_err());
    task().await;
    assert_eq!((timeouts_pending(), count.get()), (0, 3));
}

#[wasm_bindgen]
pub async fn a_burst_fires_once_each() {
    let (timer, count) = (timer(), Count::default());
    (0..10_000).for_each(|_| _ = timer.schedule_after(millis(20), count.up()).unwrap());
    // The last timeouts give memory back.
    while timer.stats().pending > 0 || timeouts_pending() > 0 {
        task().await;
    }
    assert_eq!((count.get(), most_timeouts()), (10_000, 1));
}

#[wasm_bindgen]
pub async fn a_users_clock_and_a_manual_clock_work() {
    struct Tenfold(Instant);
    impl Clock for Tenfold {
        fn now(&self) -> Instant {
            self.0 + 10 * self.0.elapsed()
        }
    }
    timer();
    let begin = Instant::now();
    let fast = Timer::builder().clock(Tenfold(begin)).build().unwrap();
    fast.sleep(millis(500)).await.unwrap();
    assert!(begin.elapsed() >= millis(50));
    let clock = ManualClock::new();
    let (slept, _) = clock.scope(|| clock.run_until_stalled(shardwheel::sleep(HOUR)));
    assert_eq!((slept, clock.elapsed()), (Some(()), HOUR));
}

/// A `Timer` with ten timers, in bytes of the module's memory.
#[wasm_bindgen]
pub async fn ten_timers_are_small() -> String {
    let memory: WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
    let size = || memory.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length();
    let before = size();
    let timer = timer();
    (0..10).for_each(|number| _ = timer.schedule_after(number * HOUR, || ()).unwrap());
    let taken = size() - before;
    assert!(taken <= 768 << 10, "{taken} bytes");
    format!("{} KiB", taken >> 10)
}

/// A timeout of more than 2^31 ms comes at once in a browser.
#[wasm_bindgen]
pub async fn stubbed_deadlines_may_be_years_away() -> String {
    let (timer, year, month) = (timer(), Count::default(), Count::default());
    timer.schedule_after(365 * 24 * HOUR, year.up()).unwrap();
    timer.schedule_after(30 * 24 * HOUR, month.up()).unwrap();
    timer.schedule_after(Duration::MAX, || unreachable!()).unwrap();
    passes(30 * 24 * HOUR - millis(5), 1.0).await;
    assert_eq!(month.get(), 0);
    passes(millis(10), 1.0).await;
    assert_eq!((month.get(), year.get()), (1, 0));
    passes(335 * 24 * HOUR - millis(10), 1.0).await;
    assert_eq!(year.get(), 0);
    passes(millis(10), 1.0).await;
    assert_eq!((year.get(), most_timeouts()), (1, 1));
    assert!(timeouts_made() < 200, "{} timeouts in a year", timeouts_made());
    format!("{} timeouts in a year", timeouts_made())
}

/// A browser wakes a page that is hidden once a minute.
#[wasm_bindgen]
pub async fn stubbed_throttled_timers_are_late_and_never_lost() -> String {
    const MINUTE: Duration = Duration::from_secs(60);
    thread_local! { static LATEST: Cell<Duration> = const { Cell::new(Duration::ZERO) } }
    let (timer, count) = (timer(), Count::default());
    for number in 0..2_000_u64 {
        let delay = millis(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 10_800_000);
        let (due, mut up) = (timer.now() + delay, count.up());
        let fire = move || {
            let late = Instant::now().checked_duration_since(due).expect("it is not early");
            LATEST.set(LATEST.get().max(late));
            up();
        };
        timer.schedule_after(delay, fire).unwrap();
    }
    passes(3 * HOUR + MINUTE, 60_000.0).await;
    assert_eq!((count.get(), timer.stats().pending, timeouts_pending()), (2_000, 0, 0));
    assert!(LATEST.get() <= MINUTE + millis(2), "{:?} late", LATEST.get());
    format!("{} timeouts, {:?} late at most", timeouts_made(), LATEST.get())
}

/// WebAssembly does not unwind: the browser reports the trap, and the program has ended.
#[wasm_bindgen]
pub async fn a_callback_that_panics_ends_the_program() {
    let timer = timer();
    timer.schedule_after(millis(5), || panic!("on purpose")).unwrap();
    timer.sleep(HOUR).await.unwrap();
}
