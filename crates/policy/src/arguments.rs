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
        JsonNode::Null | JsonNode::Plain(_) => {}
    }
}

fn tell(node: &JsonNode, is_sure: bool, found: &mut dyn FnMut(FoundValue<'_>)) {
    let (value, is_text) = match node {
        JsonNode::Null => return,
        JsonNode::Text(text) => (text, true),
        JsonNode::Plain(text) => (text, false),
        JsonNode::List(items) => return items.iter().for_each(|item| tell(item, is_sure, found)),
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

/// Reads an object or a list that is written as text.
fn read_within(text: &str) -> Option<JsonNode> {
    let text = text.trim();
    let is_like_json = text.starts_with(['{', '[']) && text.ends_with(['}', ']']);
    is_like_json.then(|| JsonNode::read(text)).flatten()
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
}
