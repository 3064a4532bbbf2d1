//! Producers that move timers while the shard ends.

use std::thread;
use std::time::Instant;

use shardwheel::{Config, shard};

use crate::support::{END_WAITS, ms};

/// Threads that move timers, more than there are cores, so that most of them are interrupted in a
/// move when the shard ends.
const MOVERS: usize = 24;

/// Each timer comes back at the shard's end, although a thread is rescheduling it. Promise 8.
#[test]
fn timers_on_the_move_come_back_when_the_shard_ends() {
    for round in 0..40 {
        let (scheduler, advancer) = shard(&Config::default());
        let pending = thread::scope(|scope| {
            for i in 0..MOVERS {
                let key = scheduler.schedule(1 << 20, i).expect("the shard is open");
                let scheduler = &scheduler;
                let ticks = [1 << 21, 1 << 20].into_iter().cycle();
                scope.spawn(move || {
                    let mut moves = ticks.scan(key, |key, tick| {
                        *key = scheduler.reschedule(*key, tick)?;
                        Some(())
                    });
                    moves.by_ref().for_each(drop);
                });
            }
            thread::sleep(ms(5));
            let begin = Instant::now();
            let mut pending: Vec<_> = advancer.into_pending().map(|(_, payload)| payload).collect();
            pending.sort_unstable();
            // On a busy machine a thread may be interrupted for longer than the end waits for it.
            (begin.elapsed() < END_WAITS).then_some(pending)
        });
        assert!(pending.is_none_or(|pending| pending.into_iter().eq(0..MOVERS)), "round {round}");
    }
}
