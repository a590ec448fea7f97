//! The purpose of a tool, in one sentence.

use printable::one_line;

use crate::{
    Parameter, Tool, parameters,
    signature::{char_columns, columns},
};

/// The longest purpose in a search hit, in characters (interface, section 4). A non-ASCII character
/// counts as two.
pub const PURPOSE_CHARS_MAX: usize = 100;

/// The characters of a description that are searched for the end of its first sentence.
const READ_CHARS_MAX: usize = 4_000;
/// The most parameters in a purpose that is made from a tool's name.
const NAMED_PARAMETERS_MAX: usize = 4;

/// Returns the first sentence of the description, as one line without Markdown and without the final
/// period.
///
/// `title` and `description` replace those of the server. Without a description, the title is used, else
/// the words of the name, with the tags: `Get weather: forecast, rain`; without tags with the parameters:
/// `Get weather by city, units`.
pub fn purpose(
    tool: &Tool,
    title: Option<&str>,
    description: Option<&str>,
    tags: &[String],
) -> String {
    let described = description
        .and_then(first_sentence)
        .or_else(|| first_sentence(&tool.description()));
    let titled = || {
        let title = title.map(str::to_owned).or_else(|| tool.title())?;
        first_sentence(&title)
    };
    let sentence = described.unwrap_or_else(|| match (titled(), tags) {
        (Some(title), []) => title,
        (None, []) => make_from_name(tool.name(), &parameters(&tool.input_schema())),
        (title, tags) => {
            let about = title.unwrap_or_else(|| make_from_name(tool.name(), &[]));
            one_line(&format!("{about}: {}", tags.join(", ")))
        }
    });
    cut(&sentence)
}

/// Returns `None` if there is no sentence.
fn first_sentence(description: &str) -> Option<String> {
    let read = printable::first_chars(description, READ_CHARS_MAX);
    let paragraph = flat(&first_paragraph(read));
    let sentence = &paragraph[..sentence_end(&paragraph)];
    let sentence = sentence.trim_end_matches(['.', '。', ':', ';', ',', ' ']);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

/// Returns the first paragraph that is not a heading, or the first heading if there is no other text.
fn first_paragraph(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.skip_while(|line| !is_prose(line)).peekable();
    let mut paragraph: Vec<&str> = Vec::new();
    while let Some(line) = lines.next_if(|line| is_prose(line)) {
        if !paragraph.is_empty() && (is_item(line) || is_label(line)) {
            break;
        }
        paragraph.push(line);
    }
    if paragraph.is_empty() {
        let heading = text.lines().map(str::trim).find(|line| has_words(line));
        paragraph.extend(heading);
    }
    paragraph
}

fn is_prose(line: &str) -> bool {
    has_words(line) && !line.starts_with('#') && !line.starts_with("```") && !is_caption(line)
}

/// Returns true for `Purpose:` or `When to use:` alone on a line.
fn is_caption(line: &str) -> bool {
    line.ends_with(':') && line.split_whitespace().count() <= CAPTION_WORDS_MAX
}

const CAPTION_WORDS_MAX: usize = 4;

fn has_words(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

fn is_item(line: &str) -> bool {
    let is_marked = |mark| {
        line.strip_prefix(mark)
            .is_some_and(|rest: &str| rest.starts_with(' '))
    };
    ['-', '*', '•', '+', '>'].into_iter().any(is_marked)
}

/// Returns true for `Args:`, `Returns:`, `Example: ...`, which end the first paragraph of a docstring.
fn is_label(line: &str) -> bool {
    line.split_once(':').is_some_and(|(word, _)| {
        word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic)
    })
}

/// Joins lines into one, without Markdown and control characters.
fn flat(lines: &[&str]) -> String {
    let text = lines.join(" ").replace("**", "").replace("__", "_");
    let text = drop_links(&text);
    let text = one_line(&text.replace('`', ""));
    // Markers of headings and lists, and emoji: no sentence starts with them.
    let is_mark = |c: char| {
        !c.is_alphanumeric() && !matches!(c, '[' | '(' | '"' | '\'' | '/' | '$' | '@' | '<')
    };
    drop_number(text.trim_start_matches(is_mark)).to_owned()
}

/// Removes a list number: `1. Open it` becomes `Open it`.
fn drop_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_list = (1..=LIST_DIGITS_MAX).contains(&(text.len() - rest.len()));
    let item = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    item.filter(|_| is_list).unwrap_or(text)
}

/// Removes link addresses: `[text](address)` becomes `text`.
fn drop_links(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(open) = rest[..middle].rfind('[') else {
            flat.push_str(&rest[..middle + 2]);
            rest = &rest[middle + 2..];
            continue;
        };
        let Some(close) = rest[middle..].find(')') else {
            break;
        };
        flat.push_str(&rest[..open]);
        flat.push_str(&rest[open + 1..middle]);
        rest = &rest[middle + close + 1..];
    }
    flat.push_str(rest);
    flat
}

/// Returns the end of the first sentence, including its period.
fn sentence_end(text: &str) -> usize {
    let is_end = |(at, c): &(usize, char)| match c {
        '。' | '！' | '？' => true,
        '.' | '!' | '?' => ends_here(&text[..*at], &text[at + 1..]),
        _ => false,
    };
    let end = text.char_indices().find(is_end);
    end.map_or(text.len(), |(at, c)| at + c.len_utf8())
}

/// A number of up to this many digits before a period is a list number (`1. Open ...`).
const LIST_DIGITS_MAX: usize = 2;

/// Words whose period does not end a sentence.
const ABBREVIATIONS: [&str; 14] = [
    "e.g", "i.e", "etc", "vs", "cf", "approx", "incl", "excl", "dr", "mr", "ms", "st", "fig", "no",
];

fn ends_here(before: &str, after: &str) -> bool {
    let after = after.trim_start_matches(['"', '\'', ')', ']']);
    if !after.is_empty() && !after.starts_with(' ') {
        return false;
    }
    let next = after.trim_start().chars().next();
    if next.is_some_and(char::is_lowercase) {
        return false;
    }
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    let letters = word.chars().count();
    let is_initial = letters == 1 && word.chars().all(char::is_uppercase);
    let is_number = letters <= LIST_DIGITS_MAX && word.chars().all(|c| c.is_ascii_digit());
    next.is_none()
        || !(is_initial || is_number || ABBREVIATIONS.contains(&word.to_lowercase().as_str()))
}

/// Cuts a text to [`PURPOSE_CHARS_MAX`] after a word.
fn cut(text: &str) -> String {
    if columns(text) <= PURPOSE_CHARS_MAX {
        return text.to_owned();
    }
    let mut columns = 0;
    let is_over = |(_, c): &(usize, char)| {
        columns += char_columns(*c);
        columns >= PURPOSE_CHARS_MAX
    };
    let end = text.char_indices().find(is_over);
    let end = end.map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let last_space = if text[end..].starts_with(' ') {
        None
    } else {
        head.rfind(' ')
    };
    // A text without spaces (Chinese, a URL) is cut between letters.
    let word = last_space.filter(|at| *at > end / 2).unwrap_or(end);
    format!(
        "{}…",
        head[..word].trim_end_matches([' ', ',', ';', ':', '.'])
    )
}

fn make_from_name(name: &str, parameters: &[Parameter]) -> String {
    let words = words(name).join(" ");
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    let sentence = first.unwrap_or_default() + letters.as_str();
    if parameters.is_empty() {
        return sentence;
    }
    let named = parameters.iter().take(NAMED_PARAMETERS_MAX);
    let named: Vec<String> = named
        .map(|parameter| self::words(&parameter.name).join(" "))
        .collect();
    one_line(&format!("{sentence} by {}", named.join(", ")))
}

/// Splits an identifier into words: `getHTTPStatus`, `get_http-status` and `get.http__status` have
/// the same words. Acronyms keep their capitals, other words become lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, &c) in letters.iter().enumerate() {
        let after_lower =
            at > 0 && (letters[at - 1].is_lowercase() || letters[at - 1].is_numeric());
        let before_lower = letters.get(at + 1).is_some_and(|c| c.is_lowercase());
        let after_upper = at > 0 && letters[at - 1].is_uppercase();
        if c.is_uppercase() && (after_lower || (after_upper && before_lower)) {
            words.push(String::new());
        }
        match words.last_mut() {
            Some(word) if c.is_alphanumeric() => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(spell).collect()
}

fn spell(word: String) -> String {
    let is_acronym = word.chars().count() > 1 && !word.contains(char::is_lowercase);
    if is_acronym {
        word
    } else {
        word.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(description: &str, expected: &str) {
        let tool = json!({"name": "t", "description": description});
        assert_eq!(
            purpose(&Tool::parse(&tool.to_string()).unwrap(), None, None, &[]),
            expected
        );
    }

    #[test]
    fn the_first_sentence_is_found() {
        check("Create an issue. Needs a token.", "Create an issue");
        check("  Get\n\tthe weather!  Now.", "Get the weather!");
        check("Read files, e.g. logs. Then more.", "Read files, e.g. logs");
        check(
            "Works with v1.2 of https://example.com/a.b today. Yes.",
            "Works with v1.2 of https://example.com/a.b today",
        );
        check(
            "Ask J. Doe (see Fig. 3). Then go.",
            "Ask J. Doe (see Fig. 3)",
        );
        check("创建议题。需要令牌。", "创建议题");
        check("List items: ", "List items");
    }

    #[test]
    fn markdown_is_flattened() {
        check(
            "# Weather\n\nGet **the** `weather` from [here](https://example.com).",
            "Get the weather from here",
        );
        check("# Only a heading", "Only a heading");
        check(
            "🎯 Purpose:\n  1. Find `things` quickly. Well.",
            "Find things quickly",
        );
        check("Search the web\n- fast\n- good", "Search the web");
        check("Search the web\nArgs:\n  q: text", "Search the web");
        check("a](b [c", "a](b [c");
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_word() {
        check(
            &"word ".repeat(30),
            &format!("{}…", "word ".repeat(19) + "word"),
        );
        check(&"x".repeat(1_000_000), &format!("{}…", "x".repeat(99)));
        check(&"字".repeat(60), &format!("{}…", "字".repeat(49)));
    }

    #[test]
    fn a_tool_that_says_nothing_is_described_by_its_name() {
        let schema = json!({"properties": {"unitSystem": {}, "city": {}}, "required": ["city"]});
        let cases = [
            (
                json!({"name": "get_weather", "inputSchema": schema}),
                "Get weather by city, unit system",
            ),
            (
                json!({"name": "get_weather", "title": "Weather", "inputSchema": schema}),
                "Weather",
            ),
            (
                json!({"name": "getHTTPStatus", "description": " "}),
                "Get HTTP status",
            ),
            (json!({"name": "ns.v2__list-items"}), "Ns v2 list items"),
            (json!({"name": "///"}), ""),
        ];
        let tags = ["forecast", "rain"].map(str::to_owned);
        let tagged = |tool: serde_json::Value| {
            purpose(&Tool::parse(&tool.to_string()).unwrap(), None, None, &tags)
        };
        let tool = json!({"name": "get_weather", "inputSchema": schema});
        assert_eq!(tagged(tool), "Get weather: forecast, rain");
        let tool = json!({"name": "w", "title": "Weather"});
        assert_eq!(tagged(tool), "Weather: forecast, rain");
        let tool = json!({"name": "w", "description": "Tells the weather."});
        assert_eq!(tagged(tool), "Tells the weather");
        for (tool, expected) in cases {
            assert_eq!(
                purpose(&Tool::parse(&tool.to_string()).unwrap(), None, None, &[]),
                expected
            );
        }
    }

    #[test]
    fn a_better_description_replaces_the_servers() {
        let tool = Tool::parse(r#"{"name":"t","description":"Bad."}"#).unwrap();
        let described = |text| purpose(&tool, None, Some(text), &[]);
        assert_eq!(described("Good. Really."), "Good");
        assert_eq!(described(" "), "Bad");
    }

    proptest! {
        #[test]
        fn a_purpose_is_one_bounded_line(description in any::<String>(), name in "[ -~é☃]{1,100}", parameter: String) {
            let schema = json!({"properties": {parameter: {}}});
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            let tool = Tool::parse(&Value::to_string(&tool)).unwrap();
            let purpose = purpose(&tool, None, None, &[]);
            prop_assert!(purpose.chars().count() <= PURPOSE_CHARS_MAX);
            prop_assert!(!purpose.contains(printable::is_hidden), "{:?}", purpose);
        }
    }
}
