//! Dates, times and offsets as they are written to `clock`: each in one form only.

use jiff::{
    civil::{Date, DateTime, Time},
    fmt::strtime::BrokenDownTime,
    tz::{Offset, TimeZone},
};
use serde::Deserialize;

/// A day between the years 1 and 9999, as `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Day(pub(super) Date);

/// A date and time without an offset, as `YYYY-MM-DDTHH:MM` or with seconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct LocalTime(pub(super) DateTime);

/// A fixed offset from UTC, as `+HH:MM` or `-HH:MM`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Zone(pub(super) TimeZone);

/// Offsets past this are nobody's.
const OFFSET_HOURS_MAX: i32 = 14;

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::fixed(Offset::UTC))
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let date = has_form(&text, "dddd-dd-dd").then(|| text.parse::<Date>().ok());
        let date = date.flatten().filter(|date| date.year() > 0);
        date.map(Self)
            .ok_or_else(|| format!("`{text}` is not a date as YYYY-MM-DD"))
    }
}

impl TryFrom<String> for LocalTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('T');
        let parts = parts.and_then(|(date, time)| Some((date, read_time(time)?)));
        let (date, time) =
            parts.ok_or_else(|| format!("`{text}` is not a time as YYYY-MM-DDTHH:MM"))?;
        let Day(date) = Day::try_from(date.to_owned())?;
        Ok(Self(date.to_datetime(time)))
    }
}

fn read_time(text: &str) -> Option<Time> {
    let fits = has_form(text, "dd:dd") || has_form(text, "dd:dd:dd");
    // The library takes a leap second for the one before.
    let is_leap = text.ends_with(":60");
    text.parse().ok().filter(|_| fits && !is_leap)
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = has_form(&text, "+dd:dd") || has_form(&text, "-dd:dd");
        let offset = BrokenDownTime::parse("%:z", &text).ok().filter(|_| fits);
        let offset = offset.and_then(|read| read.offset());
        let offset = offset.filter(|at| at.seconds().abs() / 3600 <= OFFSET_HOURS_MAX);
        offset
            .map(|offset| Self(TimeZone::fixed(offset)))
            .ok_or_else(|| format!("`{text}` is not an offset as +HH:MM or -HH:MM"))
    }
}

/// Whether a text has exactly this form, in which `d` stands for a digit.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, expected): (u8, u8)| match expected {
        b'd' => u8::is_ascii_digit(&byte),
        _ => byte == expected,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::{Day, LocalTime, Zone};

    #[test]
    fn what_has_another_form_is_refused() {
        let is_time = |text: &str| LocalTime::try_from(text.to_owned()).is_ok();
        for good in ["2026-01-01T00:00", "2026-01-01T23:59:59"] {
            assert!(is_time(good), "{good}");
        }
        for bad in [
            "2026-01-01T24:00",
            "2026-01-01T10:60",
            "2026-01-01T10:10:60",
            "2026-01-01",
            "2026-01-01T1:00",
        ] {
            assert!(!is_time(bad), "{bad}");
        }
        let is_zone = |text: &str| Zone::try_from(text.to_owned()).is_ok();
        assert!(is_zone("+14:59") && is_zone("-00:30"));
        for bad in ["09:00", "+9:00", "+15:00", "+09:60", "", "Z", "é09:00"] {
            assert!(!is_zone(bad), "{bad}");
        }
        let is_day = |text: &str| Day::try_from(text.to_owned()).is_ok();
        assert!(is_day("0001-01-01") && is_day("9999-12-31"));
        for bad in ["0000-12-31", "2026-02-29", "20260228", "-026-02-28"] {
            assert!(!is_day(bad), "{bad}");
        }
    }
}
