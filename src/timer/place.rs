//! What each timer notes of the call that has set it: a [`Tag`], which is empty without the feature
//! `introspect`.
//!
//! A place in the source has a number in a table of the process, for ever. The tag holds that number,
//! and in its other 52 bits the microseconds from the timer's start to the schedule: up to 142 years.

use std::panic::Location;

use crossbeam_utils::atomic::AtomicCell;

use super::ShardHandle;
use super::time::Nanos;
use crate::shard::Tag;

/// The numbers of places. Number 0 is that of all places without a number of their own.
pub(super) const NUMBERS: u64 = 1 << 12;

/// The longest search for a place's number.
const PROBES: u64 = 32;

pub(super) const MICROSECOND: Nanos = 1_000;

/// Each place at its number. A thread that looks for a place puts it in; it is never taken out.
pub(super) static PLACES: [AtomicCell<Option<&'static Location<'static>>>; NUMBERS as usize] =
    [const { AtomicCell::new(None) }; NUMBERS as usize];

/// The tag of a timer that the caller's caller sets, without the time. Lock-free.
#[cfg_attr(feature = "introspect", track_caller)]
#[inline(always)]
pub(crate) fn here() -> Tag {
    let place = Location::caller();
    Tag::default().map(|_: u64| number_of(place))
}

impl ShardHandle {
    /// The tag of a timer that is scheduled now. If a user's clock panics, that is counted, and the tag
    /// has the time of the shard.
    #[inline(always)]
    pub(crate) fn stamp(&self, place: Tag) -> Tag {
        let micros = || (self.present_or_later() / MICROSECOND).min(u64::MAX / NUMBERS);
        place.map(|number| number + micros() * NUMBERS)
    }
}

/// The number of that place. Equal places search in the same order, so they get one number, although
/// the compiler may give a place several addresses.
fn number_of(place: &'static Location<'static>) -> u64 {
    let home = u64::from(place.line()) * 31 + u64::from(place.column()) + place.file().len() as u64 * 1_009;
    let mut numbers = (home..home + PROBES).map(|number| number % NUMBERS).filter(|&number| number != 0);
    let is_found = |&number: &u64| {
        let cell = &PLACES[number as usize];
        let puts_in = cell.load().is_none() && cell.compare_exchange(None, Some(place)).is_ok();
        puts_in || cell.load() == Some(place)
    };
    numbers.find(is_found).unwrap_or(0)
}
