//! A call's arguments, read without loss: if two members have the same name, a server may use either,
//! so both are checked.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use tool::is_same_member_name;

/// A JSON value with every member that was written, duplicates included.
#[derive(Debug)]
pub(crate) enum JsonNode {
    Null,
    Text(String),
    /// A number or a boolean, as text.
    Plain(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
    /// The texts and numbers of a text that looks like JSON and that some readers accept: half a surrogate
    /// pair, `NaN`, deep nesting, a trailing comma, several values. Their places are not known.
    Unreadable(Vec<JsonNode>),
}

impl JsonNode {
    /// Reads JSON. Returns `None` if it is invalid, or nested too deeply.
    pub(crate) fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

/// The place of values in arguments: `/a/b`, with `*` for any one step and `**` for any number.
#[derive(Debug, Clone)]
pub(crate) struct Pointer(Vec<PointerStep>);

#[derive(Debug, Clone)]
enum PointerStep {
    Named(String),
    Any,
    Deep,
}

impl Pointer {
    /// Reads a pointer. Returns `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let steps = text.strip_prefix('/')?.split('/').map(|step| match step {
            "*" => PointerStep::Any,
            "**" => PointerStep::Deep,
            name => PointerStep::Named(name.replace("~1", "/").replace("~0", "~")),
        });
        Some(Self(steps.collect()))
    }

    /// Calls `found` with every text, number and boolean at this place or below it. Member names are
    /// compared without regard to case, as some servers read them. Text that is JSON is searched, too.
    pub(crate) fn find(&self, node: &JsonNode, found: &mut dyn FnMut(FoundValue<'_>)) {
        walk(&self.0, node, true, found);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundValue<'a> {
    pub(crate) value: &'a str,
    pub(crate) is_text: bool,
    /// True if every server reads this value at this place.
    pub(crate) is_sure: bool,
}

fn walk(
    steps: &[PointerStep],
    node: &JsonNode,
    is_sure: bool,
    found: &mut dyn FnMut(FoundValue<'_>),
) {
    let Some((step, rest)) = steps.split_first() else {
        return tell(node, is_sure, found);
    };
    let is_deep = matches!(step, PointerStep::Deep);
    if is_deep {
        walk(rest, node, is_sure, found);
        if rest.is_empty() {
            return;
        }
    }
    let next = if is_deep { steps } else { rest };
    match node {
        JsonNode::Object(members) => {
            for (name, value) in members {
                let is_written = match step {
                    PointerStep::Named(wanted) if wanted == name => true,
                    PointerStep::Named(wanted) if is_same_member_name(wanted, name) => false,
                    PointerStep::Named(_) => continue,
                    PointerStep::Any | PointerStep::Deep => true,
                };
                walk(next, value, is_sure && is_written, found);
            }
        }
        JsonNode::List(items) => {
            let meant = |at: usize| match step {
                PointerStep::Named(wanted) => wanted.parse() == Ok(at),
                PointerStep::Any | PointerStep::Deep => true,
            };
            let items = items.iter().enumerate().filter(|(at, _)| meant(*at));
            items.for_each(|(_, value)| walk(next, value, is_sure, found));
        }
        JsonNode::Text(text) => {
            if let Some(node) = read_within(text) {
                walk(steps, &node, false, found);
            }
        }
        JsonNode::Unreadable(_) => tell(node, false, found),
        JsonNode::Null | JsonNode::Plain(_) => {}
    }
}

fn tell(node: &JsonNode, is_sure: bool, found: &mut dyn FnMut(FoundValue<'_>)) {
    let (value, is_text) = match node {
        JsonNode::Null => return,
        JsonNode::Text(text) => (text, true),
        JsonNode::Plain(text) => (text, false),
        JsonNode::List(items) | JsonNode::Unreadable(items) => {
            return items.iter().for_each(|item| tell(item, is_sure, found));
        }
        JsonNode::Object(members) => {
            let members = members.iter();
            return members.for_each(|(_, value)| tell(value, is_sure, found));
        }
    };
    found(FoundValue {
        value,
        is_text,
        is_sure,
    });
    if let Some(node) = is_text.then(|| read_within(value)).flatten() {
        tell(&node, false, found);
    }
}

/// Reads JSON that is written as text: an object, a list, or another text.
fn read_within(text: &str) -> Option<JsonNode> {
    let json = text.trim_matches(|char: char| char.is_whitespace() || char == '\u{feff}');
    let is_like_json = json.starts_with(['{', '[', '"']);
    is_like_json
        .then(|| JsonNode::read(json).unwrap_or_else(|| JsonNode::Unreadable(list_scalars(json))))
}

/// Lists the texts and numbers of a text that is no valid JSON.
fn list_scalars(json: &str) -> Vec<JsonNode> {
    let mut scalars = Vec::new();
    let mut rest = json;
    while let Some(begin) = rest.find(|char: char| char == '"' || char.is_ascii_digit()) {
        rest = &rest[begin..];
        let length = if let Some(quoted) = rest.strip_prefix('"') {
            let (text, length) = read_text(quoted);
            scalars.push(JsonNode::Text(text));
            length + 1
        } else {
            let is_end = |char: char| !(char.is_ascii_alphanumeric() || "+-.".contains(char));
            let length = rest.find(is_end).unwrap_or(rest.len());
            scalars.push(JsonNode::Plain(rest[..length].to_owned()));
            length
        };
        rest = &rest[length..];
    }
    scalars
}

/// Reads a text until its closing quote, or to the end. Returns it without escapes, and its length with the
/// quote, in bytes. Half a surrogate pair becomes U+FFFD.
fn read_text(json: &str) -> (String, usize) {
    let mut units: Vec<u16> = Vec::new();
    let mut chars = json.char_indices();
    let mut buffer = [0; 2];
    while let Some((at, char)) = chars.next() {
        let char = match char {
            '"' => return (String::from_utf16_lossy(&units), at + 1),
            '\\' => match chars.next().map(|(_, escaped)| escaped) {
                Some('u') => {
                    let digits = chars.as_str().get(..4);
                    let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
                    if let Some(unit) = unit {
                        units.push(unit);
                        chars.nth(3);
                    }
                    continue;
                }
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            char => char,
        };
        units.extend_from_slice(char.encode_utf16(&mut buffer));
    }
    (String::from_utf16_lossy(&units), json.len())
}

impl<'de> Deserialize<'de> for JsonNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = JsonNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonNode, E> {
        Ok(JsonNode::Null)
    }

    fn visit_bool<E>(self, on: bool) -> Result<JsonNode, E> {
        Ok(JsonNode::Plain(on.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<JsonNode, E> {
        Ok(JsonNode::Plain(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonNode, E> {
        Ok(JsonNode::Plain(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<JsonNode, E> {
        Ok(JsonNode::Plain(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonNode, E> {
        Ok(JsonNode::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonNode, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(JsonNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonNode, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(JsonNode::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pointer: &str, expected: &[&str]) {
        let json =
            r#"{"a":{"b":["x","y"]},"a":{"b":"twice"},"n":5,"on":true,"c/d":"slash","z":null}"#;
        let node = JsonNode::read(json).expect("JSON");
        let mut found = Vec::new();
        let pointer = Pointer::parse(pointer).expect("a pointer");
        pointer.find(&node, &mut |it| found.push(it.value.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_pointer_finds_all_that_may_be_meant() {
        check("/a/b", &["x", "y", "twice"]);
        check("/a/b/1", &["y"]);
        check("/a/*/0", &["x"]);
        check("/n", &["5"]);
        check("/c~1d", &["slash"]);
        check("/z", &[]);
        check("/**", &["x", "y", "twice", "5", "true", "slash"]);
        check("/**/b", &["x", "y", "twice"]);
        assert!(Pointer::parse("a").is_none());
    }

    #[test]
    fn what_only_some_servers_read_is_found_and_not_sure() {
        let json = r#"{"Path":"case","pa\u017fs":"letter","text":"{\"path\":\"in text\"}"}"#;
        let node = JsonNode::read(json).expect("JSON");
        let check = |pointer: &str, expected: &[(&str, bool)]| {
            let mut found = Vec::new();
            let pointer = Pointer::parse(pointer).expect("a pointer");
            pointer.find(&node, &mut |it| {
                found.push((it.value.to_owned(), it.is_sure));
            });
            let found: Vec<_> = found
                .iter()
                .map(|(text, sure)| (text.as_str(), *sure))
                .collect();
            assert_eq!(found, expected, "{pointer:?}");
        };
        check("/path", &[("case", false)]);
        check("/Path", &[("case", true)]);
        check("/pass", &[("letter", false)]);
        check("/text/path", &[("in text", false)]);
        check(
            "/text",
            &[("{\"path\":\"in text\"}", true), ("in text", false)],
        );
    }

    #[test]
    fn text_that_only_lenient_readers_accept_is_searched() {
        let deep = format!(
            "{}{{\"t\":\"secret\"}}{}",
            "{\"a\":".repeat(130),
            "}".repeat(130)
        );
        for text in [
            r#"{"t":"secret","q":"\ud83d"}"#,
            r#"{"q":"\ud83d\"","t":"\u0073ecret"}"#,
            r#"{"t":"secret","n":NaN}"#,
            r#"[-Infinity,{"t":"secret"}]"#,
            r#"{"t":"secret",}"#,
            r#"{"x":1}{"t":"secret"}"#,
            "{\"x\":1}\n{\"t\":\"secret\"}\n",
            "\u{feff}{\"t\":\"secret\"}",
            "{\"x\":\"tab\there\",\"t\":\"secret\"}",
            r#""{\"t\":\"secret\"}""#,
            r#"{"t":"\"secret\""}"#,
            r#"{"t":"secret"#,
            deep.as_str(),
        ] {
            let arguments = JsonNode::Object(vec![("z".into(), JsonNode::Text(text.into()))]);
            for pointer in ["/**/t", "/z/t", "/z", "/**"] {
                let mut is_found = false;
                let pointer = Pointer::parse(pointer).expect("a pointer");
                pointer.find(&arguments, &mut |it| {
                    is_found |= it.value == "secret" && !it.is_sure;
                });
                assert!(is_found, "{pointer:?} {text}");
            }
        }
    }

    #[test]
    fn text_that_is_no_json_has_no_other_values() {
        for text in [
            "[a link](address)",
            "{name} is secret",
            "secret",
            "say \"secret\"",
        ] {
            let arguments = JsonNode::Text(text.into());
            let mut found = Vec::new();
            let pointer = Pointer::parse("/**").expect("a pointer");
            pointer.find(&arguments, &mut |it| found.push(it.value.to_owned()));
            assert_eq!(found, [text]);
        }
    }
}
