//! Times as they are written down: UTC, by days that begin at midnight there.

const DAY_S: u64 = 86_400;

/// `2026-11-22T08:30:00.125Z`.
pub fn show_time(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let of_day = seconds % DAY_S;
    let (hours, minutes) = (of_day / 3_600, of_day / 60 % 60);
    let day = day_of(unix_ms);
    format!("{day}T{hours:02}:{minutes:02}:{:02}.{ms:03}Z", of_day % 60)
}

/// `2026-11-22`.
pub fn day_of(unix_ms: u64) -> String {
    let (year, month, day) = civil(unix_ms / 1_000 / DAY_S);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The day so many days before.
pub(crate) fn days_before(unix_ms: u64, days: u64) -> String {
    day_of(unix_ms.saturating_sub(days * DAY_S * 1_000))
}

/// A span as people write it, in milliseconds: `90s`, `15m`, `1h`, `7d`.
pub fn parse_ago(text: &str) -> Option<u64> {
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

/// Year, month and day of a day counted from 1970, by the proleptic Gregorian calendar: years begin
/// in March, so that a leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_they_are() {
        assert_eq!(show_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(show_time(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(show_time(1_795_336_199_125), "2026-11-22T08:29:59.125Z");
        assert_eq!(days_before(951_868_800_000, 1), "2000-02-29");
    }

    #[test]
    fn spans_are_read() {
        assert_eq!(parse_ago("90s"), Some(90_000));
        assert_eq!(parse_ago("7d"), Some(604_800_000));
        for bad in ["", "h", "5", "5y", "-1h", "5é", "99999999999999999999h"] {
            assert_eq!(parse_ago(bad), None, "{bad}");
        }
    }
}
