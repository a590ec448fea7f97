//! The hits of a search as JSON, in the room that a client has.

use serde_json::{Value, json};

use super::branches;
use excerpt::tokens::{self, Counter};

/// The divisor of shares of a hit: its schema may take half, its description half of the rest.
const HALF: usize = 2;

/// Hits as text: whole where they fit, else with schemas cut at whole branches and descriptions
/// shortened; then the last ones left out, and counted in `left_out`.
pub(crate) fn fit_hits(mut found: Value, room: usize) -> String {
    // Hidden characters in definitions are made visible.
    let write = |found: &Value| printable::seen_json(&found.to_string()).into_owned();
    let text = write(&found);
    if fits(&text, room) {
        return text;
    }
    if let Some(message) = found["message"].as_str() {
        found["message"] = super::whole_lines(message.to_owned(), room / HALF).into();
    }
    let hits = found["tools"].as_array_mut();
    let share = room / hits.as_ref().map_or(1, |hits| hits.len().max(1));
    for hit in hits.into_iter().flatten() {
        let schema = hit["input_schema"].to_string();
        let schema = branches::cut(&schema, share / HALF);
        hit["input_schema"] = serde_json::from_str(&schema.json).unwrap_or_default();
        let chars_max = share / HALF / HALF;
        let description = hit["description"].as_str().unwrap_or_default();
        hit["description"] = printable::one_line_of(description, chars_max).into();
    }
    let mut left_out = 0;
    loop {
        let text = write(&found);
        let popped = !fits(&text, room)
            && found["tools"]
                .as_array_mut()
                .is_some_and(|it| it.pop().is_some());
        if !popped {
            return text;
        }
        left_out += 1;
        found["left_out"] = json!(left_out);
    }
}

fn fits(text: &str, room: usize) -> bool {
    tokens::token_upper_bound(text) <= room
        || Counter::with(|counter| counter.count_to(text, room)) <= room
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fit_hits;
    use excerpt::tokens;

    #[test]
    fn hits_keep_to_their_room_and_stay_json() {
        let schema = json!({"properties": {"a": {"enum": vec!["value"; 20_000]}}});
        let hit = json!({
            "name": "a/b", "description": "word ".repeat(50_000), "input_schema": schema,
        });
        let found = json!({"found": 20, "total": 20, "tools": vec![hit; 20]});
        assert_eq!(fit_hits(found.clone(), usize::MAX), found.to_string());
        for room in [200, 4_000] {
            let text = fit_hits(found.clone(), room);
            assert!(tokens::count(&text) <= room, "{}", tokens::count(&text));
            let read: Value = serde_json::from_str(&text).expect("it is JSON");
            let hits = read["tools"].as_array().expect("a list").len();
            let left_out = read["left_out"].as_u64().unwrap_or_default();
            assert_eq!(hits + usize::try_from(left_out).expect("few"), 20);
            assert!(hits > 0);
        }
    }
}
