//! Cron expressions in time zones: gaps, overlaps, a wall clock that is set, and what is no expression.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::{Timestamp, Zoned};
use proptest::prelude::*;
use shardwheel::{ManualClock, ScheduleErrorKind, Timer};
use shardwheel_compat::{Cron, TimeZone};

const HOUR: Duration = Duration::from_secs(3_600);

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn system(time: &str) -> SystemTime {
    time.parse::<Zoned>().unwrap().timestamp().into()
}

fn local(time: SystemTime) -> String {
    let zoned = Timestamp::try_from(time).unwrap().to_zoned(berlin());
    format!("{}", zoned.strftime("%m-%d %H:%M:%S %Z"))
}

/// The first four dates after that time, in Berlin.
fn dates(expression: &str, after: &str) -> Vec<String> {
    let cron = Cron::new(expression, berlin()).unwrap();
    let next = |date: &SystemTime| cron.date_after(*date);
    std::iter::successors(next(&system(after)), next).take(4).map(local).collect()
}

/// In the night of 28 March 2027, 02:00 becomes 03:00: there is no 02:30. In that of 25 October 2026, 03:00 becomes
/// 02:00: there are two. A fixed time is due once in each night, steps are due whenever the clock shows them.
#[test]
fn gaps_and_overlaps() {
    for (expression, after, due) in [
        (
            "30 2 * * *",
            "2027-03-26T12:00[Europe/Berlin]",
            ["03-27 02:30:00 CET", "03-28 03:00:00 CEST", "03-29 02:30:00 CEST", "03-30 02:30:00 CEST"],
        ),
        (
            "*/30 * * * *",
            "2027-03-28T01:15[Europe/Berlin]",
            ["03-28 01:30:00 CET", "03-28 03:00:00 CEST", "03-28 03:30:00 CEST", "03-28 04:00:00 CEST"],
        ),
        (
            "30 2 * * *",
            "2026-10-24T12:00[Europe/Berlin]",
            ["10-25 02:30:00 CEST", "10-26 02:30:00 CET", "10-27 02:30:00 CET", "10-28 02:30:00 CET"],
        ),
        // The search begins in the second of the two hours, before its 02:30.
        (
            "30 2 * * *",
            "2026-10-25T02:15+01:00[Europe/Berlin]",
            ["10-26 02:30:00 CET", "10-27 02:30:00 CET", "10-28 02:30:00 CET", "10-29 02:30:00 CET"],
        ),
        (
            "*/30 2 * * *",
            "2026-10-25T01:00[Europe/Berlin]",
            ["10-25 02:00:00 CEST", "10-25 02:30:00 CEST", "10-25 02:00:00 CET", "10-25 02:30:00 CET"],
        ),
    ] {
        assert_eq!(dates(expression, after), due, "{expression} after {after}");
    }
}

/// In Nuuk, Saturday 27 March 2027 ends at 23:00: its 23:30 is due at the first moment of Sunday.
#[test]
fn a_gap_that_ends_at_midnight_leaves_no_date_out() {
    let nuuk = TimeZone::get("America/Nuuk").unwrap();
    for expression in ["30 23 * * 6", "30 23 27 3 *", "30 23 * * *"] {
        let cron = Cron::new(expression, nuuk.clone()).unwrap();
        let date = cron.date_after(system("2027-03-27T12:00[America/Nuuk]"));
        assert_eq!(date, Some(system("2027-03-28T00:00[America/Nuuk]")), "{expression}");
    }
}

/// On Lord Howe Island, 02:00 of 4 October 2026 becomes 02:30.
#[test]
fn a_gap_of_half_an_hour_moves_a_date_to_its_end() {
    let cron = Cron::new("15 2 * * *", TimeZone::get("Australia/Lord_Howe").unwrap()).unwrap();
    let date = cron.date_after(system("2026-10-03T12:00[Australia/Lord_Howe]"));
    assert_eq!(date, Some(system("2026-10-04T02:30[Australia/Lord_Howe]")));
}

/// Apia left out the whole 30 December 2011.
#[test]
fn a_gap_of_a_day_does_not_end_a_schedule() {
    let cron = Cron::new("30 2 * * *", TimeZone::get("Pacific/Apia").unwrap()).unwrap();
    let next = |date: &SystemTime| cron.date_after(*date);
    let dates = std::iter::successors(Some(system("2011-12-29T02:30[Pacific/Apia]")), next).skip(1).take(3);
    let days = ["31T00:00", "31T02:30", "32T02:30"].map(|day| match day.strip_prefix("32") {
        Some(time) => system(&format!("2012-01-01{time}[Pacific/Apia]")),
        None => system(&format!("2011-12-{day}[Pacific/Apia]")),
    });
    assert!(dates.eq(days));
}

/// A step is no `*`: of the two days, one suffices. A `+` asks for both.
#[test]
fn a_day_of_the_month_and_a_day_of_the_week() {
    let after = "2027-03-01T12:00[Europe/Berlin]"; // a Monday
    let first = |expression: &str| dates(expression, after)[0].clone();
    assert_eq!(first("0 0 */2 * 1"), "03-03 00:00:00 CET");
    assert_eq!(first("0 0 */2 * +1"), "03-15 00:00:00 CET");
    assert_eq!(first("0 0 * * 1"), "03-08 00:00:00 CET");
}

/// A whole timer over both nights: it calls back once in each, at the right moment.
#[test]
fn a_timer_goes_through_gap_and_overlap() {
    let begins = ["2026-10-24T12:00[Europe/Berlin]", "2027-03-27T12:00[Europe/Berlin]"];
    for (begin, date) in begins.into_iter().zip(["10-25 02:30:00 CEST", "03-28 03:00:00 CEST"]) {
        let (_timer, clock, _wall, seen) = scheduled("30 2 * * *", begin);
        clock.advance(24 * HOUR);
        assert_eq!(*seen.lock().unwrap(), [date]);
    }
}

/// Local times at which a timer has called back.
type Seen = Arc<Mutex<Vec<String>>>;

/// A timer by a manual clock, whose wall clock begins at `begin` and can be set by seconds.
fn scheduled(expression: &str, begin: &str) -> (Timer, ManualClock, Arc<AtomicI64>, Seen) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let (set_by, seen, begin) = (Arc::new(AtomicI64::new(0)), Seen::default(), system(begin));
    let wall = {
        let (clock, set_by) = (clock.clone(), Arc::clone(&set_by));
        move || {
            let by = set_by.load(Ordering::SeqCst);
            let time = begin + clock.elapsed() + Duration::from_secs(by.max(0).unsigned_abs());
            time - Duration::from_secs(by.min(0).unsigned_abs())
        }
    };
    let (now, log) = (wall.clone(), Arc::clone(&seen));
    let cron = Cron::new(expression, berlin()).unwrap().clock(wall);
    timer.schedule_with(cron, move || log.lock().unwrap().push(local(now()))).unwrap();
    (timer, clock, set_by, seen)
}

#[test]
fn a_wall_clock_that_is_set_is_followed() {
    let (_timer, clock, set_by, seen) = scheduled("0 * * * *", "2026-06-01T11:30[Europe/Berlin]");
    let take = || std::mem::take(&mut *seen.lock().unwrap());
    // Forward over three dates: once, at the next look. Then by the new time.
    set_by.store(3 * 3_600, Ordering::SeqCst);
    clock.advance(HOUR / 60);
    assert_eq!(take(), ["06-01 14:31:00 CEST"]);
    clock.advance(HOUR / 2);
    assert_eq!(take(), ["06-01 15:00:00 CEST"].map(String::from));
    // Back by an hour: no date twice.
    set_by.store(2 * 3_600, Ordering::SeqCst);
    clock.advance(2 * HOUR);
    assert_eq!(take(), ["06-01 16:00:00 CEST"]);
}

#[test]
fn what_is_no_expression_is_refused_by_name() {
    for expression in ["", "0 3 * *", "0 25 * * *", "every day", "0 3 * * * * * *"] {
        let error = Cron::new(expression, TimeZone::UTC).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{expression:?} is no cron expression: ")), "{error}");
        assert_eq!(error.expression, expression);
    }
}

/// `TimeZone::system()` then shows the time of UTC. In a process of its own, for its environment.
#[test]
fn a_zone_that_the_system_does_not_know_is_refused() {
    if std::env::var_os("TZ").is_some_and(|zone| zone == "Nowhere/City") {
        let error = Cron::new("0 3 * * *", TimeZone::system()).unwrap_err().to_string();
        println!("{error}");
        assert!(
            error.starts_with("the time zone for \"0 3 * * *\" is unknown: TZ is \"Nowhere/City\""),
            "{error}"
        );
        assert!(error.ends_with("TimeZone::UTC"), "{error}");
        return;
    }
    let name = "a_zone_that_the_system_does_not_know_is_refused";
    let this = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("TZ", "Nowhere/City")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&this.stdout);
    assert!(this.status.success() && output.contains("1 passed"), "{output}");
    print!("{output}");
    assert!(Cron::new("0 3 * * *", TimeZone::UTC).is_ok());
}

#[test]
fn an_expression_without_dates_makes_no_timer() {
    let cron = Cron::new("0 0 30 2 *", TimeZone::UTC).unwrap();
    assert_eq!(cron.date_after(SystemTime::now()), None);
    let refused = Timer::new().unwrap().schedule_with(cron, || ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
}

proptest! {
    /// Whatever the moment, to the nanosecond, the date lies after it and matches the expression.
    #[test]
    fn a_date_is_after_the_moment(
        seconds in 1_700_000_000_i64..2_000_000_000,
        nanos in prop_oneof![Just(0), Just(1), Just(999_999_999), 0..1_000_000_000],
        which in 0_usize..5,
    ) {
        let expression = ["30 2 * * *", "*/7 * * * *", "59 59 23 31 12 *", "0 0 29 2 *", "* * * * * *"][which];
        let cron = Cron::new(expression, berlin()).unwrap();
        let after = SystemTime::from(Timestamp::new(seconds, nanos).unwrap());
        let date = cron.date_after(after).unwrap();
        prop_assert!(date > after, "{date:?} after {after:?}");
        // What lies just before it has the same date.
        prop_assert_eq!(cron.date_after((date - Duration::from_nanos(1)).max(after)), Some(date));
        let local: DateTime = Timestamp::try_from(date).unwrap().to_zoned(berlin()).datetime();
        prop_assert_eq!(local.subsec_nanosecond(), 0);
        if which == 4 {
            prop_assert!(date.duration_since(after).unwrap() <= Duration::from_secs(1));
        }
    }
}
