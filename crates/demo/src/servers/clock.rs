//! Dates and times with fixed offsets from UTC, after the Gregorian calendar.
//!
//! There is no time zone database: an offset is written out (`+09:00`), and
//! whoever asks must know whether summer time is in force.

mod calendar;

use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use self::calendar::{Day, LocalTime, Zone};
use super::demo_server::{Answer, DemoServer, DemoTool, Reply, tool};

pub(super) fn server() -> DemoServer {
    DemoServer {
        name: "clock",
        instructions: "Dates and times. Offsets from UTC are fixed; there are no zone names and no summer time.",
        tools: vec![current_time(), convert_time(), days_between()],
    }
}

#[derive(Deserialize)]
struct Now {
    #[serde(default)]
    offset: Zone,
}

fn current_time() -> DemoTool {
    let definition = json!({
        "name": "current_time",
        "title": "Current time",
        "description": "Tell the current date, time and day of the week, in UTC or at a fixed offset from it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "offset": offset_schema("Offset of the answer from UTC")
            },
            "required": [],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    });
    tool(definition, |Now { offset }| -> Answer {
        Ok(tell(Timestamp::now(), offset))
    })
}

fn tell(now: Timestamp, Zone(zone): Zone) -> Reply {
    let here = now.to_zoned(zone);
    Reply::Structured(json!({
        "time": text_of(&here),
        "weekday": weekday_of(&here),
        "unix_seconds": now.as_second(),
    }))
}

fn text_of(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn weekday_of(time: &Zoned) -> String {
    time.strftime("%A").to_string()
}

#[derive(Deserialize)]
struct Convert {
    time: LocalTime,
    #[serde(default)]
    from: Zone,
    to: Zone,
}

fn convert_time() -> DemoTool {
    let definition = json!({
        "name": "convert_time",
        "title": "Convert a time",
        "description": "Convert a date and time from one fixed offset from UTC to another, for example from New York winter time (-05:00) to Tokyo (+09:00).",
        "inputSchema": {
            "type": "object",
            "properties": {
                "time": { "type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2})?$", "description": "Date and time as YYYY-MM-DDTHH:MM", "examples": ["2026-07-28T12:00"] },
                "from": offset_schema("Offset at which `time` is meant"),
                "to": { "type": "string", "pattern": OFFSET_PATTERN, "description": "Offset to convert to, as +HH:MM or -HH:MM", "examples": ["+09:00"] }
            },
            "required": ["time", "to"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(
        definition,
        |Convert { time, from, to }: Convert| -> Answer {
            let here = time.0.to_zoned(from.0);
            let here = here.map_err(|_| format!("`{}` is too far away", time.0))?;
            let there = here.with_time_zone(to.0);
            Ok(Reply::Structured(json!({
                "from": text_of(&here),
                "to": text_of(&there),
                "weekday": weekday_of(&there),
            })))
        },
    )
}

#[derive(Deserialize)]
struct Between {
    start: Day,
    end: Day,
}

fn days_between() -> DemoTool {
    let date = |description: &str| json!({ "type": "string", "format": "date", "description": description, "examples": ["2026-02-28"] });
    let definition = json!({
        "name": "days_between",
        "title": "Days between dates",
        "description": "Count the days from one date to another, leap years included; negative when the end lies before the start.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "start": date("First date as YYYY-MM-DD"),
                "end": date("Last date as YYYY-MM-DD")
            },
            "required": ["start", "end"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Between { start, end }: Between| -> Answer {
        let days = (end.0 - start.0).get_days();
        Ok(Reply::Structured(
            json!({ "days": days, "weeks": days / 7, "days_over": days % 7 }),
        ))
    })
}

const OFFSET_PATTERN: &str = "^[+-]\\d{2}:\\d{2}$";

fn offset_schema(description: &str) -> Value {
    json!({
        "type": "string",
        "pattern": OFFSET_PATTERN,
        "default": "+00:00",
        "description": format!("{description}, as +HH:MM or -HH:MM")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{call, structure_of};
    use super::{Reply, Timestamp, Zone, server, tell};

    #[test]
    fn the_time_is_told_at_an_offset() {
        let now = Timestamp::constant(1_000_000_000, 0);
        let told = tell(now, Zone::try_from("-05:00".to_owned()).unwrap());
        let expected = json!({ "time": "2001-09-08T20:46:40-05:00", "weekday": "Saturday", "unix_seconds": 1_000_000_000 });
        assert_eq!(told, Reply::Structured(expected));
    }

    #[test]
    fn a_time_is_converted_across_midnight_and_year() {
        let arguments = json!({ "time": "2026-12-31T20:30", "from": "-05:00", "to": "+05:45" });
        let converted = structure_of(call(&server(), "convert_time", arguments));
        assert_eq!(converted["from"], "2026-12-31T20:30:00-05:00");
        assert_eq!(converted["to"], "2027-01-01T07:15:00+05:45");
        assert_eq!(converted["weekday"], "Friday");
    }

    #[test]
    fn days_are_counted_over_a_leap_day_and_backwards() {
        let days = |start, end| {
            let arguments = json!({ "start": start, "end": end });
            structure_of(call(&server(), "days_between", arguments))["days"].clone()
        };
        assert_eq!(days("2024-02-28", "2024-03-01"), 2);
        assert_eq!(days("2026-02-28", "2026-03-01"), 1);
        assert_eq!(days("2026-03-01", "2025-03-01"), -365);
    }

    #[test]
    fn what_is_not_a_date_is_refused() {
        for bad in ["2026-02-29", "2026-13-01", "tomorrow", "2026-1-1"] {
            let answer = call(
                &server(),
                "days_between",
                json!({ "start": bad, "end": "2026-01-01" }),
            );
            let expected = format!("bad arguments: `{bad}` is not a date as YYYY-MM-DD");
            assert_eq!(answer, Err(expected));
        }
    }
}
