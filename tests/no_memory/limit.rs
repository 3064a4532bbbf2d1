//! The system refuses memory: the process has no address space left.

use std::time::Duration;

use shardwheel::{Config, Key, ScheduleErrorKind, Tick, Timer, shard};

use crate::support::{HOUR, manual, mapped, survives_in, this_binary};

/// Bytes that the process may map beyond what it has: some segments, and the allocator's needs.
const ROOM: usize = 64 << 20;

/// How long a process with little memory may run.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the calling test in a process of its own.
fn in_a_process<F: FnOnce()>(work: F) {
    survives_in(this_binary(), 1, LIMIT, work);
}

/// Sets how many more bytes may be mapped; `None` removes the limit.
fn limit(room: Option<usize>) {
    let most = room.map_or(libc::RLIM_INFINITY, |room| (mapped() + room) as libc::rlim_t);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `setrlimit` reads the struct, which lives until then.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// Sets timers until one is refused for lack of memory, and checks that its payload comes back.
fn fill(set: impl Fn(usize) -> Result<Key, (ScheduleErrorKind, usize)>) -> Vec<Key> {
    let mut keys = Vec::with_capacity(1 << 22);
    limit(Some(ROOM));
    loop {
        match set(keys.len()) {
            Ok(key) => keys.push(key),
            Err((kind, payload)) => {
                assert!(matches!(kind, ScheduleErrorKind::OutOfMemory { .. }), "{kind:?}");
                assert_eq!(payload, keys.len());
                return keys;
            }
        }
        assert!(keys.len() < keys.capacity(), "there is no limit");
    }
}

/// A shard that cannot grow goes on with the memory that it has.
#[test]
fn a_shard_that_cannot_grow_goes_on() {
    in_a_process(|| {
        let (scheduler, mut advancer) = shard::<usize>(&Config::default());
        let set = |number| {
            let deadline = 1 + number as Tick % 10_000;
            scheduler.schedule(deadline, number).map_err(|refused| (refused.kind(), refused.into_payload()))
        };
        let keys = fill(set);
        assert_eq!(scheduler.len(), keys.len());
        let fired: usize = (1..=200).map(|step| advancer.advance(step * 100).count()).sum();
        assert_eq!((fired, scheduler.len()), (keys.len(), 0));
        (0..1_000).for_each(|number| assert!(scheduler.schedule(30_000, number).is_ok()));
        limit(None);
        (0..keys.len()).for_each(|number| assert!(scheduler.schedule(30_000, number).is_ok()));
        assert_eq!(advancer.advance(30_000).count(), keys.len() + 1_000);
    });
}

/// A timer whose threads or shards cannot be created is an error; when there is room again a timer
/// can be built.
#[test]
fn a_timer_that_cannot_be_built_is_an_error() {
    in_a_process(|| {
        limit(Some(ROOM));
        let build = || Timer::builder().shards(256).build();
        assert!(build().is_err());
        assert!(build().is_err());
        limit(None);
        let timer = build().expect("there is room");
        let (sender, receiver) = std::sync::mpsc::channel();
        timer
            .schedule_after(std::time::Duration::ZERO, move || {
                sender.send(()).expect("the other thread waits")
            })
            .expect("the shard is open");
        receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("it fires");
    });
}

/// A cancelled recurring timer cannot be moved, whether or not there is memory for a move. Promise
/// 2.
#[test]
fn a_cancelled_recurring_timer_is_not_moved_without_memory() {
    in_a_process(|| {
        let (timer, _clock) = manual();
        let fill = || {
            let refused =
                (0..).find_map(|_| timer.schedule_after(2 * HOUR, || ()).err()).expect("memory ends");
            assert!(matches!(refused.kind(), ScheduleErrorKind::OutOfMemory { .. }), "{refused}");
        };
        let key = timer.schedule_every(HOUR, || ()).expect("there is memory");
        limit(Some(ROOM));
        fill();
        assert!(timer.cancel(key));
        fill();
        let moved = timer.reschedule_after(key, HOUR / 2);
        limit(None);
        assert_eq!(moved, None);
        drop(timer.shutdown());
    });
}
