//! Results of a given size, the same in every run.

use serde_json::{Value, json};

/// Returns exactly `bytes` bytes of ASCII text in lines.
pub fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut number = 1;
    while text.len() < bytes {
        text.push_str(&line(number));
        text.push('\n');
        number += 1;
    }
    text.truncate(bytes);
    text
}

/// Returns this many lines, without a newline after the last.
pub fn lines(count: usize) -> String {
    (1..=count).map(line).collect::<Vec<_>>().join("\n")
}

fn line(number: usize) -> String {
    format!("line {number}: what the fake server has to say here is of no importance")
}

/// Returns `{"items": [...]}` whose JSON has at least `bytes` bytes, and hardly more.
pub fn items(bytes: usize) -> Value {
    let mut items = Vec::new();
    let mut size = r#"{"items":[]}"#.len();
    while size < bytes {
        let id = items.len() + 1;
        let item =
            json!({ "id": id, "name": format!("item {id}"), "open": id % 3 == 0, "price": 1.5 });
        size += item.to_string().len() + 1;
        items.push(item);
    }
    json!({ "items": items })
}

#[cfg(test)]
mod tests {
    use super::{items, lines, text};

    #[test]
    fn sizes_are_as_asked() {
        for bytes in [0, 1, 79, 80, 10_000] {
            assert_eq!(text(bytes).len(), bytes);
            let size = items(bytes).to_string().len();
            assert!(
                (bytes.saturating_sub(1)..bytes + 100).contains(&size),
                "{size} for {bytes}"
            );
        }
        assert_eq!(lines(847).lines().count(), 847);
    }
}
