//! Durations and speeds on the command line. An error says what would be right.

use std::time::Duration;

/// The longest time until the check: a year.
const MAX_CHECK_AFTER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The time until a check: from a millisecond to a year.
///
/// # Errors
///
/// If it is no duration, or not within the limits.
pub fn check_after(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    let range = Duration::from_millis(1)..=MAX_CHECK_AFTER;
    if range.contains(&duration) { Ok(duration) } else { Err("a check comes after 1ms to 8760h".to_owned()) }
}

/// A whole number and its unit: `250ms`, `10s`, `30m`, `1h`.
///
/// # Errors
///
/// If it is no duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is a whole number and its unit: 250ms, 10s, 30m or 1h".to_owned();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let number = number.parse::<u64>().map_err(|_| wrong())?;
    number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or_else(wrong)
}

/// How many times faster than their dates things happen.
///
/// # Errors
///
/// If it is no number, or not within the limits.
pub fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.001..=1e9).contains(speed));
    speed.ok_or_else(|| "a speed is a number from 0.001 to 1000000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("30m"), Ok(Duration::from_secs(1_800)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in
            ["", "10", "s", "10 s", "-1s", "1.5s", "10sec", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
