//! The end: one timer is shut down while all threads use it, the other when it has become quiet.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{ScheduleErrorKind, Stats, Unfired};

use crate::account::Cause;
use crate::actor::Remains;
use crate::placing::{self, When};
use crate::scene::{BY_ITSELF, Nanos, Pool, Scene, WITH_EXECUTOR};

/// A due timer is late by less than this, or lost. The threads offer more than the timers and the pool
/// can take: under ThreadSanitizer, beside other work, a soak of two seconds takes a minute to end.
pub(crate) const VERY_LATE: Duration = Duration::from_secs(180);
/// How long a shutdown waits for threads that are moving a timer.
const MOVING: Duration = Duration::from_millis(50);
/// No new timer comes for at least this time before the second timer is shut down.
const QUIET: Duration = Duration::from_millis(300);

/// What the timers left.
pub(crate) struct Ended {
    pub(crate) unfired: [usize; 2],
    pub(crate) stats: [Stats; 2],
}

/// Shuts down the timer that has an executor while the threads use it. Returns how many callbacks
/// came back.
pub(crate) fn shut_down_at_work(scene: &Scene, pool: Pool) -> usize {
    scene.become_quiet(true);
    thread::sleep(MOVING);
    let unfired = shut_down(scene, WITH_EXECUTOR);
    scene.become_quiet(false);
    pool.into_iter().for_each(|thread| thread.join().expect("a job does not panic"));
    scene.catch_up(WITH_EXECUTOR, scene.now().saturating_sub(VERY_LATE.as_nanos() as Nanos));
    let count = take_back(unfired);
    thread::sleep(MOVING);
    count
}

/// Waits until the other timer is quiet, and shuts it down.
pub(crate) fn end(scene: &Arc<Scene>, mut remains: Vec<Remains>, unfired: usize) -> Ended {
    let mut rng = Rng::with_seed(0);
    for remains in &mut remains {
        remains.try_all_stale(scene);
        remains.held.iter().filter(|_| rng.bool()).for_each(|held| held.cancel());
    }
    scene.catch_up(BY_ITSELF, scene.now());
    become_idle(scene);
    check_woken(scene, &remains);
    let unfired = [take_back(shut_down(scene, BY_ITSELF)), unfired];
    for remains in &mut remains {
        remains.waits.iter_mut().for_each(|wait| wait.check_over(&mut rng));
        remains.try_all_stale(scene);
    }
    check_refusal(scene);
    drop((remains, scene.close_market()));
    Ended { unfired, stats: [BY_ITSELF, WITH_EXECUTOR].map(|which| scene.timer(which).stats()) }
}

/// Waits until nothing that is due is left.
fn become_idle(scene: &Scene) {
    let begin = Instant::now();
    thread::sleep(QUIET);
    while !scene.timer(BY_ITSELF).stats().backlog.is_zero() {
        thread::sleep(MOVING);
        assert!(begin.elapsed() < VERY_LATE, "the timer does not catch up");
    }
}

/// Each wait that was due before all became idle has been woken.
fn check_woken(scene: &Scene, remains: &[Remains]) {
    let waits = remains.iter().flat_map(|remains| &remains.waits);
    waits.filter(|wait| wait.is_of(BY_ITSELF)).for_each(|wait| wait.check_woken(scene.caught_up(BY_ITSELF)));
}

fn shut_down(scene: &Scene, which: usize) -> Unfired {
    scene.shut(which);
    Cause::Shutdown.of(|| scene.timer(which).shutdown())
}

/// Runs or drops the returned callbacks, and counts them. Their accounts check whether they should
/// have fired.
fn take_back(unfired: Unfired) -> usize {
    let count = unfired.len();
    for (number, task) in unfired.enumerate() {
        Cause::Shutdown.of(|| if number % 2 == 0 { task.run() } else { drop(task) });
    }
    count
}

/// No timer is accepted any more.
fn check_refusal(scene: &Arc<Scene>) {
    for which in [BY_ITSELF, WITH_EXECUTOR] {
        let books = scene.books(which);
        let refused = placing::once(scene, which, When::After(Duration::ZERO), 0).is_none();
        books.expect(refused, format_args!("a timer was taken after the shutdown"));
        let error = scene.timer(which).schedule_every(Duration::from_secs(1), || ()).err();
        let kind = error.map(|error| error.kind());
        books.expect(kind == Some(ScheduleErrorKind::ShutDown), format_args!("not refused: {kind:?}"));
    }
}
