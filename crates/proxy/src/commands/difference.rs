//! The difference of two definitions of a tool, for people.

use serde_json::Value;
use setup::moving::difference;

/// Shows the difference line by line, with hidden characters escaped.
pub(super) fn show_difference(name: &str, before: Option<&str>, now: &str) -> String {
    let lines = |json: &str| {
        let value: Option<Value> = serde_json::from_str(json).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        printable::seen_json(&pretty.unwrap_or_else(|| json.to_owned())).into_owned() + "\n"
    };
    let before = before.map(lines);
    let text = difference(name.as_ref(), before.as_deref(), &lines(now));
    text.trim_end().to_owned()
}
