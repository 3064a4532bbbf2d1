//! Each timer fires once, at its tick: cases of many sources, in one table. Promises 1, 2 and 4.

use shardwheel::Tick;

use crate::rig::{WHEEL_SIZES, fires_exactly};

const DAY: Tick = 24 * 60 * 60 * 1_000;

/// A case: its name, the sizes of wheels and the starts of the clock with which it is played, and how
/// far the deadlines are ahead of the start, by the size.
type Case = (&'static str, &'static [usize], Vec<Tick>, fn(Tick) -> Vec<Tick>);

fn near_cases() -> [Case; 9] {
    [
        ("a_deadline_of_five_ticks_fires_at_tick_five", &[8], vec![0], |_| vec![5]),
        ("a_deadline_counts_from_the_start_of_the_clock", &[8], vec![100], |_| vec![5]),
        ("each_timer_fires_once", &[16], vec![0], |_| vec![20, 20, 40]),
        ("a_timer_set_later_may_be_due_first", &[16], vec![0], |_| vec![10, 5]),
        ("a_ten_second_timer_does_not_fire_at_three", &[256], vec![0], |_| vec![10_000, 2_000]),
        // The clock passes its bucket three times before the timer is due.
        ("a_timer_beyond_the_wheel_fires_in_its_revolution", &[16], vec![0], |_| vec![63]),
        ("timers_of_one_bucket_fire_in_their_own_revolutions", &[2, 8, 16], vec![0], |size| {
            [0, size, 2 * size, size * size].map(|ahead| 3 + ahead).into()
        }),
        ("delays_around_a_revolution_are_exact", &WHEEL_SIZES, vec![0, 5], |_| {
            vec![255, 256, 257, 1_023, 1_024, 1_029]
        }),
        ("a_delay_of_exactly_one_revolution_is_exact", &[8], (0..40).collect(), |_| {
            [8, 64, 512].into_iter().flat_map(around).collect()
        }),
    ]
}

fn far_cases() -> [Case; 7] {
    let powers = [16, 22, 24, 32, 33, 36, 44, 48, 63].map(|bit| (1 << bit) - 30);
    let wrap = 1 << 36;
    [
        ("timers_around_the_end_of_each_wheel_fire_on_time", &WHEEL_SIZES, vec![0, 100], |size| {
            (1..=4).flat_map(|level| around(size.pow(level))).collect()
        }),
        ("timers_that_cross_levels_fire_on_time", &WHEEL_SIZES, vec![0, 1, 255, 256, 1_000_003], |_| {
            vec![300, 605, 300 * 256, 605 * 256]
        }),
        ("timers_days_to_years_ahead_fire_on_time", &WHEEL_SIZES, vec![0], |_| {
            (0..200).map(|i| DAY * (8 + 9 * i) + 7_919 * i).collect()
        }),
        // A top wheel that wraps there fires a farther timer too early, or one revolution late.
        ("no_wheel_wraps_at_a_power_of_two", &WHEEL_SIZES, vec![0, 1, wrap - 1, wrap, wrap + 1], |_| {
            (30..63).flat_map(|bit| around(1 << bit)).collect()
        }),
        ("near_timers_are_exact_around_powers_of_two", &[64], powers.into(), |_| (1..60).collect()),
        ("a_clock_near_its_end_does_not_wrap", &WHEEL_SIZES, vec![Tick::MAX - 700], |_| {
            vec![1, 2, 8, 16, 255, 256, 257, 512, 699, 700]
        }),
        ("the_last_ticks_are_deadlines", &WHEEL_SIZES, vec![0], |_| vec![Tick::MAX - 1, Tick::MAX]),
    ]
}

fn around(tick: Tick) -> [Tick; 3] {
    [tick - 1, tick, tick + 1]
}

fn play(cases: impl IntoIterator<Item = Case>) {
    for (name, sizes, starts, ahead) in cases {
        for &size in sizes {
            for &start in &starts {
                println!("{name}: in a wheel of {size}, from {start}");
                let deadlines = ahead(size as Tick).into_iter().map(|ahead| start + ahead);
                fires_exactly(size, start, &deadlines.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn near_timers_fire_once_at_their_ticks() {
    play(near_cases());
}

#[test]
fn far_timers_fire_once_at_their_ticks() {
    play(far_cases());
}

/// All is due at the last tick, which is also where the clock is.
#[test]
fn a_timer_at_the_end_of_time_fires() {
    WHEEL_SIZES.into_iter().for_each(|size| fires_exactly(size, Tick::MAX, &[Tick::MAX]));
}
