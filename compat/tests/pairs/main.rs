//! Features that a program uses together through this crate. `tests/README.md` of shardwheel has the
//! table of pairs.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backon::{ConstantBuilder, Retryable, Sleeper};
use metrics_exporter_prometheus::PrometheusBuilder;
use shardwheel::{
    Deadline, DelayQueue, ManualClock, ScheduleErrorKind, Timer, interval, now, sleep, timeout,
};
use shardwheel_compat::tower::Elapsed;
use shardwheel_compat::{
    BackonSleeper, Cron, ExpiringMap, TimeZone, TimeoutLayer, TimerMetrics, TimerTracing, real_work,
    virtual_time,
};
use tower::{Layer, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program by virtual time; fails if it hangs.
fn virtually<F: Future<Output = ()> + 'static>(program: impl FnOnce(ManualClock) -> F + Send + 'static) {
    let (sender, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        virtual_time(program);
        let _ = sender.send(());
    });
    match ended.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program hangs"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

type Report = Arc<Mutex<Vec<(u8, Duration)>>>;

/// A map whose reports say when each entry has ended, by the clock.
fn map(timer: &Timer, clock: &ManualClock) -> (ExpiringMap<u8, u8>, Report) {
    let (report, clock) = (Report::default(), clock.clone());
    let ended = Arc::clone(&report);
    let map =
        ExpiringMap::new(timer, 10, move |_, key, _| ended.lock().unwrap().push((key, clock.elapsed())));
    (map, report)
}

/// A wall clock that goes by `clock`.
fn wall(clock: &ManualClock) -> impl FnMut() -> SystemTime + Send + 'static {
    let clock = clock.clone();
    move || UNIX_EPOCH + clock.elapsed()
}

/// Three o'clock each day, by a wall clock that goes by `clock`.
fn nightly(clock: &ManualClock) -> Cron {
    Cron::new("0 3 * * *", TimeZone::UTC).unwrap().clock(wall(clock)).look_every(HOUR)
}

#[test]
fn a_map_by_virtual_time() {
    virtually(|clock| async move {
        let (map, report) = map(Timer::global(), &clock);
        map.insert(1, 1, HOUR).unwrap();
        map.insert(2, 2, HOUR).unwrap();
        sleep(HOUR / 2).await;
        assert!(map.extend(&2, HOUR));
        sleep(HOUR / 2).await;
        assert_eq!((map.get(&1), map.get(&2).as_deref()), (None, Some(&2)));
        sleep(HOUR).await;
        assert_eq!((&*report.lock().unwrap(), map.len()), (&vec![(1, HOUR), (2, HOUR * 3 / 2)], 0));
    });
}

/// The program waits for nothing but values of a queue and members of a group.
#[test]
fn a_group_and_a_queue_by_virtual_time() {
    virtually(|clock| async move {
        let (group, queue) = (Timer::global().group(), Arc::new(DelayQueue::new(Timer::global())));
        queue.insert("hour", HOUR).unwrap();
        let late = group.clone();
        group.schedule_after(2 * HOUR, move || _ = late.cancel_all()).unwrap();
        let member = tokio::spawn(group.sleep(9 * HOUR));
        let consumer = Arc::clone(&queue);
        let taken = tokio::spawn(async move { consumer.next().await.map(|expired| expired.value) });
        assert_eq!((taken.await.unwrap(), clock.elapsed()), (Some("hour"), HOUR));
        let ended = member.await.unwrap().unwrap_err();
        assert_eq!((ended.kind(), clock.elapsed()), (ScheduleErrorKind::Cancelled, 2 * HOUR));
        queue.insert("closed", HOUR).unwrap();
        queue.close();
        assert_eq!(queue.next().await.map(|expired| expired.value), Some("closed"));
        assert_eq!((queue.next().await, clock.elapsed()), (None, 3 * HOUR));
    });
}

#[test]
fn deadlines_intervals_and_real_work_by_virtual_time() {
    virtually(|clock| async move {
        let work = Deadline::after(HOUR).scope(async {
            let mut ticks = interval(HOUR / 4);
            let mut count = 0;
            let counted = async {
                loop {
                    ticks.tick().await;
                    count += 1;
                }
            };
            let ended: Result<(), _> = timeout(9 * HOUR, counted).await;
            assert!(ended.is_err());
            count
        });
        let count = tokio::spawn(work).await.unwrap();
        assert!((4..=5).contains(&count) && clock.elapsed() == HOUR, "{count} at {:?}", clock.elapsed());
        let (sender, answer) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            sender.send(7)
        });
        let limit = Deadline::after(SECOND);
        let answer = limit.scope(async { timeout(HOUR, real_work(answer)).await });
        assert_eq!((answer.await, clock.elapsed()), (Ok(Ok(7)), HOUR));
    });
}

/// The wall clock of a job goes by the clock of the scope only if the job is given that clock.
#[test]
fn a_cron_job_in_a_scope_and_in_a_group() {
    let clock = ManualClock::new();
    let (calls, waiting) = clock.scope(|| {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (group, weak) = (Timer::global().group(), Timer::global().group());
        for (group, number) in [(&group, 1), (&weak, 2)] {
            let (calls, at) = (Arc::clone(&calls), clock.clone());
            let note = move || calls.lock().unwrap().push((number, at.elapsed()));
            group.schedule_with(nightly(&clock), note).unwrap();
        }
        clock.advance(24 * HOUR);
        assert_eq!((group.len(), weak.cancel_all()), (1, 1));
        clock.advance(24 * HOUR);
        drop(group);
        clock.advance(24 * HOUR);
        std::mem::take(&mut *calls.lock().unwrap())
    });
    assert_eq!(calls, [(1, 3 * HOUR), (2, 3 * HOUR), (1, 27 * HOUR)]);
    assert_eq!(waiting.pending, 0, "{waiting}");
}

#[test]
fn a_cron_job_by_virtual_time() {
    virtually(|clock| async move {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let call = move || _ = count.fetch_add(1, Ordering::Relaxed);
        Timer::global().schedule_with(nightly(&clock), call).unwrap();
        sleep(50 * HOUR).await;
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    });
}

/// What is retried within a time limit ends at the deadline of the request, by the clock of a scope.
#[test]
fn a_retry_in_a_deadline() {
    let clock = ManualClock::new();
    clock.advance(HOUR);
    let (attempts, waiting) = clock.scope(|| {
        let attempts = Cell::new(0);
        let fetch = || async {
            attempts.set(attempts.get() + 1);
            Err::<(), _>("busy")
        };
        let pauses = ConstantBuilder::default().with_delay(SECOND).with_max_times(100);
        let retry = fetch.retry(pauses).sleep(BackonSleeper::default());
        let request = Deadline::after(SECOND * 5 / 2).scope(async { timeout(HOUR, retry).await });
        assert!(clock.run_until_stalled(request).expect("the clock moves").is_err());
        assert_eq!(clock.elapsed(), HOUR + SECOND * 5 / 2);
        attempts.get()
    });
    assert_eq!((attempts, waiting.pending), (3, 0));
}

/// The layer, the deadline that it hands on, and a map in the service, by virtual time.
#[test]
fn a_layer_a_deadline_and_a_map_by_virtual_time() {
    virtually(|clock| async move {
        let (sessions, report) = map(Timer::global(), &clock);
        let own = sessions.clone();
        let service = service_fn(move |key: u8| {
            let sessions = own.clone();
            async move {
                sessions.insert(key, key, 2 * HOUR).unwrap();
                let left = Deadline::current().map(Deadline::remaining);
                let answer = timeout(9 * HOUR, pending::<()>()).await;
                Ok::<_, Infallible>((left, answer.is_err()))
            }
        });
        let layer = TimeoutLayer::new(HOUR);
        // The service's own limit ends with the layer's, so the service answers.
        let answer = layer.layer(service).oneshot(1).await.unwrap();
        assert_eq!((answer, clock.elapsed()), ((Some(HOUR), true), HOUR));
        let never = service_fn(|_: u8| pending::<Result<(), Infallible>>());
        let error = layer.layer(never).oneshot(2).await.unwrap_err();
        assert!(error.is::<Elapsed>(), "{error}");
        assert_eq!((clock.elapsed(), &*report.lock().unwrap()), (2 * HOUR, &vec![(1, 2 * HOUR)]));
    });
}

/// Figures of the timer of a scope, recorded by itself at its own time.
#[test]
fn metrics_of_a_timer_in_a_scope() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let clock = ManualClock::new();
    let ((), waiting) = metrics::with_local_recorder(&recorder, || {
        clock.scope(|| {
            let group = Timer::global().group();
            TimerMetrics::new().every(HOUR, &group).map_err(|error| error.kind()).unwrap();
            let (sessions, _) = map(&group, &clock);
            sessions.insert(1, 1, 9 * HOUR).unwrap();
            let queue = DelayQueue::new(&group);
            queue.insert((), HOUR / 2).unwrap();
            group.schedule_after(9 * HOUR, || ()).unwrap();
            clock.advance(HOUR);
            assert_eq!(group.len(), 1, "neither the report nor the map's entry");
        })
    });
    let page = recorder.handle().render();
    for line in ["shardwheel_pending 3", "shardwheel_fired_total 1"] {
        assert!(page.lines().any(|own| own == line), "{line} in {page}");
    }
    assert_eq!(waiting.pending, 1, "the report: {waiting}");
}

/// What wraps callbacks in warnings leaves the times of the clock, a group and a map as they are.
#[test]
fn tracing_of_a_timer_by_virtual_time() {
    virtually(|clock| async move {
        let builder = Timer::builder().clock(clock.clone());
        let timer = TimerTracing::new(PATIENCE).install(builder).build().unwrap();
        let (sessions, report) = map(&timer, &clock);
        sessions.insert(1, 1, HOUR).unwrap();
        let (group, at) = (timer.group(), clock.clone());
        let ticks = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&ticks);
        group.schedule_every(HOUR, move || noted.lock().unwrap().push(at.elapsed())).unwrap();
        group.schedule_after(HOUR, || panic!("is warned of")).unwrap();
        assert_eq!(timer.sleep(3 * HOUR).await, Ok(()));
        assert_eq!((clock.elapsed(), &*report.lock().unwrap()), (3 * HOUR, &vec![(1, HOUR)]));
        assert_eq!(*ticks.lock().unwrap(), [HOUR, 2 * HOUR, 3 * HOUR]);
        assert_eq!((group.cancel_all(), timer.stats().panics), (1, 1));
        assert!(now() - clock_start(&clock) == 3 * HOUR);
    });
}

fn clock_start(clock: &ManualClock) -> Instant {
    shardwheel::Clock::now(clock) - clock.elapsed()
}

/// The timer of an event loop: a map, a retry's pause and a job end in its turns.
#[test]
fn a_map_a_retry_and_a_cron_job_on_a_driven_timer() {
    let clock = ManualClock::new();
    let (timer, mut driver) = Timer::builder().clock(clock.clone()).build_driven().unwrap();
    let (sessions, report) = map(&timer, &clock);
    sessions.insert(1, 1, HOUR).unwrap();
    let called = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&called);
    timer.schedule_with(nightly(&clock), move || _ = count.fetch_add(1, Ordering::Relaxed)).unwrap();
    let mut pause = Box::pin(BackonSleeper::new(timer.clone()).sleep(2 * HOUR));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut ended = None;
    while clock.elapsed() < 4 * HOUR {
        if ended.is_none() && pause.as_mut().poll(&mut context).is_ready() {
            ended = Some(clock.elapsed());
        }
        let next = driver.next_deadline().expect("the job is pending");
        clock.advance(next.saturating_duration_since(timer.now()));
        driver.turn();
    }
    assert_eq!((&*report.lock().unwrap(), ended), (&vec![(1, HOUR)], Some(2 * HOUR)));
    assert_eq!(called.load(Ordering::Relaxed), 1);
    drop(driver);
    assert_eq!(sessions.insert(2, 2, HOUR).unwrap_err().into_entry(), (2, 2));
}

/// A timer with a slack: an entry is not seen after its deadline, and reported within the slack.
#[test]
fn a_map_and_a_cron_job_with_a_slack() {
    let clock = ManualClock::new();
    let timer = Timer::builder().slack(60 * SECOND).clock(clock.clone()).build().unwrap();
    let (sessions, report) = map(&timer, &clock);
    let (called, at) = (Report::default(), clock.clone());
    let note = Arc::clone(&called);
    timer.schedule_with(nightly(&clock), move || note.lock().unwrap().push((0, at.elapsed()))).unwrap();
    sessions.insert(1, 1, 601 * SECOND).unwrap();
    clock.advance(601 * SECOND);
    assert_eq!(sessions.get(&1), None);
    clock.advance(3 * HOUR);
    for (ended, due) in [(&report, 601 * SECOND), (&called, 3 * HOUR)] {
        let [(_, at)] = ended.lock().unwrap()[..] else { panic!("it has ended once") };
        assert!(at >= due && at <= due + 61 * SECOND, "{at:?}");
    }
}

/// The places of what is pending in a scope, in a group and in a deadline are the program's lines.
#[cfg(feature = "introspect")]
#[test]
fn what_is_pending_in_a_scope_is_named_by_the_programs_lines() {
    let clock = ManualClock::new();
    let first = line!() + 4;
    let (places, _) = clock.scope(|| {
        let group = Timer::global().group();
        let (sessions, _) = map(&group, &clock);
        sessions.insert(1, 1, HOUR).unwrap();
        group.schedule_with(nightly(&clock), || ()).unwrap();
        let sleeper = BackonSleeper::new((*group).clone());
        let mut pause = Box::pin(sleeper.sleep(HOUR));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(pause.as_mut().poll(&mut context).is_pending());
        Timer::global().pending().places
    });
    let mut lines: Vec<_> = places.iter().map(|place| place.place.unwrap()).collect();
    lines.sort();
    assert!(lines.iter().all(|place| place.file() == file!()), "{lines:?}");
    assert_eq!(lines.iter().map(|place| place.line()).collect::<Vec<_>>(), [first, first + 1, first + 2]);
}
