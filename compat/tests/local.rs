//! [`LocalTimer`] on the runtimes themselves: compio, monoio by io_uring and by epoll, glommio.
//!
//! monoio is built without its feature `sync`.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::future::{Future, Ready, pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, DelayQueue, Interval, Sleep, Timeout, Timer, TimerBuilder};
use shardwheel_compat::{
    Local, LocalTimer, compio_timer, compio_timer_with, glommio_timer, glommio_timer_with, monoio_timer,
    monoio_timer_with,
};

const HOUR: Duration = Duration::from_secs(3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Runtime {
    Compio,
    Monoio,
    MonoioByEpoll,
    Glommio,
}

use Runtime::{Compio, Glommio, Monoio, MonoioByEpoll};

const ALL: [Runtime; 4] = [Compio, Monoio, MonoioByEpoll, Glommio];

impl Runtime {
    fn block_on<F: Future>(self, future: F) -> F::Output {
        match self {
            Compio => compio::runtime::Runtime::new().unwrap().block_on(future),
            Monoio => {
                let builder = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new();
                builder.enable_timer().build().unwrap().block_on(future)
            }
            MonoioByEpoll => monoio_by_epoll().block_on(future),
            Glommio => {
                let (soft, hard) = rlimit::Resource::MEMLOCK.get().unwrap();
                rlimit::Resource::MEMLOCK.set(soft.max(hard), hard).unwrap();
                let executor = glommio::LocalExecutorBuilder::default().make();
                executor.expect("glommio needs 512 KiB of `ulimit -l`").run(future)
            }
        }
    }

    fn timer(self) -> LocalTimer {
        match self {
            Compio => compio_timer(),
            Monoio | MonoioByEpoll => monoio_timer(),
            Glommio => glommio_timer(),
        }
        .unwrap()
    }

    fn timer_with(self, builder: TimerBuilder) -> LocalTimer {
        match self {
            Compio => compio_timer_with(builder),
            Monoio | MonoioByEpoll => monoio_timer_with(builder),
            Glommio => glommio_timer_with(builder),
        }
        .unwrap()
    }

    fn spawn(self, task: impl Future<Output = ()> + 'static) {
        match self {
            Compio => compio::runtime::spawn(task).detach(),
            Monoio | MonoioByEpoll => drop(monoio::spawn(task)),
            Glommio => drop(glommio::spawn_local(task).detach()),
        }
    }

    /// The runtime's own sleep.
    async fn sleep(self, duration: Duration) {
        match self {
            Compio => compio::time::sleep(duration).await,
            Monoio | MonoioByEpoll => monoio::time::sleep(duration).await,
            Glommio => glommio::timer::sleep(duration).await,
        }
    }
}

fn monoio_by_epoll() -> monoio::Runtime<monoio::time::TimeDriver<monoio::LegacyDriver>> {
    monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().enable_timer().build().unwrap()
}

/// Runs the test on each runtime, on a thread of its own, which has to end.
fn on(runtimes: &[Runtime], test: impl AsyncFn(Runtime) + Copy + Send + 'static) {
    for &runtime in runtimes {
        in_time(runtime, move || runtime.block_on(async { test(runtime).await }));
    }
}

fn in_time(what: impl std::fmt::Debug, test: impl FnOnce() + Send + 'static) {
    let (ended, has_ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        ended.send(()).unwrap();
    });
    if has_ended.recv_timeout(ms(60_000)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("{what:?} has not ended");
    }
    thread.join().unwrap_or_else(|_| panic!("{what:?} has failed"));
}

async fn eventually(runtime: Runtime, what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < ms(50_000), "not yet: {what}");
        runtime.sleep(ms(1)).await;
    }
}

/// Polls once.
async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|context| Poll::Ready(pin!(&mut *future).poll(context).is_pending())).await
}

/// It compiles only if neither the handle nor what it makes is `Send`: the call is ambiguous else.
#[test]
fn nothing_leaves_the_thread() {
    trait AmbiguousIfSend<T> {
        fn stays() {}
    }
    impl<T> AmbiguousIfSend<()> for T {}
    impl<T: Send> AmbiguousIfSend<u8> for T {}

    <LocalTimer as AmbiguousIfSend<_>>::stays();
    <Local<Sleep> as AmbiguousIfSend<_>>::stays();
    <Local<Timeout<Ready<()>>> as AmbiguousIfSend<_>>::stays();
    <Local<Interval> as AmbiguousIfSend<_>>::stays();
}

#[test]
fn sleeps_end_when_they_are_due() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        for micros in [0, 1, 300, 1_700, 5_000, 30_000] {
            let due = Instant::now() + Duration::from_micros(micros);
            timer.sleep(Duration::from_micros(micros)).await.unwrap();
            assert!(Instant::now() >= due, "{micros}");
        }
        timer.sleep_until(Instant::now() - ms(5)).await.unwrap();
        let mut sleep = timer.sleep(HOUR);
        assert!(is_pending(&mut sleep).await);
        sleep.reset_after(ms(2));
        sleep.await.unwrap();
    });
}

/// What they limit is bound to the thread, too.
#[test]
fn timeouts_limit_the_time() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        let bound = Rc::new(Cell::new(0));
        let sets = async {
            timer.sleep(ms(1)).await.unwrap();
            bound.set(7);
            Rc::clone(&bound)
        };
        assert_eq!(timer.timeout(HOUR, sets).await.unwrap().get(), 7);
        let begin = Instant::now();
        assert!(timer.timeout(ms(5), pending::<()>()).await.unwrap_err().is_elapsed());
        assert!(begin.elapsed() >= ms(5));
        let hour = timer.sleep(HOUR);
        assert!(timer.timeout_at(Instant::now() + ms(5), hour).await.unwrap_err().is_elapsed());
        assert_eq!(timer.timer().stats().pending, 0);
    });
}

#[test]
fn intervals_keep_their_period() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        let start = timer.timer().now();
        let mut interval = timer.interval_at(start, ms(3));
        for count in 0..5 {
            assert_eq!(interval.tick().await.unwrap(), start + ms(3) * count);
            assert!(timer.timer().now() >= start + ms(3) * count);
        }
        let mut interval = timer.interval(ms(2));
        let first = interval.tick().await.unwrap();
        assert_eq!(interval.tick().await.unwrap(), first + ms(2));
    });
}

/// A clock of the caller's is dropped when nothing of a timer is left: no handle, no sleep, no task.
#[derive(Clone)]
struct Held(#[expect(dead_code, reason = "its drop counts")] Arc<()>);

impl Clock for Held {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

fn held() -> (TimerBuilder, impl Fn() -> bool) {
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    (Timer::builder().clock(Held(held)), move || weak.upgrade().is_none())
}

/// And the task that runs it. Until then nothing of it is left behind.
#[test]
fn the_last_handle_ends_the_timer() {
    on(&ALL, async |runtime| {
        let (builder, is_gone) = held();
        let timer = runtime.timer_with(builder);
        let mut sleep = timer.sleep(HOUR);
        assert!(is_pending(&mut sleep).await);
        let clone = timer.clone();
        drop(timer);
        clone.sleep(ms(2)).await.unwrap();
        assert!(is_pending(&mut sleep).await);
        drop(clone);
        assert!(sleep.await.unwrap_err().is_shut_down());
        eventually(runtime, "the task has ended", is_gone).await;
    });
}

#[test]
fn a_shutdown_ends_the_sleeps_of_other_tasks() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        let ended = Rc::new(Cell::new(false));
        let (sleep, sees) = (timer.sleep(HOUR), Rc::clone(&ended));
        runtime.spawn(async move { sees.set(sleep.await.unwrap_err().is_shut_down()) });
        timer.sleep(ms(2)).await.unwrap();
        drop(timer.timer().shutdown());
        eventually(runtime, "it has ended", || ended.get()).await;
        assert!(timer.sleep(ms(1)).await.unwrap_err().is_shut_down());
    });
}

/// monoio and glommio drop no task that waits.
#[test]
fn the_end_of_the_runtime_ends_the_timer() {
    in_time(Compio, || {
        let timer = Compio.block_on(async {
            let timer = compio_timer().unwrap();
            timer.sleep(ms(2)).await.unwrap();
            timer
        });
        let ended = futures_util::FutureExt::now_or_never(timer.sleep(HOUR)).expect("it is an error");
        assert!(ended.unwrap_err().is_shut_down());
    });
}

/// The wake comes from the thread itself, when monoio would panic. The runtime hears of it when it
/// runs again.
#[test]
fn the_last_handle_may_be_dropped_while_the_runtime_does_not_run() {
    in_time("monoio", || {
        let mut runtime = monoio_by_epoll();
        let panics = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&panics);
        let (builder, is_gone) = held();
        let builder = builder.on_panic(move |_| _ = counts.fetch_add(1, Ordering::SeqCst));
        let timer = runtime.block_on(async {
            let timer = monoio_timer_with(builder).unwrap();
            timer.sleep(ms(2)).await.unwrap();
            timer
        });
        drop(timer);
        assert_eq!(panics.load(Ordering::SeqCst), 0);
        runtime.block_on(eventually(MonoioByEpoll, "the task has ended", is_gone));
    });
}

/// By the ordinary handle, while the loop waits for nothing, and while it waits for an hour. The
/// callbacks run on the loop.
#[test]
fn another_thread_schedules() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        let here = thread::current().id();
        for waits in [None, Some(HOUR)] {
            let mut hour = waits.map(|hour| timer.sleep(hour));
            if let Some(hour) = &mut hour {
                assert!(is_pending(hour).await);
            }
            let (send, receive) = mpsc::channel();
            let handle = timer.timer().clone();
            let produces = thread::spawn(move || {
                for _ in 0..20 {
                    thread::sleep(ms(2));
                    let (send, due) = (send.clone(), Instant::now() + ms(1));
                    let sends = move || send.send((thread::current().id(), Instant::now() < due)).unwrap();
                    handle.schedule_after(ms(1), sends).unwrap();
                }
            });
            // Only the other thread wakes the loop: nothing else is due.
            let fired = timer.timer().clone();
            let before = fired.stats().fired;
            let queue = Arc::new(DelayQueue::new(timer.timer()));
            let inserts = Arc::clone(&queue);
            let last = thread::spawn(move || {
                produces.join().unwrap();
                inserts.insert((), ms(1)).unwrap();
            });
            queue.next().await.expect("the timer goes on");
            last.join().unwrap();
            assert_eq!(fired.stats().fired - before, 21);
            let ran: Vec<_> = receive.try_iter().collect();
            assert_eq!(ran, [(here, false)].repeat(20));
        }
    });
}

/// Two loops of monoio's, each on its thread. A poll on the one schedules on the other, whose wakers
/// do not work there.
#[test]
fn a_poll_on_another_loop_schedules() {
    in_time("two loops", || {
        let (hand_over, handle) = mpsc::channel::<Timer>();
        let other = thread::spawn(move || {
            Monoio.block_on(async {
                let (timer, handle) = (monoio_timer().unwrap(), handle.recv().unwrap());
                let (send, receive) = mpsc::channel();
                for _ in 0..20 {
                    timer.sleep(ms(2)).await.unwrap();
                    let (here, send) = (thread::current().id(), send.clone());
                    let sends = move || send.send(thread::current().id() != here).unwrap();
                    timer
                        .timeout(HOUR, async { handle.schedule_after(ms(1), sends) })
                        .await
                        .unwrap()
                        .unwrap();
                }
                drop(send);
                assert_eq!(receive.iter().collect::<Vec<_>>(), [true; 20]);
                // On the loop of the timer: monoio's sleeps cannot be woken here.
                let weak = handle.downgrade();
                handle.schedule_after(ms(1), move || drop(weak.upgrade().unwrap().shutdown())).unwrap();
            });
        });
        Monoio.block_on(async {
            let timer = monoio_timer().unwrap();
            hand_over.send(timer.timer().clone()).unwrap();
            // Nothing on this loop is due while it waits: the other one alone wakes it.
            let hour = timer.sleep(HOUR);
            assert!(hour.await.unwrap_err().is_shut_down());
        });
        other.join().unwrap();
    });
}

/// Years away, and never. monoio's own wheel ends after two years.
#[test]
fn any_deadline_will_do() {
    on(&ALL, async |runtime| {
        let timer = runtime.timer();
        // The nearest alone is what the runtime waits for.
        for far in [Duration::MAX, HOUR * 8_766 * 300, HOUR * 8_766 * 3, HOUR * 8_766] {
            let mut far = timer.sleep(far);
            assert!(is_pending(&mut far).await);
            runtime.sleep(ms(2)).await;
            timer.sleep(ms(2)).await.unwrap();
            assert!(is_pending(&mut far).await);
        }
    });
}

/// An ordinary timer wakes on its own thread, and monoio without `sync` panics there. That is not
/// silent: the message is monoio's, the hook has it, and the statistics count it.
#[test]
fn an_ordinary_timers_sleep_on_monoio_says_that_it_cannot_be_woken() {
    for runtime in [Monoio, MonoioByEpoll] {
        in_time(runtime, move || {
            let (send, messages) = mpsc::channel();
            let builder = Timer::builder().shards(1);
            let hook = builder.on_panic(move |panic| send.send(panic.message().map(str::to_owned)).unwrap());
            let timer = hook.build().unwrap();
            runtime.block_on(async {
                let sleeps = timer.clone();
                let slept = Rc::new(Cell::new(false));
                let ends = Rc::clone(&slept);
                runtime.spawn(async move { ends.set(sleeps.sleep(ms(5)).await.is_ok()) });
                eventually(runtime, "the panic is counted", || timer.stats().panics == 1).await;
                assert!(!slept.get());
                let local = runtime.timer();
                let (sees, ends) = (Rc::clone(&slept), local.clone());
                runtime.spawn(async move { sees.set(ends.sleep(ms(5)).await.is_ok()) });
                eventually(runtime, "a sleep of a local timer ends", || slept.get()).await;
            });
            let message = messages.recv().unwrap().unwrap();
            assert!(message.contains("`sync` feature"), "{message}");
        });
    }
}
