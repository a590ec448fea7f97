//! Times in a form for people.

use jiff::{Timestamp, tz::TimeZone};

/// Renders a time in seconds since 1970 in the time zone of this machine.
pub(crate) fn render_time(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok();
    let moment = moment.and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map_or_else(
        || "no known time".to_owned(),
        |moment| {
            let here = moment.to_zoned_datetime(TimeZone::system());
            here.strftime("%Y-%m-%d %H:%M").to_string()
        },
    )
}
