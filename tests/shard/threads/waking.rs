//! Sleeping and waking: no timer is earlier than both the alarm and the wake.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Wake, Waker};
use std::thread;

use fastrand::Rng;
use shardwheel::{Advancer, Config, Tick, shard};

use crate::support::Bell;

use super::work::{times, together};

/// A timer that is earlier than `next_expiration` wakes the advancer before `schedule` returns, and
/// so does a timer that is rescheduled to an earlier tick. A timer that is not earlier wakes
/// nothing.
#[test]
fn an_earlier_timer_wakes_before_schedule_returns() {
    let (scheduler, mut advancer) =
        shard::<Tick>(&Config::builder().start(1_000_000).build().expect("settings within their limits"));
    let key = scheduler.schedule(Tick::MAX, 0).expect("the shard is open");
    for (earlier, by_moving) in
        [(1 << 40, false), (1 << 30, true), (1 << 21, false), (1_000_001, true), (5, false)]
    {
        let bell = Bell::hung_in(&mut advancer);
        let answer = advancer.next_expiration().expect("a timer is pending");
        scheduler.schedule(answer.saturating_add(1), 0).expect("the shard is open");
        assert_eq!(bell.rings(), 0, "no earlier than {answer}");
        if by_moving {
            let far = scheduler.schedule(Tick::MAX, 0).expect("the shard is open");
            scheduler.reschedule(far, earlier).expect("the timer is pending");
        } else {
            scheduler.schedule(earlier, 0).expect("the shard is open");
        }
        assert!(bell.rings() > 0, "{earlier} is earlier than {answer}");
    }
    assert!(scheduler.cancel(key).is_some());
}

/// With nothing pending the answer is none, and any timer is earlier than that.
fn wakes_an_empty_shard(deadline: Tick) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let bell = Bell::hung_in(&mut advancer);
    assert_eq!(advancer.next_expiration(), None);
    scheduler.schedule(deadline, ()).expect("the shard is open");
    assert!(bell.rings() > 0, "{deadline} is earlier than never");
}

/// Any timer wakes the advancer of an empty shard.
#[test]
fn a_timer_wakes_an_empty_shard() {
    [0, 1, 5_000, 1 << 40, Tick::MAX - 1].into_iter().for_each(wakes_an_empty_shard);
}

/// The last tick is earlier than never, too.
#[test]
fn a_timer_for_the_last_tick_wakes_an_empty_shard() {
    wakes_an_empty_shard(Tick::MAX);
}

/// While the advancer registers its waker and asks for the next expiration, two threads schedule:
/// each of their timers is in the answer, or wakes the advancer.
#[test]
fn a_timer_is_in_the_answer_or_wakes() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let mut rng = Rng::with_seed(70);
    for _ in 0..times(300) {
        let now = scheduler.now() + rng.u64(..5_000);
        advancer.advance(now).for_each(drop);
        let [left, right] = [(); 2].map(|()| now + 1 + (1 << rng.u32(..20)));
        let set = |deadline| scheduler.schedule(deadline, ()).map(drop).expect("the shard is open");
        let (answer, bell) = thread::scope(|scope| {
            scope.spawn(|| set(left));
            together(
                || set(right),
                || {
                    let bell = Bell::hung_in(&mut advancer);
                    (advancer.next_expiration(), bell)
                },
            )
        });
        let first = left.min(right);
        assert!(
            answer.is_some_and(|answer| answer <= first) || bell.rings() > 0,
            "{first} is not in {answer:?}"
        );
    }
}

/// A thread that sleeps until the tick that `next_expiration` named, or until it is woken. The test
/// moves the clock, so nothing here takes time.
#[derive(Default)]
struct Sleeper {
    state: Mutex<SleeperState>,
    changed: Condvar,
}

#[derive(Default)]
struct SleeperState {
    clock: Tick,
    woken: bool,
    ended: bool,
    /// While it sleeps: the tick of its alarm, or none if there is no alarm.
    asleep: Option<Option<Tick>>,
    fired: usize,
}

impl SleeperState {
    fn must_wake(&self) -> bool {
        let alarm = self.asleep.flatten();
        self.woken || self.ended || alarm.is_some_and(|alarm| alarm <= self.clock)
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.change(|state| state.woken = true);
    }
}

impl Sleeper {
    fn lock(&self) -> MutexGuard<'_, SleeperState> {
        self.state.lock().expect("no thread panics with the lock")
    }

    fn change(&self, how: impl FnOnce(&mut SleeperState)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    /// Sleeps, and returns the time at which it woke, or none at the end.
    fn sleep(&self, alarm: Option<Tick>) -> Option<Tick> {
        self.change(|state| state.asleep = Some(alarm));
        let asleep = self.changed.wait_while(self.lock(), |state| !state.must_wake());
        let mut state = asleep.expect("no thread panics with the lock");
        (state.asleep, state.woken) = (None, false);
        (!state.ended).then_some(state.clock)
    }

    /// Waits until the thread sleeps with nothing to wake it. Returns its alarm, and how many
    /// timers have fired.
    fn settle(&self) -> (Option<Tick>, usize) {
        let sound = self.changed.wait_while(self.lock(), |state| state.asleep.is_none() || state.must_wake());
        let state = sound.expect("no thread panics with the lock");
        (state.asleep.expect("asleep"), state.fired)
    }

    /// The loop of a thread that drives a shard.
    fn drive(self: &Arc<Self>, mut advancer: Advancer<()>) {
        let waker = Waker::from(Arc::clone(self));
        let mut alarm = Some(0);
        while let Some(now) = self.sleep(alarm) {
            let count = advancer.advance(now).count();
            self.change(|state| state.fired += count);
            advancer.register_waker(&waker);
            alarm = advancer.next_expiration();
        }
    }
}

/// Ends the sleeper's loop, also when the test panics.
struct EndOf<'a>(&'a Sleeper);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.ended = true);
    }
}

/// A thread drives a shard and sleeps in between, while other threads schedule. Whenever the thread
/// sleeps, its alarm is no later than the earliest timer, and when the clock reaches that timer it
/// fires.
#[test]
fn a_sleeping_thread_misses_no_earlier_timer() {
    let sleeper = Arc::new(Sleeper::default());
    let (scheduler, advancer) = shard(&Config::default());
    thread::scope(|scope| {
        let _end = EndOf(&sleeper);
        scope.spawn(|| sleeper.drive(advancer));
        let (mut rng, mut clock, mut pending) = (Rng::with_seed(80), 0, Vec::new());
        let mut fired_before = 0;
        for _ in 0..times(200) {
            let [left, right] = [(); 2].map(|()| clock + 1 + (1 << rng.u32(..24)));
            let set = |deadline| scheduler.schedule(deadline, ()).map(drop).expect("the shard is open");
            together(|| set(left), || set(right));
            pending.extend([left, right]);
            let first = pending.iter().copied().min().expect("at least these two");
            let (alarm, _) = sleeper.settle();
            assert!(
                alarm.is_some_and(|alarm| alarm <= first),
                "asleep until {alarm:?}, one is due at {first}"
            );
            clock = first;
            sleeper.change(|state| state.clock = clock);
            pending.retain(|&deadline| deadline > clock);
            let (_, fired) = sleeper.settle();
            assert_eq!(scheduler.len(), pending.len());
            assert!(fired > fired_before);
            fired_before = fired;
        }
    });
}
