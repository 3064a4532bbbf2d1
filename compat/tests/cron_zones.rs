//! `Cron` beside an oracle that walks through time by minutes: all zones, at each change of their
//! offsets in 2026 to 2028, and at each change of more than two hours since 1970.
//!
//! The oracle knows of a zone its offset at a moment, and of an expression the set of each field.
//! Neither the search of croner nor jiff's rules for gaps and overlaps are part of it. Zones that
//! have the same changes in these years are asked about once.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone};
use jiff::{SignedDuration, Timestamp};
use shardwheel_compat::Cron;

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

/// An expression, and the sets of its fields as bits.
struct Pattern {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// How a day of the month and a day of the week go together.
    days_or_weekdays: bool,
    /// Whether it has a fixed time.
    is_fixed: bool,
}

const ALL: u64 = u64::MAX;

/// Every `step`th number from `first` on.
fn steps(first: u32, step: usize) -> u64 {
    (first..64).step_by(step).map(|n| 1 << n).sum()
}

impl Pattern {
    /// Any day at a fixed time.
    fn daily(minute: u32, hour: u32) -> Self {
        let (minutes, hours, text) = (1 << minute, 1 << hour, format!("{minute} {hour} * * *"));
        let (days, months, weekdays) = (ALL, ALL, ALL);
        Self { text, minutes, hours, days, months, weekdays, days_or_weekdays: false, is_fixed: true }
    }

    fn on(self, text: &str, days: u64, months: u64, weekdays: u64) -> Self {
        let time = self.text.strip_suffix("* * *").expect("it is daily");
        Self { text: format!("{time}{text}"), days, months, weekdays, ..self }
    }

    fn times(self, text: &str, minutes: u64, hours: u64) -> Self {
        Self { text: format!("{text} * * *"), minutes, hours, is_fixed: false, ..self }
    }

    /// Expressions that ask for this local time in all ways.
    fn all_for(time: DateTime) -> Vec<Self> {
        let (minute, hour) = (u32::from(time.minute().unsigned_abs()), u32::from(time.hour().unsigned_abs()));
        let (day, month) = (time.day(), time.month());
        let weekday = time.weekday().to_sunday_zero_offset();
        let daily = || Self::daily(minute, hour);
        let either = |pattern: Self| Self { days_or_weekdays: true, ..pattern };
        let later = (hour + 9) % 24;
        vec![
            daily(),
            Self::daily(0, 0),
            Self::daily(59, 23),
            Self::daily(0, (hour + 1) % 24),
            daily().on(&format!("* * {weekday}"), ALL, ALL, 1 << weekday),
            daily().on(&format!("{day} {month} *"), 1 << day, 1 << month, ALL),
            either(daily().on(&format!("{day} * {weekday}"), 1 << day, ALL, 1 << weekday)),
            either(daily().on(&format!("*/2 * {weekday}"), steps(1, 2), ALL, 1 << weekday)),
            daily().on(&format!("*/2 * +{weekday}"), steps(1, 2), ALL, 1 << weekday),
            daily().times("*/15 *", steps(0, 15), ALL),
            daily().times(&format!("*/20 {hour}"), steps(0, 20), 1 << hour),
            daily().times(&format!("{minute} *"), 1 << minute, ALL),
            daily().times(&format!("{minute} {hour},{later}"), 1 << minute, 1 << hour | 1 << later),
            daily().times(
                &format!("{minute} */{}", later.max(2)),
                1 << minute,
                steps(0, later.max(2) as usize),
            ),
        ]
    }

    fn matches(&self, local: &Local) -> bool {
        let [day, weekday] = [self.days & local.day != 0, self.weekdays & local.weekday != 0];
        let is_day = if self.days_or_weekdays { day || weekday } else { day && weekday };
        is_day
            && self.minutes & local.minute != 0
            && self.hours & local.hour != 0
            && self.months & local.month != 0
    }
}

/// A local time to the minute: its number, and the bit of each field.
struct Local {
    number: i64,
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
}

impl Local {
    fn new(number: i64) -> Self {
        let time = DateTime::constant(1970, 1, 1, 0, 0, 0, 0) + SignedDuration::from_mins(number);
        let weekday = 1 << time.weekday().to_sunday_zero_offset();
        let [minute, hour, day, month] =
            [time.minute(), time.hour(), time.day(), time.month()].map(|field| 1 << field);
        Self { number, minute, hour, day, month, weekday }
    }
}

/// Some days of a zone, minute by minute: the moment, in seconds, and what the clocks show.
struct Days(Vec<(i64, Local)>);

impl Days {
    fn around(zone: &TimeZone, moment: i64) -> Self {
        let begin = (moment - 4 * DAY).div_euclid(MINUTE);
        let end = (moment + 2 * DAY).div_euclid(MINUTE);
        let show = |minute: i64| {
            let at = Timestamp::from_second(minute * MINUTE).unwrap();
            (minute * MINUTE, Local::new(minute + i64::from(zone.to_offset(at).seconds()) / MINUTE))
        };
        Self((begin..end).map(show).collect())
    }

    /// The dates of an expression.
    fn dates(&self, pattern: &Pattern) -> Vec<i64> {
        let mut reached = self.0[0].1.number;
        let is_date = |(moment, local): &(i64, Local)| {
            let is_new = local.number > reached;
            let mut skipped = (reached + 1..local.number).map(Local::new);
            let is_date = match pattern.is_fixed {
                true => is_new && (pattern.matches(local) || skipped.any(|local| pattern.matches(&local))),
                false => pattern.matches(local),
            };
            reached = reached.max(local.number);
            is_date.then_some(*moment)
        };
        self.0.iter().filter_map(is_date).collect()
    }
}

fn system(nanos: i128) -> SystemTime {
    Timestamp::from_nanosecond(nanos).unwrap().into()
}

/// Moments before, in and after a change, and around each of the dates.
fn questions(change: i64, dates: &[i64]) -> impl Iterator<Item = i128> {
    const SECOND: i128 = 1_000_000_000;
    let halves = (-10..10).map(move |half| i128::from(change + half * 30 * MINUTE) * SECOND);
    let near = dates.iter().flat_map(|&date| [-1, 0, 1].map(|off| i128::from(date) * SECOND + off));
    let days = [-2, -1, 1].map(|day| i128::from(change + day * DAY) * SECOND + 1);
    let (begin, end) = (i128::from(change - 2 * DAY) * SECOND, i128::from(change + 2 * DAY) * SECOND);
    halves.chain(near).chain(days).filter(move |&at| at >= begin && at < end)
}

/// Asks about all expressions for a local time, and returns the number of questions.
fn ask(name: &str, zone: &TimeZone, change: i64, local: DateTime) -> usize {
    let days = Days::around(zone, change);
    let end = days.0.last().unwrap().0;
    let mut asked = 0;
    for pattern in Pattern::all_for(local) {
        let cron = Cron::new(&pattern.text, zone.clone()).unwrap();
        let dates = days.dates(&pattern);
        // Hours have many dates, which differ in nothing.
        let near: Vec<_> = dates.iter().copied().filter(|date| (date - change).abs() <= 2 * 3_600).collect();
        for at in questions(change, &near) {
            let expected = dates.iter().find(|&&date| i128::from(date) * 1_000_000_000 > at);
            let found = cron.date_after(system(at));
            let is_right = match expected {
                Some(&date) => found == Some(system(i128::from(date) * 1_000_000_000)),
                None => found.is_none_or(|found| found > system(i128::from(end) * 1_000_000_000)),
            };
            let show = |time: SystemTime| Timestamp::try_from(time).unwrap().to_zoned(zone.clone());
            let expected = expected.map(|&date| show(system(i128::from(date) * 1_000_000_000)));
            let (at, found) = (show(system(at)), found.map(show));
            assert!(is_right, "{:?} in {name} after {at}: {found:?}, not {expected:?}", pattern.text);
            asked += 1;
        }
    }
    asked
}

/// A change of a zone's offset: the moment, in seconds, and the offsets before and after.
type Change = (i64, [i64; 2]);

fn changes(zone: &TimeZone, from: &str, to: &str) -> Vec<Change> {
    let [from, to]: [Timestamp; 2] = [from, to].map(|time| time.parse().unwrap());
    let all = zone.following(from).take_while(|change| change.timestamp() < to);
    let offsets = all.map(|change| {
        let at = change.timestamp();
        let before = zone.to_offset(at - Duration::from_secs(1));
        (at.as_second(), [before, change.offset()].map(|offset| i64::from(offset.seconds())))
    });
    offsets.filter(|(_, [before, after])| before != after).collect()
}

/// The local time in the middle of the gap or the overlap.
fn middle((at, offsets): Change) -> DateTime {
    let local = at + (offsets[0] + offsets[1]) / 2;
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0) + SignedDuration::from_secs(local)
}

/// The zones by their first offset and their changes in these years.
fn zones(from: &str, to: &str) -> BTreeMap<(i32, Vec<Change>), (String, TimeZone)> {
    let names = tz::db().available().map(|name| name.to_string());
    let zones: Vec<_> = names.filter_map(|name| Some((name.clone(), TimeZone::get(&name).ok()?))).collect();
    assert!(zones.len() > 300, "{} zones: the system has no zone files", zones.len());
    let first = |zone: &TimeZone| zone.to_offset(from.parse().unwrap()).seconds();
    zones.into_iter().map(|zone| ((first(&zone.1), changes(&zone.1, from, to)), zone)).collect()
}

#[test]
fn all_zones_of_three_years_agree_with_a_walk_by_minutes() {
    let (mut asked, zones) = (0, zones("2026-01-01T00:00Z", "2029-01-01T00:00Z"));
    for ((_, changes), (name, zone)) in &zones {
        for change in changes {
            asked += ask(name, zone, change.0, middle(*change));
        }
        if changes.is_empty() {
            asked += ask(name, zone, 1_803_000_000, DateTime::constant(2027, 2, 19, 2, 30, 0, 0));
        }
    }
    println!("{asked} questions about {} zones", zones.len());
    assert!(asked > 50_000, "{asked} questions");
}

/// As in Apia, which left out the 30th of December 2011.
#[test]
fn changes_of_more_than_two_hours_agree_with_a_walk_by_minutes() {
    let mut asked = 0;
    for ((_, changes), (name, zone)) in zones("1970-01-01T00:00Z", "2026-01-01T00:00Z") {
        for change in changes {
            let [before, after] = change.1;
            if (after - before).abs() > 2 * 3_600 && change.1.iter().all(|offset| offset % MINUTE == 0) {
                asked += ask(&name, &zone, change.0, middle(change));
            }
        }
    }
    assert!(asked > 1_000, "{asked} questions");
}
