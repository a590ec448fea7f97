//! Times in a form for people.

use jiff::{Timestamp, tz::TimeZone};

/// Renders a time in seconds since 1970 in the time zone of this machine.
pub(crate) fn render_time(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok();
    let Some(moment) = moment.and_then(|seconds| Timestamp::from_second(seconds).ok()) else {
        return "no known time".to_owned();
    };
    let here = moment.to_zoned_datetime(TimeZone::system());
    here.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::render_time;

    /// The process runs again with a zone that needs no database: a test cannot set its own variables.
    #[test]
    fn a_time_is_shown_in_the_zone_of_the_machine() {
        let zone = "<+05>-5";
        if env::var("TZ").as_deref() == Ok(zone) {
            assert_eq!(render_time(0), "1970-01-01 05:00");
            return;
        }
        let name = "time::tests::a_time_is_shown_in_the_zone_of_the_machine";
        let mut again = Command::new(env::current_exe().unwrap());
        let said = again.args(["--exact", name]).env("TZ", zone).output();
        let said = String::from_utf8(said.unwrap().stdout).unwrap();
        assert!(said.contains("1 passed"), "{said}");
    }
}
