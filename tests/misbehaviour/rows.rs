//! The table: a row for each place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::scene::ACTS;
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

/// Defines tests, each of which plays a row in a process of its own.
macro_rules! rows {
    ($($name:ident: $row:expr;)+) => {
        $(#[test]
        fn $name() {
            survives(|| row($row));
        })+
    };
}

rows! {
    callbacks_that_run_once: Place::OneShot;
    recurring_callbacks: Place::Recurring;
    schedules: Place::ScheduleNext;
    schedules_that_look: Place::ScheduleIsDue;
    wakers_woken: Place::WakerWake;
    wakers_cloned: Place::WakerClone;
    wakers_dropped: Place::WakerDrop;
    payloads_dropped: Place::PayloadDrop;
    executors: Place::Execute;
    clocks: Place::ClockNow;
    panic_hooks: Place::PanicHook;
    ends_of_threads: Place::ThreadEnd;
    keys_of_batches: Place::BatchKeys;
}
