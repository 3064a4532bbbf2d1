//! What becomes of each timer, from its number alone.
//!
//! A timer's payload is its number, and its deadlines are made from that and a seed whenever they are wanted, so that
//! nothing has to be stored for the sake of checking. Timers come in groups of twenty: two of a group are extended and
//! ten cancelled, one of them after it was extended. Those eleven stand first in the group; theirs are the only keys
//! that have to be kept.

use std::ops::Range;

use shardwheel_benches::{Checksum, THIRTY_MINUTES};

/// How many timers have a plan together.
pub(crate) const GROUP: usize = 20;

/// How many of a group have their keys kept: the first ones.
const NAMED: usize = 11;

/// The places in a group of those that are extended.
const EXTENDED: Range<usize> = 0..2;

/// Of those that are extended, the one that fires.
const SPARED: usize = 1;

/// By then all have fired: nothing is extended by more than half an hour.
pub(crate) const LAST_TICK: u64 = 2 * THIRTY_MINUTES;

/// A number of timers, and a seed for their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    timers: usize,
    seed: u64,
}

/// A timer whose key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) payload: u64,
    /// Where its key is among those kept.
    pub(crate) key: usize,
}

impl Plan {
    /// `None` unless the timers make whole groups.
    pub(crate) fn new(timers: usize, seed: u64) -> Option<Self> {
        (timers > 0 && timers.is_multiple_of(GROUP)).then_some(Self { timers, seed })
    }

    pub(crate) fn timers(&self) -> usize {
        self.timers
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    fn groups(&self) -> usize {
        self.timers / GROUP
    }

    /// How many keys are kept, in the order of the payloads.
    pub(crate) fn keys(&self) -> usize {
        self.groups() * NAMED
    }

    /// Whether this timer's key is kept.
    #[inline]
    pub(crate) fn is_named(payload: u64) -> bool {
        place(payload) < NAMED
    }

    /// When a timer is due that nobody extends: uniform over half an hour.
    #[inline]
    pub(crate) fn deadline(&self, payload: u64) -> u64 {
        1 + draw(self.seed, 2 * payload)
    }

    /// When it is due once it is extended: up to half an hour later.
    #[inline]
    pub(crate) fn later(&self, payload: u64) -> u64 {
        self.deadline(payload) + draw(self.seed, 2 * payload + 1)
    }

    /// The timers to extend, a tenth of all, scattered.
    pub(crate) fn extended(&self) -> impl Iterator<Item = Named> {
        self.scattered(EXTENDED)
    }

    /// The timers to cancel, half of all, scattered.
    pub(crate) fn cancelled(&self) -> impl Iterator<Item = Named> {
        self.scattered((0..NAMED).filter(|&place| place != SPARED))
    }

    /// The named timers at these places of every group. Groups come in steps of about the golden section of all,
    /// which is no order that a cache or a prefetcher could use.
    fn scattered(&self, places: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Named> {
        let groups = self.groups();
        let step = step(groups);
        places.into_iter().flat_map(move |place| {
            (0..groups).map(move |nth| {
                let group = nth * step % groups;
                Named { payload: (group * GROUP + place) as u64, key: group * NAMED + place }
            })
        })
    }

    /// What has to fire.
    pub(crate) fn expected(&self) -> Checksum {
        let mut sum = Checksum::default();
        for payload in 0..self.timers as u64 {
            match place(payload) {
                SPARED => sum.expect(self.later(payload), payload),
                NAMED.. => sum.expect(self.deadline(payload), payload),
                _ => {}
            }
        }
        sum
    }
}

#[inline]
fn place(payload: u64) -> usize {
    payload as usize % GROUP
}

/// A number below half an hour's ticks, for each `nth` of a seed: SplitMix64, entered anywhere.
#[inline]
fn draw(seed: u64, nth: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bits = (seed << 40).wrapping_add(nth).wrapping_mul(GOLDEN);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((u128::from(bits) * u128::from(THIRTY_MINUTES)) >> 64) as u64
}

/// The first step from the golden section of `groups` on that leads through all of them.
fn step(groups: usize) -> usize {
    const GOLDEN_SECTION: f64 = 0.618_033_988_749_895;
    let first = (groups as f64 * GOLDEN_SECTION) as usize;
    (first.max(1)..).find(|&step| greatest_common_divisor(step, groups) == 1).unwrap_or(1)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn payloads(timers: impl Iterator<Item = Named>) -> BTreeSet<u64> {
        timers.map(|timer| timer.payload).collect()
    }

    #[test]
    fn shares_are_as_promised() {
        let plan = Plan::new(2000, 7).unwrap();
        let (extended, cancelled) = (payloads(plan.extended()), payloads(plan.cancelled()));
        assert_eq!((extended.len(), cancelled.len()), (200, 1000));
        assert_eq!(extended.intersection(&cancelled).count(), 100);
        assert_eq!(plan.expected().count(), 1000);
        assert_eq!(plan.extended().count() + plan.cancelled().count(), 1200, "none comes twice");
    }

    #[test]
    fn keys_are_in_the_order_of_the_payloads() {
        let plan = Plan::new(200, 7).unwrap();
        let named = (0..200).filter(|&payload| Plan::is_named(payload)).collect::<Vec<_>>();
        assert_eq!(named.len(), plan.keys());
        assert!(plan.extended().chain(plan.cancelled()).all(|timer| named[timer.key] == timer.payload));
    }

    #[test]
    fn deadlines_are_reproducible_and_spread() {
        let [plan, other] = [7, 8].map(|seed| Plan::new(20_000, seed).unwrap());
        let deadlines = (0..20_000).map(|payload| plan.deadline(payload)).collect::<Vec<_>>();
        assert_eq!(deadlines[5], plan.deadline(5));
        assert_ne!(deadlines[5], other.deadline(5));
        assert!(deadlines.iter().all(|deadline| (1..=THIRTY_MINUTES).contains(deadline)));
        let early = deadlines.iter().filter(|&&deadline| deadline <= THIRTY_MINUTES / 4).count();
        assert!((4_500..5_500).contains(&early), "{early}");
        assert!((0..20_000).all(|payload| plan.later(payload) >= plan.deadline(payload)));
        assert!((0..20_000).all(|payload| plan.later(payload) <= LAST_TICK));
    }

    #[test]
    fn only_whole_groups_have_a_plan() {
        assert!(Plan::new(0, 1).is_none() && Plan::new(30, 1).is_none() && Plan::new(20, 1).is_some());
    }
}
