//! How timers are made, cancelled and moved, and what must hold for each call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{Every, Missed, ScheduleError, ScheduleErrorKind, Timer, TimerKey};

use crate::account::{Account, Cause, Kind, Payload};
use crate::scene::{Nanos, Scene, WITH_EXECUTOR};

/// When a timer is to fire.
#[derive(Clone, Copy)]
pub(crate) enum When {
    After(Duration),
    At(Instant),
}

/// How a timer recurs.
#[derive(Clone, Copy)]
pub(crate) enum Rhythm {
    Every(Duration, Missed),
    /// A number of times, with that gap.
    Times(Duration, u32),
}

/// A key, and the account of its timer.
pub(crate) struct Held {
    pub(crate) key: TimerKey,
    pub(crate) account: Arc<Account>,
    /// Whether it may move the timer; only one holder of the key may.
    is_owner: bool,
}

/// One callback in this number is too large for a timer's node.
const LARGE: u64 = 4;

/// Makes a timer that fires once.
pub(crate) fn once(scene: &Arc<Scene>, which: usize, when: When, seed: u64) -> Option<Held> {
    let account = Account::open(scene, which, Kind::Once, when.earliest(scene), seed);
    let payload = Payload::new(&account);
    let timer = scene.timer(which);
    let taken = if seed.is_multiple_of(LARGE) {
        let content = [seed; 6];
        when.schedule(timer, move || {
            payload.check(&content);
            payload.run();
        })
    } else {
        when.schedule(timer, move || payload.run())
    };
    held(account, taken)
}

/// Makes a timer that recurs.
pub(crate) fn recurring(scene: &Arc<Scene>, which: usize, rhythm: Rhythm, seed: u64) -> Option<Held> {
    let account = Account::open(scene, which, rhythm.kind(), 0, seed);
    let payload = Payload::new(&account);
    let timer = scene.timer(which);
    let callback = move || payload.run();
    let taken = match rhythm {
        Rhythm::Every(period, Missed::Burst) => timer.schedule_every(period, callback).map_err(refused),
        Rhythm::Every(period, missed) => {
            timer.schedule_with(Every::new(period).missed(missed), callback).map_err(refused)
        }
        Rhythm::Times(gap, times) => timer.schedule_with(so_often(gap, times), callback).map_err(refused),
    };
    held(account, taken)
}

fn so_often(gap: Duration, times: u32) -> impl FnMut(Instant) -> Option<Instant> + Send {
    let mut left = times;
    move |previous| {
        left = left.checked_sub(1)?;
        Some(previous + gap)
    }
}

/// Drops the refused callback.
fn refused<F>(error: ScheduleError<F>) -> ScheduleErrorKind {
    error.kind()
}

fn held(account: Arc<Account>, taken: Result<TimerKey, ScheduleErrorKind>) -> Option<Held> {
    match taken {
        Ok(key) => {
            account.set_key(key);
            Some(Held { key, account, is_owner: true })
        }
        Err(kind) => {
            account.note_refused();
            let expected = match kind {
                ScheduleErrorKind::ShutDown => account.scene.is_shut(account.which),
                ScheduleErrorKind::Full { .. } => account.which == WITH_EXECUTOR,
                _ => false,
            };
            account.books().expect(expected, format_args!("refused: {kind}"));
            None
        }
    }
}

impl When {
    /// The timer must not fire before this.
    fn earliest(self, scene: &Scene) -> Nanos {
        match self {
            Self::After(delay) => {
                let delay = Nanos::try_from(delay.as_nanos()).unwrap_or(Nanos::MAX);
                scene.now().saturating_add(delay)
            }
            Self::At(at) => scene.nanos(at),
        }
    }

    fn schedule<F>(self, timer: &Timer, callback: F) -> Result<TimerKey, ScheduleErrorKind>
    where
        F: FnOnce() + Send + 'static,
    {
        match self {
            Self::After(delay) => timer.schedule_after(delay, callback),
            Self::At(at) => timer.schedule_at(at, callback),
        }
        .map_err(refused)
    }
}

impl Rhythm {
    fn kind(self) -> Kind {
        let (period, times) = match self {
            Self::Every(period, _) => (period, None),
            Self::Times(gap, times) => (gap, Some(times)),
        };
        Kind::Recurring { period: period.as_nanos() as Nanos, times }
    }
}

impl Held {
    fn timer(&self) -> &Timer {
        self.account.scene.timer(self.account.which)
    }

    /// A second key, which may only cancel.
    pub(crate) fn copy(&self) -> Self {
        self.account.share();
        Self { key: self.key, account: Arc::clone(&self.account), is_owner: false }
    }

    /// Cancels the timer.
    pub(crate) fn cancel(&self) {
        let account = &*self.account;
        let (ended, before) = (account.has_ended() && !account.recurs(), account.scene.now());
        if Cause::Cancel.of(|| self.timer().cancel(self.key)) {
            account.books().expect(!ended, format_args!("cancelled after its end"));
            account.note_cancelled();
        } else if self.is_owner {
            let missed = account.is_surely_pending(before);
            account.books().expect(!missed, format_args!("pending, but there was nothing to cancel"));
        }
    }

    /// Moves the timer. Returns a key that names it no more, if there is one.
    pub(crate) fn reschedule(&mut self, rng: &mut Rng) -> Option<TimerKey> {
        let account = Arc::clone(&self.account);
        if !self.is_owner || account.has_ended() || account.scene.is_quiet() {
            return None;
        }
        let (before, due) = (account.scene.now(), account.due());
        let to = match rng.bool() {
            _ if account.recurs() => before + delay(rng),
            true if before < due => rng.u64(before..due),
            _ => due.max(before).saturating_add(delay(rng)),
        };
        let to = to.min(before + MOST_AHEAD);
        // A move of a recurring timer always changes its node, and the timer may come early.
        if to <= due || account.recurs() {
            account.may_come_sooner(to);
        }
        let Some(key) = self.move_to(to, before) else {
            let missed = account.is_surely_pending(before);
            account.books().expect(!missed, format_args!("pending, but there was nothing to move"));
            return None;
        };
        account.must_come_later(to);
        account.set_key(key);
        let former = std::mem::replace(&mut self.key, key);
        (former != key).then_some(former)
    }

    fn move_to(&self, to: Nanos, now: Nanos) -> Option<TimerKey> {
        if to.is_multiple_of(2) {
            self.timer().reschedule_at(self.key, self.account.scene.instant(to))
        } else {
            self.timer().reschedule_after(self.key, Duration::from_nanos(to.saturating_sub(now)))
        }
    }
}

/// Nanoseconds of some twenty years, which every system's clock can represent.
const MOST_AHEAD: Nanos = 600_000_000_000_000_000;

/// A random delay in nanoseconds, mostly short, seldom some seconds.
pub(crate) fn delay(rng: &mut Rng) -> Nanos {
    let most = 1 << rng.u32(10..=32);
    rng.u64(..most)
}
