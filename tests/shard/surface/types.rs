//! What the compiler guarantees: which types cross threads, clone, and are errors.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use shardwheel::{
    Advancer, Config, ConfigError, Expired, Fired, Key, ScheduleError, ScheduleErrorKind, Scheduler,
    ShardStats,
};

use super::halves;

fn clones<X: Clone>() {}
fn crosses<X: Send>() {}
fn is_shared<X: Send + Sync>() {}
fn names<X: Copy + Eq + Hash + Debug + Send + Sync + 'static>() {}
fn fails<E: Error>() {}
fn iterates<X: Iterator<Item = Fired<T>>, T>() {}

/// Holds for every payload that is `Send`, whether or not it is `Sync`.
fn holds_for_every_payload<'a, T: Send + 'a>() {
    clones::<Scheduler<T>>();
    is_shared::<Scheduler<T>>();
    crosses::<Advancer<T>>();
    crosses::<Fired<T>>();
    iterates::<Expired<'a, T>, T>();
    fails::<ScheduleError<T>>();
    is_shared::<ScheduleError<T>>();
}

/// The halves cross threads as they should, whatever the payload is; errors are errors, whether or
/// not the payload can be printed.
#[test]
fn the_halves_cross_threads_with_any_payload() {
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

/// Says at run time whether a type is `Clone`: if it is, the inherent constant hides the trait's.
struct Probe<X>(PhantomData<X>);

impl<X: Clone> Probe<X> {
    const CLONES: bool = true;
}

trait Otherwise {
    const CLONES: bool = false;
}

impl<X> Otherwise for Probe<X> {}

/// A shard has one advancer, and the compiler ensures it.
#[test]
fn the_advancer_is_not_clone() {
    let [scheduler, advancer] = [Probe::<Scheduler<u8>>::CLONES, Probe::<Advancer<u8>>::CLONES];
    assert!(scheduler && !advancer);
}

/// A fired timer can be destructured into its key, its deadline and its payload.
#[test]
fn a_fired_timer_can_be_destructured() {
    let (scheduler, mut advancer) = halves();
    let scheduled = scheduler.schedule(7, String::from("seven")).expect("the shard is open");
    for fired in advancer.advance(9) {
        assert!(format!("{fired:?}").contains("seven"));
        let Fired { key, deadline, payload } = fired;
        assert_eq!((key, deadline, payload.as_str()), (scheduled, 7, "seven"));
    }
}
