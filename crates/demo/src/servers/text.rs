//! Work on texts: counting, replacing, sorting, naming, comparing.

mod words;

use serde::Deserialize;
use serde_json::{Value, json};

use self::words::{Case, diff, join_words, slug};
use super::demo_server::{Answer, DemoServer, DemoTool, Reply, tool};

/// The comparison's table has one cell for each pair of lines.
const DIFF_LINES_MAX: usize = 2_000;

pub(super) fn server() -> DemoServer {
    DemoServer {
        name: "text",
        instructions: "Pure functions on text: nothing is read from or written to disk.",
        tools: vec![
            word_count(),
            replace_text(),
            sort_lines(),
            slugify(),
            change_case(),
            compare_texts(),
        ],
    }
}

/// All tools here only compute.
fn definition(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

fn word_count() -> DemoTool {
    let mut definition = definition(
        "word_count",
        "Count the words, lines, characters and bytes of a text. Words are separated by white space.",
        &json!({ "text": { "type": "string", "description": "The text to count" } }),
        &["text"],
    );
    let count = json!({ "type": "integer" });
    definition["outputSchema"] = json!({
        "type": "object",
        "properties": { "words": count, "lines": count, "characters": count, "bytes": count },
        "required": ["words", "lines", "characters", "bytes"]
    });
    tool(definition, |Text { text }| -> Answer {
        Ok(Reply::Structured(json!({
            "words": text.split_whitespace().count(),
            "lines": text.lines().count(),
            "characters": text.chars().count(),
            "bytes": text.len(),
        })))
    })
}

#[derive(Deserialize)]
struct Replace {
    text: String,
    find: String,
    #[serde(default)]
    replacement: String,
    max_replacements: Option<usize>,
}

fn replace_text() -> DemoTool {
    let definition = definition(
        "replace_text",
        "Replace every occurrence of a string in a text, or only the first few. The string is taken literally, not as a pattern.",
        &json!({
            "text": { "type": "string", "description": "The text to change" },
            "find": { "type": "string", "minLength": 1, "description": "What to look for" },
            "replacement": { "type": "string", "default": "", "description": "What to put there; nothing deletes" },
            "max_replacements": { "type": "integer", "minimum": 1, "description": "Stop after this many; all when absent" }
        }),
        &["text", "find"],
    );
    tool(
        definition,
        |Replace {
             text,
             find,
             replacement,
             max_replacements,
         }|
         -> Answer {
            if find.is_empty() {
                return Err("`find` must not be empty".to_owned());
            }
            let most = max_replacements.unwrap_or(usize::MAX);
            Ok(Reply::Text(text.replacen(&find, &replacement, most)))
        },
    )
}

#[derive(Deserialize)]
struct Sort {
    text: String,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    unique: bool,
    #[serde(default)]
    ignore_case: bool,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Ascending,
    Descending,
}

fn sort_lines() -> DemoTool {
    let definition = definition(
        "sort_lines",
        "Sort the lines of a text alphabetically, ascending or descending, and drop repeated lines if wanted.",
        &json!({
            "text": { "type": "string", "description": "Lines to sort" },
            "order": { "type": "string", "enum": ["ascending", "descending"], "default": "ascending", "description": "Which end comes first" },
            "unique": { "type": "boolean", "default": false, "description": "Keep only one of equal lines" },
            "ignore_case": { "type": "boolean", "default": false, "description": "Treat upper and lower case letters alike" }
        }),
        &["text"],
    );
    tool(
        definition,
        |Sort {
             text,
             order,
             unique,
             ignore_case,
         }|
         -> Answer {
            let key = |line: &&str| {
                if ignore_case {
                    line.to_lowercase()
                } else {
                    (*line).to_owned()
                }
            };
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_by_cached_key(key);
            if unique {
                lines.dedup_by_key(|line| key(line));
            }
            if order == Order::Descending {
                lines.reverse();
            }
            Ok(Reply::Text(lines.join("\n")))
        },
    )
}

#[derive(Deserialize)]
struct Slug {
    text: String,
    #[serde(default = "separator_default")]
    separator: char,
    #[serde(default = "slug_length_default")]
    max_length: usize,
}

fn separator_default() -> char {
    '-'
}

fn slug_length_default() -> usize {
    80
}

fn slugify() -> DemoTool {
    let definition = definition(
        "slugify",
        "Turn a title into a short name for a file or web address: lower-case letters and digits, words joined by a separator.",
        &json!({
            "text": { "type": "string", "description": "The title, in any language" },
            "separator": { "type": "string", "enum": ["-", "_"], "default": "-", "description": "What joins the words" },
            "max_length": { "type": "integer", "minimum": 1, "maximum": 255, "default": 80, "description": "Leave out words beyond this many characters" }
        }),
        &["text"],
    );
    tool(
        definition,
        |Slug {
             text,
             separator,
             max_length,
         }|
         -> Answer {
            let slug = slug(&text, separator, max_length);
            if slug.is_empty() {
                Err("no letter or digit fits".to_owned())
            } else {
                Ok(Reply::Text(slug))
            }
        },
    )
}

#[derive(Deserialize)]
struct ChangeCase {
    text: String,
    case: Case,
}

fn change_case() -> DemoTool {
    let definition = definition(
        "change_case",
        "Write a text in another letter case: upper, lower or title case, or as an identifier in snake, kebab or camel case.",
        &json!({
            "text": { "type": "string", "description": "The text or identifier" },
            "case": { "type": "string", "enum": ["upper", "lower", "title", "snake", "kebab", "camel"], "description": "The case to write it in", "examples": ["snake"] }
        }),
        &["text", "case"],
    );
    tool(definition, |ChangeCase { text, case }| -> Answer {
        Ok(Reply::Text(join_words(&text, case)))
    })
}

#[derive(Deserialize)]
struct Compare {
    before: String,
    after: String,
}

fn compare_texts() -> DemoTool {
    let definition = definition(
        "compare_texts",
        "Show the difference between two texts line by line: `-` for a line that went, `+` for one that came, a space for one that stayed.",
        &json!({
            "before": { "type": "string", "description": "The old text" },
            "after": { "type": "string", "description": "The new text" }
        }),
        &["before", "after"],
    );
    tool(definition, |Compare { before, after }| -> Answer {
        let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
        if before.len().max(after.len()) > DIFF_LINES_MAX {
            return Err(format!("each text may have at most {DIFF_LINES_MAX} lines"));
        }
        Ok(Reply::Text(diff(&before, &after).join("\n")))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{call, structure_of, text_of};
    use super::server;

    #[track_caller]
    fn check(tool: &str, arguments: Value, expected: &str) {
        assert_eq!(text_of(call(&server(), tool, arguments)), expected);
    }

    #[test]
    fn a_text_is_counted_in_four_ways() {
        let counted = structure_of(call(
            &server(),
            "word_count",
            json!({ "text": "é two\nthree\n" }),
        ));
        assert_eq!(
            counted,
            json!({ "words": 3, "lines": 2, "characters": 12, "bytes": 13 })
        );
    }

    #[test]
    fn a_string_is_replaced() {
        let text = "a.a.a";
        check(
            "replace_text",
            json!({ "text": text, "find": ".", "replacement": "-" }),
            "a-a-a",
        );
        check(
            "replace_text",
            json!({ "text": text, "find": "a", "max_replacements": 2 }),
            "..a",
        );
        assert!(
            call(
                &server(),
                "replace_text",
                json!({ "text": text, "find": "" })
            )
            .is_err()
        );
    }

    #[test]
    fn lines_are_sorted() {
        let text = "pear\nApple\npear\nfig";
        check(
            "sort_lines",
            json!({ "text": text }),
            "Apple\nfig\npear\npear",
        );
        check(
            "sort_lines",
            json!({ "text": text, "unique": true, "order": "descending" }),
            "pear\nfig\nApple",
        );
        check(
            "sort_lines",
            json!({ "text": "b\nA\na\nB", "ignore_case": true, "unique": true }),
            "A\nb",
        );
    }

    #[test]
    fn a_title_becomes_a_slug() {
        check(
            "slugify",
            json!({ "text": "  Hello, World! (2nd)" }),
            "hello-world-2nd",
        );
        check(
            "slugify",
            json!({ "text": "one two three", "max_length": 8, "separator": "_" }),
            "one_two",
        );
        check(
            "slugify",
            json!({ "text": "unbreakable", "max_length": 5 }),
            "unbre",
        );
        assert!(call(&server(), "slugify", json!({ "text": "!?" })).is_err());
    }

    #[test]
    fn letter_case_is_changed() {
        for (case, expected) in [
            ("upper", "HTTP SERVER-NAME 2"),
            ("lower", "http server-name 2"),
            ("title", "Http Server-name 2"),
            ("snake", "http_server_name_2"),
            ("kebab", "http-server-name-2"),
            ("camel", "httpServerName2"),
        ] {
            check(
                "change_case",
                json!({ "text": "http server-Name 2", "case": case }),
                expected,
            );
        }
        check(
            "change_case",
            json!({ "text": "readFileSync", "case": "snake" }),
            "read_file_sync",
        );
        assert!(
            call(
                &server(),
                "change_case",
                json!({ "text": "a", "case": "bold" })
            )
            .is_err()
        );
    }

    #[test]
    fn two_texts_are_compared() {
        let arguments = json!({ "before": "a\nb\nc", "after": "a\nc\nd" });
        check("compare_texts", arguments, " a\n-b\n c\n+d");
        check(
            "compare_texts",
            json!({ "before": "same", "after": "same" }),
            " same",
        );
    }
}
