//! Example strings for a property, by its format, name and pattern.

use serde_json::Value;

use crate::{Checker, fold, schema::SchemaNode};

/// The longest string generated for `minLength`, in characters.
const TEXT_CHARS_MAX: usize = 1_000;

pub(super) fn text(name: &str, node: SchemaNode<'_>) -> String {
    let format = node.get("format").and_then(Value::as_str);
    let text = format.and_then(of_format).unwrap_or_else(|| of_name(name));
    let text = fit_length(text, node);
    if node.get("pattern").is_none() {
        return text;
    }
    find_matching(&text, node).unwrap_or(text)
}

fn of_format(format: &str) -> Option<&'static str> {
    let text = match format {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T09:30:00Z",
        "time" => "09:30:00Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "ada@example.com",
        "uri" | "url" | "iri" => "https://example.com",
        "uri-reference" | "iri-reference" => "/docs",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "json-pointer" => "/items/0",
        "regex" => "^a+$",
        "byte" | "binary" => "aGVsbG8=",
        _ => return None,
    };
    Some(text)
}

/// Usual values by the words of a property's name. The last word of a name is the most specific: a
/// `message_id` is an id.
const BY_NAME: [(&[&str], &str); 22] = [
    (&["email", "mail"], "ada@example.com"),
    (
        &["url", "uri", "link", "website", "href"],
        "https://example.com",
    ),
    (&["timezone", "tz"], "Europe/Berlin"),
    (
        &["datetime", "timestamp", "since", "until"],
        "2026-01-31T09:30:00Z",
    ),
    (&["date", "day"], "2026-01-31"),
    (&["time", "start", "end"], "2026-01-31T09:30:00Z"),
    (&["directory", "dir", "folder"], "/home/ada/project"),
    (&["path", "file", "filepath"], "/home/ada/notes.txt"),
    (&["filename"], "notes.txt"),
    (
        &["query", "q", "search", "keyword", "keywords"],
        "error handling",
    ),
    (&["owner", "org", "organization"], "acme"),
    (&["repo", "repository", "project"], "site"),
    (&["branch", "ref"], "main"),
    (&["language", "lang", "locale"], "en"),
    (&["country", "region"], "DE"),
    (&["city", "location", "place", "address"], "Berlin"),
    (&["currency"], "EUR"),
    (&["color", "colour"], "#336699"),
    (&["command", "cmd"], "ls"),
    (&["title", "subject", "summary"], "Broken link"),
    (
        &[
            "content",
            "text",
            "message",
            "body",
            "description",
            "comment",
            "prompt",
        ],
        "Hello",
    ),
    (&["id", "ids", "key", "token"], "abc123"),
];

fn of_name(name: &str) -> &'static str {
    let words = crate::purpose::words(name);
    let usual = |word: &String| {
        let word = fold(word);
        let entry = BY_NAME
            .iter()
            .find(|(known, _)| known.contains(&word.as_str()));
        entry.map(|(_, text)| *text)
    };
    words.iter().rev().find_map(usual).unwrap_or("example")
}

fn fit_length(text: &str, node: SchemaNode<'_>) -> String {
    let limit = |keyword: &str| {
        let limit = node.get(keyword).and_then(Value::as_u64)?;
        usize::try_from(limit).ok()
    };
    let least = limit("minLength").unwrap_or(0).min(TEXT_CHARS_MAX);
    let most = limit("maxLength").unwrap_or(TEXT_CHARS_MAX);
    let chars = text.chars().count().max(least).min(most);
    text.chars().cycle().take(chars).collect()
}

/// Strings that satisfy common patterns.
const PATTERNED: [&str; 41] = [
    "a",
    "A",
    "1",
    "a1",
    "abc",
    "ABC",
    "Abc",
    "123",
    "12",
    "1234",
    "12345",
    "123456",
    "0",
    "-1",
    "1.5",
    "1.0.0",
    "v1.0.0",
    "a-b",
    "a_b",
    "a/b",
    "a.b",
    "a:b",
    "1:2",
    "A1",
    "AB-1",
    "ABC-123",
    "#336699",
    "1h",
    "30d",
    "5m",
    "2026-01",
    "2026-01-31",
    "2026-01-31T09:30:00Z",
    "09:30",
    "en",
    "en-US",
    "EUR",
    "ada@example.com",
    "https://example.com",
    "/a",
    "123e4567-e89b-42d3-a456-426614174000",
];

/// The cost of a pattern in steps of the schema reader: it is compiled, and matched with about fifty
/// strings.
const PATTERN_STEPS: u32 = 100;

/// Returns `first`, or another string, if it satisfies the pattern and the length limits.
fn find_matching(first: &str, node: SchemaNode<'_>) -> Option<String> {
    let keywords = ["pattern", "minLength", "maxLength"].into_iter();
    let limits =
        keywords.filter_map(|keyword| Some((keyword.to_owned(), node.get(keyword)?.clone())));
    let checker = Checker::of(Value::Object(limits.collect()));
    node.spend(PATTERN_STEPS);
    let hex = ["0123456789abcdef".repeat(2), "0123456789abcdef".repeat(4)];
    let digits = [8, 9, 10, 11, 16].map(|count| "1234567890".chars().cycle().take(count).collect());
    let texts = PATTERNED.iter().map(|text| (*text).to_owned());
    let mut texts = std::iter::once(first.to_owned())
        .chain(texts)
        .chain(hex)
        .chain::<[String; 5]>(digits);
    texts.find(|text| checker.accepts(&Value::from(text.as_str())))
}
