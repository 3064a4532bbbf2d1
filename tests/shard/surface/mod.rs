//! Facts about the public surface that a user's code leans on: what may cross threads, what may be a payload,
//! what the errors say and give back, what a panic costs, and what each argument may be.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{
    Advancer, Config, ConfigError, Expired, Fired, Key, ScheduleError, ScheduleErrorKind, Scheduler,
    ShardStats, Tick, shard,
};

fn halves<T: Send>() -> (Scheduler<T>, Advancer<T>) {
    shard(&Config::default())
}

/// Runs `work`, which is to panic, and swallows the panic.
fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "it was to panic");
}

// What the compiler knows.

fn clones<X: Clone>() {}
fn crosses<X: Send>() {}
fn is_shared<X: Send + Sync>() {}
fn names<X: Copy + Eq + Hash + Debug + Send + Sync + 'static>() {}
fn fails<E: Error>() {}
fn iterates<X: Iterator<Item = Fired<T>>, T>() {}

/// What holds for every payload that can be sent, whether or not it can be shared.
fn holds_for_every_payload<'a, T: Send + 'a>() {
    clones::<Scheduler<T>>();
    is_shared::<Scheduler<T>>();
    crosses::<Advancer<T>>();
    crosses::<Fired<T>>();
    iterates::<Expired<'a, T>, T>();
    fails::<ScheduleError<T>>();
}

/// The halves cross threads as they should, whatever the payload; errors are errors, whatever it can print.
#[test]
fn bounds() {
    holds_for_every_payload::<u64>();
    holds_for_every_payload::<Cell<u8>>();
    holds_for_every_payload::<Box<dyn FnOnce() + Send>>();
    holds_for_every_payload::<&str>();
    names::<Key>();
    is_shared::<ShardStats>();
    value_types();
}

fn value_types() {
    clones::<Config>();
    is_shared::<Config>();
    fails::<ConfigError>();
    is_shared::<ConfigError>();
    is_shared::<ScheduleErrorKind>();
    is_shared::<ScheduleError<u64>>();
    is_shared::<Option<Key>>();
}

/// Tells at run time whether a type is `Clone`: where it is, the constant beside the type hides the trait's.
struct Probe<X>(PhantomData<X>);

impl<X: Clone> Probe<X> {
    const CLONES: bool = true;
}

trait Otherwise {
    const CLONES: bool = false;
}

impl<X> Otherwise for Probe<X> {}

/// There is one advancer to a shard, and the compiler sees to it.
#[test]
fn the_advancer_is_not_clone() {
    let [scheduler, advancer] = [Probe::<Scheduler<u8>>::CLONES, Probe::<Advancer<u8>>::CLONES];
    assert!(scheduler && !advancer);
}

/// A key is small, and its absence costs nothing.
#[test]
fn keys_are_small() {
    assert!(size_of::<Key>() <= 16);
    assert_eq!(size_of::<Option<Key>>(), size_of::<Key>());
}

/// All the schedulers of a shard are alike, those that the advancer gives too.
#[test]
fn schedulers_are_interchangeable() {
    let (scheduler, advancer) = halves();
    let key = scheduler.schedule(10, "here").expect("open");
    assert_eq!(advancer.scheduler().clone().cancel(key), Some("here"));
    assert!(scheduler.is_empty());
}

/// A shard outlives its schedulers: the advancer goes on with what they left.
#[test]
fn the_advancer_outlives_the_schedulers() {
    let (scheduler, mut advancer) = halves();
    scheduler.schedule(10, "left").expect("open");
    drop(scheduler);
    assert_eq!(advancer.advance(10).map(|fired| fired.payload).collect::<Vec<_>>(), ["left"]);
}

/// What fires can be taken apart.
#[test]
fn fired_can_be_taken_apart() {
    let (scheduler, mut advancer) = halves();
    let scheduled = scheduler.schedule(7, String::from("seven")).expect("open");
    for fired in advancer.advance(9) {
        assert!(format!("{fired:?}").contains("seven"));
        let Fired { key, deadline, payload } = fired;
        assert_eq!((key, deadline, payload.as_str()), (scheduled, 7, "seven"));
    }
}

// What may be a payload.

/// A payload may borrow: nothing has to live for ever.
#[test]
fn payloads_may_borrow() {
    let name = String::from("local");
    let seen = Cell::new(0);
    let (scheduler, mut advancer) = halves::<&str>();
    let key = scheduler.schedule(1, &name).expect("open");
    scheduler.schedule(2, &name[1..]).expect("open");
    assert_eq!(scheduler.cancel(key), Some("local"));
    advancer.advance(2).for_each(|fired| seen.set(seen.get() + fired.payload.len()));
    assert_eq!(seen.get(), 4);
}

/// A payload may be a callback that borrows what it works on and can run only once.
#[test]
fn payloads_may_be_callbacks() {
    let count = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves::<Box<dyn FnOnce() -> usize + Send + '_>>();
    for _ in 0..3 {
        scheduler.schedule(1, Box::new(|| count.fetch_add(1, Ordering::Relaxed))).expect("open");
    }
    assert_eq!(advancer.advance(1).map(|fired| (fired.payload)()).sum::<usize>(), 3);
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

/// A payload of no size is fired, cancelled, handed back and dropped as any other.
#[test]
fn payloads_of_no_size() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (scheduler, mut advancer) = halves();
    let keys = [5, 6, 700].map(|deadline| scheduler.schedule(deadline, Nothing).expect("open"));
    assert!(scheduler.cancel(keys[1]).is_some());
    assert_eq!(advancer.advance(6).count(), 1);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
    assert_eq!(advancer.into_pending().map(|(deadline, _)| deadline).collect::<Vec<_>>(), [700]);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 3);
}

/// A payload of a page comes back as it went in, from a cancel, from firing and from the end.
#[test]
fn payloads_of_a_page() {
    let page = |i: usize| std::array::from_fn::<u8, 4096, _>(|at| (at * 31 + i * 7) as u8);
    let (scheduler, mut advancer) = halves();
    let keys = (0..300).map(|i| scheduler.schedule(i as Tick, page(i)).expect("open")).collect::<Vec<_>>();
    assert!((0..300).step_by(3).all(|i| scheduler.cancel(keys[i]) == Some(page(i))));
    assert!(advancer.advance(150).all(|fired| fired.payload == page(fired.deadline as usize)));
    let rest =
        advancer.into_pending().map(|(deadline, payload)| (payload == page(deadline as usize), deadline));
    assert!(rest.inspect(|&(same, _)| assert!(same)).all(|(_, deadline)| deadline > 150));
}

/// Checks its own address when it is dropped, wherever that happens.
fn check_alignment<T>(payload: &T) {
    assert_eq!(std::ptr::from_ref(payload).addr() % align_of::<T>(), 0, "a payload stood askew");
}

#[repr(align(64))]
struct Line(u8);

#[repr(align(128))]
struct TwoLines(u8);

impl Drop for Line {
    fn drop(&mut self) {
        check_alignment(self);
    }
}

impl Drop for TwoLines {
    fn drop(&mut self) {
        check_alignment(self);
    }
}

/// Cancels some, fires some, drops the rest with the shard.
fn comes_and_goes<T: Send>(payload: impl Fn(u8) -> T, number: impl Fn(&T) -> u8) {
    let (scheduler, mut advancer) = halves();
    let keys =
        (0..200).map(|i| scheduler.schedule(Tick::from(i), payload(i)).expect("open")).collect::<Vec<_>>();
    assert!(scheduler.cancel(keys[90]).is_some_and(|given_back| number(&given_back) == 90));
    let fired = advancer.advance(99).map(|fired| number(&fired.payload)).collect::<Vec<_>>();
    assert_eq!(fired, (0..100).filter(|&i| i != 90).collect::<Vec<_>>());
}

/// A payload may be aligned more strictly than the nodes are.
#[test]
fn payloads_may_be_over_aligned() {
    comes_and_goes(Line, |line| line.0);
    comes_and_goes(TwoLines, |lines| lines.0);
}

/// Counts its drops, and panics in its own if it is told to.
struct Counted<'a> {
    drops: &'a AtomicUsize,
    panics: bool,
}

impl<'a> Counted<'a> {
    fn new(drops: &'a AtomicUsize) -> Self {
        Self { drops, panics: false }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        if self.panics && !std::thread::panicking() {
            panic!("a payload's drop panics, as the test wants it to");
        }
    }
}

// Panics.

/// A panic in the loop that takes what is due loses the item in hand only: the rest comes at the next
/// advance. Promise 7.
#[test]
fn a_panic_in_the_loop_loses_the_item_in_hand() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [3, 3, 4, 5, 900] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("open");
    }
    for lost in 1..=2 {
        panics(|| {
            let _in_hand = advancer.advance(6).next().expect("three and more are due");
            panic!("the loop panics, as the test wants it to");
        });
        assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (lost, 5 - lost));
    }
    assert_eq!(advancer.advance(6).map(|fired| fired.deadline).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(advancer.advance(900).count(), 1);
    assert_eq!(drops.load(Ordering::Relaxed), 5);
}

/// A payload whose drop panics, dropped by whoever got it from a cancel or from an advance: the shard goes
/// on. Promise 7.
#[test]
fn a_panicking_drop_leaves_the_shard_whole() {
    let drops = AtomicUsize::new(0);
    let bomb = || Counted { drops: &drops, panics: true };
    let (scheduler, mut advancer) = halves();
    let keys = [3, 4, 5].map(|deadline| scheduler.schedule(deadline, bomb()).expect("open"));
    panics(|| drop(scheduler.cancel(keys[1])));
    panics(|| advancer.advance(9).for_each(drop));
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (2, 1));
    scheduler.schedule(9, Counted::new(&drops)).expect("open");
    panics(|| advancer.advance(9).for_each(drop));
    assert!(advancer.advance(9).count() <= 1, "the last may have come before the panic");
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (4, 0));
}

/// Ten timers on several levels, of which the fourth's drop panics.
fn ten_with_a_bomb<'a>(drops: &'a AtomicUsize) -> (Scheduler<Counted<'a>>, Advancer<Counted<'a>>) {
    let (scheduler, advancer) = halves();
    for i in 0..10_u32 {
        scheduler.schedule(1 << (4 * i), Counted { drops, panics: i == 3 }).expect("open");
    }
    (scheduler, advancer)
}

/// The advancer is dropped with a payload whose drop panics: all the others are dropped none the less, each
/// once. Promise 8.
#[test]
fn a_panicking_drop_at_the_end_loses_no_other() {
    let drops = AtomicUsize::new(0);
    let (scheduler, advancer) = ten_with_a_bomb(&drops);
    panics(move || drop((advancer, scheduler)));
    assert_eq!(drops.load(Ordering::Relaxed), 10);
}

/// The same for what was to be handed back and is not taken. Promise 8.
#[test]
fn a_panicking_drop_among_what_is_handed_back() {
    let drops = AtomicUsize::new(0);
    let (scheduler, advancer) = ten_with_a_bomb(&drops);
    panics(move || {
        let _scheduler = scheduler;
        drop(advancer.into_pending());
    });
    assert_eq!(drops.load(Ordering::Relaxed), 10);
}

// The end.

/// Dropping the advancer drops what is pending, at once and once, though schedulers live on. Promise 8.
#[test]
fn dropping_the_advancer_drops_what_is_pending() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [0, 1, 2, 3_000, 4_000_000, Tick::MAX] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("open");
    }
    assert!(advancer.advance(2).next().is_some());
    drop(advancer);
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (6, 0));
    drop(scheduler);
    assert_eq!(drops.load(Ordering::Relaxed), 6);
}

/// What is handed back and taken only in part is dropped, once. Promise 8.
#[test]
fn handed_back_and_taken_in_part() {
    let drops = AtomicUsize::new(0);
    let (scheduler, advancer) = halves();
    for deadline in [1, 2, 3_000, 4_000_000] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("open");
    }
    let mut pending = advancer.into_pending();
    let taken = pending.next().expect("four are pending");
    drop(pending);
    assert_eq!(drops.load(Ordering::Relaxed), 3);
    drop(taken);
    drop(scheduler);
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

/// An advance that the caller forgets (which safe code may) loses nothing: what it held is still due.
#[test]
fn a_forgotten_advance_loses_nothing() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [1, 2, 3, 4_000] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("open");
    }
    let mut expired = advancer.advance(3);
    assert!(expired.next().is_some());
    std::mem::forget(expired);
    assert_eq!(scheduler.len(), 3);
    assert_eq!(advancer.advance(3).map(|fired| fired.deadline).collect::<Vec<_>>(), [2, 3]);
    drop((scheduler, advancer));
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

/// A payload that holds a scheduler of its own shard, and uses it when it is dropped.
struct Inside {
    scheduler: Option<Scheduler<Inside>>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        let Some(scheduler) = self.scheduler.take() else { return };
        let again = Inside { scheduler: None, drops: Arc::clone(&self.drops) };
        assert!(scheduler.schedule(1, again).is_err_and(|refused| refused.is_shut_down()));
    }
}

/// Payloads that hold the shard that holds them do not keep it alive: they go with the advancer. One that
/// schedules as it is dropped gets an error, not a deadlock. Promises 7 and 8.
#[test]
fn payloads_that_hold_their_shard_go_with_the_advancer() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (scheduler, advancer) = halves();
    for deadline in [1, 2_000, Tick::MAX] {
        let inside = Inside { scheduler: Some(scheduler.clone()), drops: Arc::clone(&drops) };
        scheduler.schedule(deadline, inside).expect("open");
    }
    drop((scheduler, advancer));
    assert_eq!(drops.load(Ordering::Relaxed), 6, "three, and the three that they tried to schedule");
    assert_eq!(Arc::strong_count(&drops), 1);
}

// Errors.

/// A shard without its advancer refuses and gives back; nothing is pending in it and its keys are harmless.
/// Promise 8.
#[test]
fn shut_down_gives_the_payload_back() {
    let (scheduler, advancer) = halves();
    let key = scheduler.schedule(5, String::from("dropped")).expect("open");
    drop(advancer);
    let refused = scheduler.schedule(10, String::from("late")).expect_err("shut down");
    assert_eq!((refused.kind(), refused.is_shut_down()), (ScheduleErrorKind::ShutDown, true));
    assert!(refused.to_string().contains("shut down"));
    assert_eq!(refused.into_payload(), "late");
    let refused = scheduler.schedule_within(10..=20, String::from("late")).expect_err("shut down");
    assert_eq!((refused.is_shut_down(), refused.into_payload()), (true, String::from("late")));
    assert_eq!(
        (scheduler.cancel(key), scheduler.reschedule(key, 50), scheduler.is_empty()),
        (None, None, true)
    );
}

/// The same after what was pending has been handed back. Promise 8.
#[test]
fn handing_back_shuts_down() {
    let (scheduler, advancer) = halves();
    scheduler.schedule(5, "pending").expect("open");
    assert_eq!(advancer.into_pending().collect::<Vec<_>>(), [(5, "pending")]);
    assert!(scheduler.clone().schedule(10, "late").is_err_and(|refused| refused.is_shut_down()));
    assert_eq!((scheduler.len(), scheduler.now()), (0, 0));
}

/// A full shard names its limit.
#[test]
fn full_names_its_limit() {
    let config = Config::builder().max_pending(17).build().expect("within limits");
    let (scheduler, _advancer) = shard(&config);
    for i in 0..17 {
        scheduler.schedule(i, vec![i]).expect("room for seventeen");
    }
    let refused = scheduler.schedule(17, vec![17]).expect_err("full");
    assert_eq!((refused.kind(), refused.is_full()), (ScheduleErrorKind::Full { limit: 17 }, true));
    assert!(refused.to_string().contains("17"));
    assert_eq!(refused.into_payload(), [17]);
}

/// A window that holds no tick is refused with its bounds, and takes no room.
#[test]
fn an_empty_window_names_its_bounds() {
    let (scheduler, _advancer) = halves();
    for (start, end) in [(290, 281), (1, 0), (Tick::MAX, 0)] {
        let refused = scheduler.schedule_within(start..=end, "windowed").expect_err("no tick in it");
        assert_eq!(refused.kind(), ScheduleErrorKind::EmptyWindow { start, end });
        assert!(!refused.is_full() && !refused.is_shut_down());
        let text = refused.to_string();
        assert!(text.contains(&start.to_string()) && text.contains(&end.to_string()), "{text}");
        assert_eq!(refused.into_payload(), "windowed");
    }
    assert!(scheduler.is_empty());
}

/// An error prints though its payload cannot, and converts to the error that most programs return.
#[test]
fn errors_print_without_their_payload() {
    struct Mute;
    let (scheduler, advancer) = halves::<Mute>();
    drop(advancer);
    let refused = scheduler.schedule(1, Mute).expect_err("shut down");
    assert!(format!("{refused:?}").contains("ShutDown"));
    let boxed: Box<dyn Error> = refused.into();
    assert!(boxed.source().is_none());
}

// Arguments.

/// The first and the last tick are deadlines as any others, also together. Promise 4.
#[test]
fn the_first_and_the_last_tick_are_deadlines() {
    let (scheduler, mut advancer) = halves();
    let last = scheduler.schedule(Tick::MAX, "last").expect("open");
    scheduler.schedule(0, "first").expect("open");
    assert_eq!(advancer.advance(0).map(|fired| fired.payload).collect::<Vec<_>>(), ["first"]);
    let later = scheduler.reschedule(last, 0).and_then(|key| scheduler.reschedule(key, Tick::MAX));
    assert!(later.is_some());
    assert_eq!(advancer.advance(Tick::MAX - 1).count(), 0);
    assert_eq!(advancer.advance(Tick::MAX).map(|fired| fired.payload).collect::<Vec<_>>(), ["last"]);
    assert_eq!(scheduler.now(), Tick::MAX);
}

/// The tick picked for a window lies within it, however wide; one tick wide, it is that tick.
#[test]
fn the_tick_picked_lies_in_the_window() {
    for window in [0..=0, 9..=9, 281..=290, 5_000..=9_000_000, 1..=Tick::MAX, Tick::MAX..=Tick::MAX] {
        let (scheduler, advancer) = halves();
        scheduler.schedule_within(window.clone(), ()).expect("not empty");
        assert!(advancer.into_pending().all(|(deadline, ())| window.contains(&deadline)), "{window:?}");
    }
}

/// The default settings make a shard whose clock stands at 0 with nothing in it.
#[test]
fn a_fresh_shard_is_empty() {
    let (scheduler, mut advancer) = halves::<u8>();
    assert_eq!((scheduler.now(), scheduler.len(), scheduler.is_empty()), (0, 0, true));
    assert_eq!(advancer.next_expiration(), None);
    assert_eq!(advancer.advance(0).count(), 0);
    let stats = scheduler.stats();
    assert_eq!((stats.scheduled, stats.fired, stats.cancelled, stats.pending), (0, 0, 0, 0));
    assert_eq!(advancer.into_pending().count(), 0);
}
