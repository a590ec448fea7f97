//! Unix time, and its text form: UTC, with days that begin at midnight UTC.

use std::time::SystemTime;

use jiff::Timestamp;

const DAY_S: u64 = 86_400;

/// The time, in seconds since 1970; 0 if the clock is before that.
pub fn now_s() -> u64 {
    to_s(SystemTime::now())
}

/// The time, in milliseconds since 1970; 0 if the clock is before that.
pub fn now_ms() -> u64 {
    to_ms(SystemTime::now())
}

/// A time in seconds since 1970; 0 before that.
pub fn to_s(time: SystemTime) -> u64 {
    to_ms(time) / 1_000
}

/// A time in milliseconds since 1970; 0 before that.
pub fn to_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// `2026-11-22T08:30:00.125Z`.
pub fn show_time(unix_ms: u64) -> String {
    format!("{:.3}", to_timestamp(unix_ms))
}

/// Returns the time of a text as [`show_time`] writes it, in milliseconds since 1970.
pub fn read_time(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// `2026-11-22`.
pub fn day_of(unix_ms: u64) -> String {
    to_timestamp(unix_ms).strftime("%Y-%m-%d").to_string()
}

/// Returns the day `days` days before.
pub fn days_before(unix_ms: u64, days: u64) -> String {
    day_of(unix_ms.saturating_sub(days * DAY_S * 1_000))
}

/// Returns the latest time that can be written, for a later one.
fn to_timestamp(unix_ms: u64) -> Timestamp {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// An age in its largest unit: `just now`, `5 min ago`, `3 h ago`, `2 d ago`.
pub fn show_age(seconds: u64) -> String {
    match (seconds / DAY_S, seconds / 3_600, seconds / 60) {
        (0, 0, 0) => "just now".to_owned(),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (days, ..) => format!("{days} d ago"),
    }
}

/// Parses a time span as people write it, into milliseconds: `90s`, `15m`, `1h`, `7d`.
pub fn parse_span(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => DAY_S,
        'w' => 7 * DAY_S,
        _ => return None,
    };
    number.checked_mul(seconds * 1_000)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn times_are_written_in_utc_to_the_millisecond() {
        for (ms, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_795_336_199_125, "2026-11-22T08:29:59.125Z"),
        ] {
            assert_eq!(show_time(ms), written);
            assert_eq!(day_of(ms), written[..10]);
        }
        assert_eq!(days_before(951_868_800_000, 1), "2000-02-29");
        assert!(show_time(u64::MAX).starts_with("9999-12-30T"));
    }

    #[test]
    fn times_are_counted_from_1970_on() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567);
        assert_eq!((to_s(time), to_ms(time)), (1_234, 1_234_567));
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!((to_s(before), to_ms(before)), (0, 0));
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        for (seconds, told) in [
            (59, "just now"),
            (60, "1 min ago"),
            (7_199, "1 h ago"),
            (172_800, "2 d ago"),
        ] {
            assert_eq!(show_age(seconds), told);
        }
    }

    #[test]
    fn spans_are_read() {
        assert_eq!(parse_span("90s"), Some(90_000));
        assert_eq!(parse_span("7d"), Some(604_800_000));
        for bad in ["", "h", "5", "5y", "-1h", "5é", "99999999999999999999h"] {
            assert_eq!(parse_span(bad), None, "{bad}");
        }
    }
}
