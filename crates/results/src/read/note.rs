//! The line after the returned text.

use serde_json::Value;

/// The longest call that a note repeats, in bytes: an expression may be of any length.
const CALL_BYTES_MAX: usize = 160;

/// Writes the line with the range that was read, and the arguments of the next call; `null` means the
/// end.
pub(super) fn write_note(what: &str, next: &Value) -> String {
    if next.is_null() {
        return format!("[{what}: the end]");
    }
    let call = next.to_string();
    if call.len() > CALL_BYTES_MAX {
        return format!(
            "[{what}. More: the same with \"offset\":{}]",
            next["offset"]
        );
    }
    format!("[{what}. More: {call}]")
}
