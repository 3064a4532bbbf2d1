//! The table: a row for each place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::ground::{play_loop, play_waker};
use crate::scene::{ACTS, Act};
use crate::support::survives;
use crate::upper::{How, Place, driven_by, play};

/// How long the cases of a row may take.
const LIMIT: Duration = Duration::from_secs(12);

/// A case: its name, and the function that plays it.
type Case = (String, Box<dyn FnOnce() + Send>);

/// Plays all cases at the same time; the failure names each case that fails or hangs.
fn play_all(cases: Vec<Case>) {
    // Deliberate panics are not printed.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        if !text.contains("on purpose") {
            eprintln!("{text}");
        }
    }));
    let begin = |(name, case): Case| {
        eprintln!("begun: {name}");
        let (sender, receiver) = mpsc::channel::<bool>();
        thread::spawn(move || sender.send(catch_unwind(AssertUnwindSafe(case)).is_ok()));
        (name, receiver)
    };
    let start = Instant::now();
    let begun: Vec<_> = cases.into_iter().map(begin).collect();
    let mut failed = Vec::new();
    for (name, receiver) in begun {
        match receiver.recv_timeout(LIMIT.saturating_sub(start.elapsed())) {
            Ok(true) => eprintln!("over: {name}"),
            Ok(false) | Err(RecvTimeoutError::Disconnected) => failed.push(format!("{name} fails")),
            Err(RecvTimeoutError::Timeout) => failed.push(format!("{name} hangs")),
        }
    }
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
}

/// The cases of a place of a `Timer`.
fn row(place: Place) {
    let mut cases = Vec::<Case>::new();
    for act in ACTS.into_iter().filter(|&act| !place.leaves_out(act)) {
        for driven in driven_by(place) {
            let early = if act.can_be_released() { &[false, true][..] } else { &[false] };
            for &shut_early in early {
                let how = How { driven: *driven, shut_early };
                let name = format!("{place:?} {act:?} {how:?}");
                cases.push((name, Box::new(move || play(place, act, how))));
            }
        }
    }
    play_all(cases);
}

fn ground_row(name: &str, play: fn(Act), left_out: &[Act]) {
    let acts = ACTS.into_iter().filter(|act| !left_out.contains(act));
    let case = |act| (format!("{name} {act:?}"), Box::new(move || play(act)) as Box<dyn FnOnce() + Send>);
    play_all(acts.map(case).collect());
}

/// Defines tests, each of which plays a row in a process of its own.
macro_rules! rows {
    ($($name:ident: $row:expr;)+) => {
        $(#[test]
        fn $name() {
            survives(|| $row);
        })+
    };
}

rows! {
    callbacks_that_run_once: row(Place::OneShot);
    recurring_callbacks: row(Place::Recurring);
    schedules: row(Place::ScheduleNext);
    schedules_that_look: row(Place::ScheduleIsDue);
    wakers_woken: row(Place::WakerWake);
    wakers_cloned: row(Place::WakerClone);
    wakers_dropped: row(Place::WakerDrop);
    payloads_dropped: row(Place::PayloadDrop);
    executors: row(Place::Execute);
    clocks: row(Place::ClockNow);
    panic_hooks: row(Place::PanicHook);
    ends_of_threads: row(Place::ThreadEnd);
    keys_of_batches: row(Place::BatchKeys);
    values_of_a_drain_dropped: row(Place::DrainDrop);
    values_of_a_queue_dropped: row(Place::QueueDrop);
    closes_of_queues: row(Place::QueueClose);
    ends_of_groups: row(Place::GroupEnd);
    wakers_of_shards: ground_row("the shard's waker", play_waker, &[]);
    loops_over_expired: ground_row("the loop over Expired", play_loop, &[Act::ShutsDown]);
}
