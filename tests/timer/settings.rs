//! Settings: a refused setting is named in the error, and an accepted one takes effect.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use shardwheel::{BuildError, Clock, Executor, Figures, Job, ManualClock, Timer, TimerBuilder};

use crate::support::{Built, Count, after, are_threads, hear, manual, ms, threads, threads_named};

/// The error of these settings.
fn refusal(builder: TimerBuilder) -> BuildError {
    builder.build().expect_err("one of the settings is wrong")
}

/// Every error names the given value and the limit.
#[test]
fn errors_name_the_value_and_the_limit() {
    let says = |builder, words: &[&str]| {
        let text = refusal(builder).to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text:?} does not say {words:?}");
    };
    says(Timer::builder().tick(Duration::ZERO), &["tick", "0 ns", "at least 1 ns"]);
    says(Timer::builder().wheel_size(1), &["wheel_size", "1;", "from 2"]);
    says(Timer::builder().wheel_size(100), &["wheel_size", "100", "128"]);
    says(Timer::builder().max_pending(0), &["max_pending", "0", "at least 1"]);
    says(Timer::builder().shards(0), &["shards", "0;", "from 1 to 1024"]);
    says(Timer::builder().shards(1025), &["shards", "1025", "from 1 to 1024"]);
    says(Timer::builder().thread_name("a\0b"), &["thread_name", r"a\0b", "zero byte"]);
    let error = refusal(Timer::builder().shards(0));
    assert!(matches!(error, BuildError::ShardsOutOfRange { value: 0, min: 1, max: 1024 }), "{error:?}");
    // One of the shard's settings has the message of that error.
    let error = refusal(Timer::builder().wheel_size(100));
    assert!(matches!(&error, BuildError::Config(inner) if inner.to_string() == error.to_string()));
}

/// More shards than cores cannot be pinned: the error names both numbers, and no thread is left.
#[test]
fn pinning_more_shards_than_cores_is_refused() {
    let Some(cores) = core_affinity::get_core_ids().map(|ids| ids.len()).filter(|&cores| cores > 0) else {
        return;
    };
    let error = refusal(Timer::builder().shards(cores + 1).pin_to_cores(true).thread_name("few"));
    assert!(
        matches!(error, BuildError::TooFewCores { shards, cores: has } if (shards, has) == (cores + 1, cores))
    );
    let text = error.to_string();
    assert!(
        text.contains(&format!("{} shards", cores + 1)) && text.contains(&format!("{cores} cores")),
        "{text}"
    );
    are_threads("few-", 0);
}

/// A pinned shard's thread runs on its core alone, and the statistics name the core; where the
/// system refuses, they say so. Threads are pinned only on request.
#[test]
fn a_pinned_thread_runs_on_its_core() {
    let timer = Timer::builder().shards(1).pin_to_cores(true).built();
    let (sender, receiver) = mpsc::channel();
    let tell = move || sender.send(core_affinity::get_core_ids()).expect("the test waits");
    after(&timer, ms(1), tell);
    let may_run_on = hear(&receiver).map(|ids| ids.into_iter().map(|core| core.id).collect::<Vec<_>>());
    let stats = timer.stats();
    assert_eq!(stats.total.core, None);
    if cfg!(target_os = "linux") {
        let core = stats.shards[0].core.expect("a core that one may run on can be pinned to");
        assert_eq!(may_run_on, Some(vec![core]));
        // With as many shards as cores each shard has its own.
        let cores = core_affinity::get_core_ids().map_or(1, |ids| ids.len());
        let timer = Timer::builder().shards(cores).pin_to_cores(true).built();
        let pinned: HashSet<_> = timer.stats().shards.iter().map(|shard| shard.core).collect();
        assert_eq!(pinned.len(), cores);
    }
    let timer = threads(2);
    assert!(timer.stats().shards.iter().all(|shard| shard.core.is_none()));
}

/// The threads have the requested name with the shard's number, and callbacks run on them.
#[test]
fn threads_have_names() {
    let timer = Timer::builder().shards(3).thread_name("wheels").built();
    let (sender, receiver) = mpsc::channel();
    let tell = move || sender.send(thread::current().name().map(str::to_owned)).expect("the test waits");
    after(&timer, ms(1), tell);
    let name = hear(&receiver).expect("it has a name");
    assert!(["wheels-0", "wheels-1", "wheels-2"].contains(&&*name), "{name}");
    if let Some(names) = threads_named("wheels-") {
        assert_eq!(names, ["wheels-0", "wheels-1", "wheels-2"]);
    }
}

/// A timer with a manual clock has no threads: callbacks run on the thread that moves the clock.
#[test]
fn a_manual_clock_has_no_threads() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).shards(3).thread_name("none").built();
    are_threads("none-", 0);
    assert_eq!(timer.shards(), 3);
    let (sender, receiver) = mpsc::channel();
    let tell = move || sender.send(thread::current().id()).expect("the test waits");
    after(&timer, ms(1), tell);
    clock.advance(ms(1));
    assert_eq!(receiver.try_recv(), Ok(thread::current().id()));
}

/// `Debug` output names what it shows, and prints no closure.
#[test]
fn debug_output_names_the_type_and_its_settings() {
    let (timer, clock) = manual();
    assert!(format!("{timer:?}").contains("shards"));
    assert!(format!("{:?}", Timer::builder().shards(3)).contains("shards: Some(3)"));
    clock.advance(ms(1500));
    assert!(format!("{clock:?}").contains("1.5s"));
    after(&timer, ms(1), || ());
    assert!(format!("{:?}", timer.stats().lateness).contains("p99"));
    assert!(format!("{:?}", timer.shutdown()).contains("len: 1"));
    assert_eq!(Figures::default().pending, 0);
}

/// The chain of an error's messages says each thing once: no message contains that of its source.
#[test]
fn no_error_repeats_its_source() {
    let (timer, _clock) = manual();
    drop(timer.shutdown());
    let never = std::future::pending::<()>();
    let limit = futures::executor::block_on(timer.timeout(ms(1), never)).expect_err("it is shut down");
    let spawn = BuildError::Spawn { shard: 3, error: std::io::Error::other("no more threads") };
    let refused = timer.schedule_after(ms(1), || ()).expect_err("it is shut down");
    let errors: [Box<dyn Error + Send + Sync>; 5] = [
        Box::new(refusal(Timer::builder().wheel_size(100))),
        Box::new(spawn),
        Box::new(limit),
        Box::new(std::io::Error::from(limit)),
        refused.into(),
    ];
    for error in errors {
        let mut next: Option<&dyn Error> = Some(&*error);
        while let Some(error) = next {
            next = error.source();
            let source = next.map(ToString::to_string);
            assert!(source.is_none_or(|source| !error.to_string().contains(&source)), "{error}");
        }
    }
}

/// A shared clock and a shared executor are a clock and an executor, whatever is behind them.
#[test]
fn a_clock_and_an_executor_may_be_shared() {
    let (manual, runs) = (ManualClock::new(), Count::default());
    let count = runs.clone();
    let clock: Arc<dyn Clock> = Arc::new(manual.clone());
    let executor: Arc<dyn Executor> = Arc::new(move |job: Job| {
        count.one();
        job.run();
    });
    let timers = [(); 2].map(|()| {
        let builder = Timer::builder().clock(Arc::clone(&clock)).executor(Arc::clone(&executor));
        builder.built()
    });
    for timer in &timers {
        after(timer, ms(5), || ());
    }
    manual.advance(ms(5));
    assert_eq!((runs.get(), timers.map(|timer| timer.stats().fired)), (2, [1, 1]));
}
