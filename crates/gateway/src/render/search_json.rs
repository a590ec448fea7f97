//! The answer to a search as JSON, also cut to the room that a client has.

use registry::{Hit, MatchKind};
use serde_json::{Value, json};
use tool::ServerName;

use super::{
    branches,
    room::fits,
    search::{
        CATEGORIES_COUNTED_MAX, SearchPage, describe_empty_filter, explain_no_hit, write_doubt,
        write_unserved,
    },
    whole_lines,
};

/// The divisor of shares of a hit: its schema may take half, its description half of the rest.
const HALF: usize = 2;

/// The whole answer at any length, for scripts.
pub(crate) fn json(page: &SearchPage<'_>) -> Value {
    let found = page.found;
    let mut json = if found.hits.is_empty() {
        json!({
            "found": 0,
            "message": explain_no_hit(page),
            "suggestion": "Try different keywords or search without a category filter.",
        })
    } else {
        json_of_hits(page)
    };
    if !found.categories.is_empty() {
        let categories = found.categories.iter().take(CATEGORIES_COUNTED_MAX);
        let categories = categories.map(|(name, tools)| json!({"name": name, "tools": tools}));
        json["categories"] = categories.collect();
    }
    if !page.missing.is_empty() {
        json["being_asked"] = page.missing.iter().map(ServerName::as_str).collect();
    }
    json
}

/// The hits. If the filter admits none of them, they stand apart from those that were found.
fn json_of_hits(page: &SearchPage<'_>) -> Value {
    let found = page.found;
    let hit = |hit: &Hit| hit_json(hit, found.parts.get(hit.step));
    let hits: Vec<Value> = found.hits.iter().map(hit).collect();
    let mut json = if found.without_filter {
        let message = describe_empty_filter(page.query, found);
        json!({"found": 0, "total": 0, "tools": [], "message": message, "without_filter": hits})
    } else {
        json!({"found": hits.len(), "total": found.total, "tools": hits})
    };
    if found.is_guess {
        json["perhaps"] = true.into();
    }
    if found.kind == MatchKind::Nearest {
        json["message"] = write_doubt(page).into();
    } else if let Some(unserved) = write_unserved(page.query, found) {
        json["message"] = unserved.into();
    }
    json
}

fn hit_json(hit: &Hit, part: Option<&String>) -> Value {
    let entry = &hit.entry;
    let schema: Value = serde_json::from_str(&entry.input_schema()).unwrap_or_default();
    let mut json = json!({
        "name": entry.at.to_string(),
        "server": entry.at.server.as_str(),
        "description": printable::prose(&entry.description()),
        "signature": format!("{}{}", entry.at, entry.signature()),
        "category": entry.category,
        "tags": entry.tags,
        "input_schema": schema,
        "relevance_score": round_score(hit.score),
    });
    if hit.is_guess {
        json["perhaps"] = true.into();
    }
    if !hit.also.is_empty() {
        let also: Vec<String> = hit.also.iter().map(ToString::to_string).collect();
        json["also_on"] = also.into();
    }
    if !hit.evidence.is_empty() {
        let evidence = hit.evidence.iter();
        let evidence = evidence.map(|it| json!({"label": it.label, "amount": it.amount}));
        json["evidence"] = evidence.collect();
    }
    if let Some(part) = part {
        json["part"] = part.as_str().into();
    }
    json
}

/// Two digits: more of them mean nothing.
fn round_score(score: f32) -> f64 {
    (f64::from(score) * 100.0).round() / 100.0
}

/// Hits as text: whole where they fit, else with schemas cut at whole branches and descriptions
/// shortened; then the last ones left out, and counted in `left_out`.
pub(crate) fn fit(mut found: Value, room: usize) -> String {
    // Hidden characters in definitions are made visible.
    let write = |found: &Value| printable::seen_json(&found.to_string()).into_owned();
    let text = write(&found);
    if fits(&text, room) {
        return text;
    }
    if let Some(message) = found["message"].as_str() {
        found["message"] = whole_lines(message.to_owned(), room / HALF).into();
    }
    let list = if found["without_filter"].is_array() {
        "without_filter"
    } else {
        "tools"
    };
    let hits = found[list].as_array_mut();
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
            && found[list]
                .as_array_mut()
                .is_some_and(|it| it.pop().is_some());
        if !popped {
            return text;
        }
        left_out += 1;
        found["left_out"] = json!(left_out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fit;
    use excerpt::tokens;

    #[test]
    fn hits_keep_to_their_room_and_stay_json() {
        let schema = json!({"properties": {"a": {"enum": vec!["value"; 20_000]}}});
        let hit = json!({
            "name": "a/b", "description": "word ".repeat(50_000), "input_schema": schema,
        });
        let found = json!({"found": 20, "total": 20, "tools": vec![hit; 20]});
        assert_eq!(fit(found.clone(), usize::MAX), found.to_string());
        for room in [200, 4_000] {
            let text = fit(found.clone(), room);
            assert!(tokens::count(&text) <= room, "{}", tokens::count(&text));
            let read: Value = serde_json::from_str(&text).expect("it is JSON");
            let hits = read["tools"].as_array().expect("a list").len();
            let left_out = read["left_out"].as_u64().unwrap_or_default();
            assert_eq!(hits + usize::try_from(left_out).expect("few"), 20);
            assert!(hits > 0);
        }
    }
}
