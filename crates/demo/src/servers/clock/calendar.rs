//! The few sums on dates that `clock` needs.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};

const SECONDS_A_DAY: i64 = 86_400;
/// The day number of 1970-01-01, counted from 0001-01-01 as day 0.
const UNIX_DAY: i64 = 719_162;
/// 1970-01-01 was a Thursday.
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// A day between the years 1 and 9999.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    fn checked(year: i64, month: i64, day: i64) -> Option<Self> {
        let fits = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        fits.then_some(Self { year, month, day })
    }

    /// Days since 1970-01-01.
    pub(super) fn day_number(self) -> i64 {
        let months: i64 = (1..self.month)
            .map(|month| days_in_month(self.year, month))
            .sum();
        days_before_year(self.year) + months + self.day - 1 - UNIX_DAY
    }

    fn from_day_number(number: i64) -> Self {
        let days = number + UNIX_DAY;
        // A year has at most 366 days, so this guess is never too late.
        let mut year = days / 366 + 1;
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let (mut month, mut day) = (1, days - days_before_year(year) + 1);
        while day > days_in_month(year, month) {
            day -= days_in_month(year, month);
            month += 1;
        }
        Self { year, month, day }
    }

    pub(super) fn weekday(self) -> &'static str {
        let at = usize::try_from(self.day_number().rem_euclid(7));
        WEEKDAYS[at.expect("a remainder of 7 is not negative")]
    }
}

fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DateTime {
    pub(super) date: Date,
    second_of_day: i64,
}

impl DateTime {
    pub(super) fn from_unix(seconds: i64, offset: Offset) -> Self {
        let local = seconds + offset.minutes * 60;
        Self {
            date: Date::from_day_number(local.div_euclid(SECONDS_A_DAY)),
            second_of_day: local.rem_euclid(SECONDS_A_DAY),
        }
    }

    /// Seconds since 1970-01-01 UTC when this time is meant at `offset`.
    pub(super) fn unix(self, offset: Offset) -> i64 {
        self.date.day_number() * SECONDS_A_DAY + self.second_of_day - offset.minutes * 60
    }
}

/// Minutes east of UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Offset {
    minutes: i64,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minutes, second) = (self.second_of_day / 60, self.second_of_day % 60);
        write!(
            f,
            "{}T{:02}:{:02}:{second:02}",
            self.date,
            minutes / 60,
            minutes % 60
        )
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.abs();
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = numbers(text, "dddd-dd-dd");
        parts
            .and_then(|parts| Date::checked(parts[0], parts[1], parts[2]))
            .ok_or_else(|| format!("`{text}` is not a date as YYYY-MM-DD"))
    }
}

impl FromStr for DateTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a time as YYYY-MM-DDTHH:MM");
        let (date, time) = text.split_once('T').ok_or_else(bad)?;
        let parts = numbers(time, "dd:dd")
            .or_else(|| numbers(time, "dd:dd:dd"))
            .ok_or_else(bad)?;
        let (hour, minute, second) = (parts[0], parts[1], parts.get(2).copied().unwrap_or(0));
        if hour > 23 || minute > 59 || second > 59 {
            return Err(bad());
        }
        Ok(Self {
            date: date.parse()?,
            second_of_day: hour * 3600 + minute * 60 + second,
        })
    }
}

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not an offset as +HH:MM or -HH:MM");
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(bad()),
        };
        let parts = numbers(rest, "dd:dd").ok_or_else(bad)?;
        if parts[0] > 14 || parts[1] > 59 {
            return Err(bad());
        }
        Ok(Self {
            minutes: sign * (parts[0] * 60 + parts[1]),
        })
    }
}

/// The numbers in a text of exactly this form, where `d` stands for a digit.
fn numbers(text: &str, form: &str) -> Option<Vec<i64>> {
    let fits = text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, expected)| match expected {
                b'd' => byte.is_ascii_digit(),
                _ => byte == expected,
            });
    fits.then(|| {
        text.split(['-', ':'])
            .map(|part| part.parse().expect("digits only"))
            .collect()
    })
}

macro_rules! deserialize_from_str {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

deserialize_from_str!(Date, DateTime, Offset);

#[cfg(test)]
mod tests {
    use super::{Date, DateTime, Offset, days_in_month};

    #[test]
    fn days_are_numbered_without_gaps_and_back() {
        let mut number = Date {
            year: 1599,
            month: 12,
            day: 31,
        }
        .day_number();
        for year in 1600..2401 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    number += 1;
                    let date = Date { year, month, day };
                    assert_eq!(date.day_number(), number);
                    assert_eq!(Date::from_day_number(number), date);
                }
            }
        }
    }

    #[test]
    fn known_moments_are_right() {
        let utc = Offset::default();
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
        ] {
            let moment = DateTime::from_unix(seconds, utc);
            assert_eq!(moment.to_string(), text);
            assert_eq!(text.parse(), Ok(moment));
            assert_eq!(moment.unix(utc), seconds);
        }
    }

    #[test]
    fn what_is_no_time_or_offset_is_refused() {
        for bad in [
            "2026-01-01T24:00",
            "2026-01-01T10:60",
            "2026-01-01",
            "2026-01-01T1:00",
        ] {
            assert!(bad.parse::<DateTime>().is_err(), "{bad}");
        }
        for bad in ["09:00", "+9:00", "+15:00", "+09:60", "", "Z", "é09:00"] {
            assert!(bad.parse::<Offset>().is_err(), "{bad}");
        }
    }
}
