//! The system refuses: the process has no more address space to be mapped.

use std::process::Command;

use shardwheel::{Config, Key, ScheduleErrorKind, Tick, Timer, shard};

use crate::child::output;

/// Says to a process that it is the one to be limited.
const LIMITED: &str = "SHARDWHEEL_LIMITED";

/// What a process may map beside what it has: some segments, and what the allocator needs.
const ROOM: u64 = 64 << 20;

/// Runs `work` in a process of its own. `name` is the test's, with its module's.
fn in_a_process(name: &str, work: impl FnOnce()) {
    if std::env::var_os(LIMITED).is_some() {
        return work();
    }
    let mut command = Command::new(std::env::current_exe().expect("the test's own binary"));
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(LIMITED, "1");
    let output = output(command);
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// What the process has mapped, in bytes.
fn mapped() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    4096 * pages.expect("the first number is that of pages")
}

/// Sets how much more may be mapped; `None` takes the limit away.
fn limit(room: Option<u64>) {
    let most = room.map_or(libc::RLIM_INFINITY, |room| mapped() + room);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it reads the struct, which lives.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// Sets timers until one is refused for want of memory, and its payload comes back.
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

/// A shard that cannot grow goes on with what it has.
#[test]
fn a_shard_without_room() {
    in_a_process("limit::a_shard_without_room", || {
        let (scheduler, mut advancer) = shard::<usize>(&Config::default());
        let set = |number| {
            let deadline = 1 + number as Tick % 10_000;
            scheduler.schedule(deadline, number).map_err(|refused| (refused.kind(), refused.into_payload()))
        };
        let keys = fill(set);
        assert_eq!(scheduler.len(), keys.len());
        // There is room again for as many as have been cancelled.
        for (number, &key) in keys.iter().enumerate().take(1_000) {
            assert_eq!(scheduler.cancel(key), Some(number));
        }
        (0..1_000).for_each(|number| assert!(scheduler.schedule(20_000, number).is_ok()));
        let fired: usize = (1..=200).map(|step| advancer.advance(step * 100).count()).sum();
        assert_eq!((fired, scheduler.len()), (keys.len(), 0));
        (0..1_000).for_each(|number| assert!(scheduler.schedule(30_000, number).is_ok()));
        limit(None);
        (0..keys.len()).for_each(|number| assert!(scheduler.schedule(30_000, number).is_ok()));
        assert_eq!(advancer.advance(30_000).count(), keys.len() + 1_000);
    });
}

/// A timer whose threads, or shards, cannot be had is an error, and the next one that can be had is made.
#[test]
fn timers_without_room() {
    in_a_process("limit::timers_without_room", || {
        limit(Some(ROOM));
        let build = || Timer::builder().shards(256).build();
        assert!(build().is_err());
        assert!(build().is_err());
        limit(None);
        let timer = build().expect("there is room");
        let (told, heard) = std::sync::mpsc::channel();
        timer
            .schedule_after(std::time::Duration::ZERO, move || told.send(()).expect("it is waited for"))
            .expect("open");
        heard.recv_timeout(std::time::Duration::from_secs(60)).expect("it fires");
    });
}
