//! Which calls have set the pending timers. The thread that asks does all the work: it looks at
//! each node that has memory, and reads its timer's tag (see [`tag`](crate::timer::shard)).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

use crate::shard::Tag;
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::handle::Timer;
use crate::timer::key::TimerKey;
use crate::timer::shard::{NUMBERS, PLACES};

/// The pending timers that one call in the source has set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingPlace {
    /// The call that made the timers, sleeps, timeouts, intervals or values of a delay queue.
    /// `None` for all calls for which there was no room, because some thousand others had come
    /// before.
    pub place: Option<&'static Location<'static>>,
    /// How many timers there were.
    pub count: usize,
    /// How many of them were due, and had not fired.
    pub overdue: usize,
    /// When the first of them is due, rounded up to a tick. `None` if none ever is.
    pub earliest: Option<Instant>,
    /// When the call for the oldest of them was made, to a tick. A reschedule changes nothing.
    pub oldest: Instant,
    /// For how long the first of them had been due; zero if none was due.
    pub late: Duration,
}

/// The pending timers of a [`Timer`], by the calls that have set them. Made by [`Timer::pending`].
///
/// Its [`Display`](fmt::Display) is a table with times in seconds; `inf` is never.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pending {
    /// When they were counted, by the `Timer`'s clock.
    pub at: Instant,
    /// Each place that has pending timers, the one with the most timers first.
    pub places: Vec<PendingPlace>,
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  pending   overdue      late s    first in s    oldest s  set at")?;
        let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
        self.places.iter().try_for_each(|PendingPlace { place, count, overdue, earliest, oldest, late }| {
            let place = place.map_or("other places".into(), Location::to_string);
            let first = earliest.map_or(f64::INFINITY, |at| seconds(self.at, at));
            let (late, oldest) = (late.as_secs_f64(), seconds(*oldest, self.at));
            writeln!(f, "{count:>9} {overdue:>9} {late:>11.3} {first:>13.3} {oldest:>11.3}  {place}")
        })
    }
}

impl Timer {
    /// Returns how many timers are pending, and for how long, by the calls that have set them.
    ///
    /// A call is one of the program's into this crate. If it stands in a function that many parts
    /// of the program use, put `#[track_caller]` on that function: its caller is then the place.
    /// (This does not work for an `async fn`.) A sleep, a timeout or an interval is pending from
    /// its first poll on, and its place is the call that made it.
    ///
    /// While other threads use the `Timer`, each row is made of timers that were pending at some
    /// moment during the call. A timer that another thread moves to an earlier deadline meanwhile
    /// may be counted twice or not at all. A recurring timer does not count while its callback
    /// runs.
    ///
    /// By a handle of a [`Group`](crate::Group), only members of the group count.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::new()?;
    /// for _ in 0..3 {
    ///     timer.schedule_after(Duration::from_secs(60), || ())?;
    /// }
    /// timer.schedule_after(Duration::from_secs(30), || ())?;
    ///
    /// let pending = timer.pending();
    /// println!("{pending}"); // a table
    /// let [most, other] = &pending.places[..] else { panic!("there are two places") };
    /// assert_eq!((most.count, other.count), (3, 1));
    /// assert_eq!(most.place.map(|place| place.file()), Some(file!()));
    /// assert!(other.earliest < most.earliest);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(nodes that have memory), with one compare-and-swap for each pending timer. It takes no
    /// lock, and makes no other thread wait. For a group, O(members), whose keys it copies under the
    /// group's lock.
    #[must_use]
    pub fn pending(&self) -> Pending {
        let (time, now) = (&self.first_shard().time, self.first_shard().present());
        let (at, late, mut found) = (time.instant_shown(now), Duration::ZERO, BTreeMap::new());
        let none = |place| PendingPlace { place, count: 0, overdue: 0, earliest: None, oldest: at, late };
        let mut count = |(tick, [tag]): (Tick, Tag)| {
            let (number, due) = (tag as usize % NUMBERS, time.start_of(tick));
            let place = found.entry(number).or_insert_with(|| none(PLACES[number].get().copied()));
            place.count += 1;
            place.overdue += usize::from(due <= now);
            place.earliest = place.earliest.into_iter().chain(time.instant(due)).min();
            place.oldest = place.oldest.min(time.instant_shown(time.start_of(tag >> NUMBERS.ilog2())));
            place.late = place.late.max(Duration::from_nanos(now.saturating_sub(due)));
        };
        if let Some(members) = &self.members {
            let look = |key: TimerKey| self.home_of(key)?.scheduler.look(key.key());
            members.keys().into_iter().filter_map(look).for_each(count);
        } else {
            let handles = self.inner.shards.handles.iter();
            handles.for_each(|handle| handle.scheduler.each_pending(&mut count));
        }
        let mut places: Vec<_> = found.into_values().collect();
        places.sort_by_key(|place| Reverse(place.count));
        Pending { at, places }
    }
}
