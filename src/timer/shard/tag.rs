//! What each timer notes of the call that has set it: a [`Tag`], which is empty without the feature
//! `introspect`.
//!
//! A place in the source has a number in a table of the process, for ever. The tag holds that
//! number, and in its other 52 bits the tick of the call.

use std::cell::Cell;
use std::panic::Location;
use std::sync::OnceLock;

use super::handle::ShardHandle;
use crate::shard::Tag;
use crate::sync::thread_local;

/// The numbers of places. Number 0 is that of all places without a number of their own.
pub(in crate::timer) const NUMBERS: usize = 1 << 12;

/// Each place at its number, for ever.
pub(in crate::timer) static PLACES: [OnceLock<&Location<'_>>; NUMBERS] = [const { OnceLock::new() }; NUMBERS];

thread_local! {
    /// The place of all timers that the thread sets, if there is one.
    static PLACE: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Runs `code`. Each timer that it sets on this thread counts as set at `place`.
///
/// For adapters: a library that sleeps through an adapter's trait calls from the library's own
/// lines. So the adapter notes the place where the program has made it, by [`Location::caller`] in
/// a function with `#[track_caller]`. With the feature `introspect`, `Timer::pending` names that
/// place. Without the feature, this function only calls `code`.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use std::time::Duration;
/// use shardwheel::Sleep;
///
/// struct Adapter {
///     timer: shardwheel::Timer,
///     made_at: &'static Location<'static>,
/// }
///
/// impl Adapter {
///     #[track_caller]
///     fn new(timer: shardwheel::Timer) -> Self {
///         Self { timer, made_at: Location::caller() }
///     }
///
///     fn sleep(&self, duration: Duration) -> Sleep {
///         shardwheel::set_at(self.made_at, || self.timer.sleep(duration))
///     }
/// }
/// # drop(Adapter::new(shardwheel::Timer::new()?).sleep(Duration::ZERO));
/// # Ok::<(), shardwheel::BuildError>(())
/// ```
pub fn set_at<R>(place: &'static Location<'static>, code: impl FnOnce() -> R) -> R {
    struct Restore(Option<&'static Location<'static>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = PLACE.try_with(|place| place.set(self.0));
        }
    }
    if !cfg!(feature = "introspect") {
        return code();
    }
    let _restore = Restore(PLACE.try_with(|own| own.replace(Some(place))).unwrap_or(None));
    code()
}

impl ShardHandle {
    /// The tag of a timer that the caller's caller sets now. If a user's clock panics, that is
    /// counted, and the tag has the time of the shard.
    #[cfg_attr(feature = "introspect", track_caller)]
    #[inline(always)]
    pub(crate) fn tag_here(&self) -> Tag {
        let caller = Location::caller();
        let place = || PLACE.try_with(Cell::get).unwrap_or(None).unwrap_or(caller);
        let tick = || self.time.tick_at(self.present_or_later());
        Tag::default().map(|_: u64| number_of(place()) as u64 | tick() << NUMBERS.ilog2())
    }
}

/// The number of that place, if there is room for it within 32 of its home. Equal places search in
/// the same order, so they get one number, although the compiler may give a place several
/// addresses. Only the first call at a place may wait for another thread, which puts another place
/// in.
fn number_of(place: &'static Location<'static>) -> usize {
    let home = place.line() as usize * 31 + place.column() as usize + place.file().len() * 1_009;
    let mut numbers = (home..home + 32).map(|number| number % NUMBERS).filter(|&number| number != 0);
    numbers.find(|&number| *PLACES[number].get_or_init(|| place) == place).unwrap_or(0)
}
