//! A call's arguments, read so that nothing is lost: of two members of one name a server may take
//! either, so both are looked at.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value of JSON with every member that was written.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Text(String),
    /// A number or a switch, as text.
    Plain(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// None for what is no JSON, or nested too deep to be read.
    pub(crate) fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

/// The place of values in arguments: `/a/b`, with `*` for any one step and `**` for any number.
#[derive(Debug, Clone)]
pub(crate) struct Pointer(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Named(String),
    Any,
    Deep,
}

impl Pointer {
    /// None for what is no pointer.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let steps = text.strip_prefix('/')?.split('/').map(|step| match step {
            "*" => Step::Any,
            "**" => Step::Deep,
            name => Step::Named(name.replace("~1", "/").replace("~0", "~")),
        });
        Some(Self(steps.collect()))
    }

    /// Hands over every text, number and switch at this place or below it; the flag says whether
    /// it is a text.
    pub(crate) fn find<'n>(&self, node: &'n Node, found: &mut dyn FnMut(&'n str, bool)) {
        walk(&self.0, node, found);
    }
}

fn walk<'n>(steps: &[Step], node: &'n Node, found: &mut dyn FnMut(&'n str, bool)) {
    let Some((step, rest)) = steps.split_first() else {
        return tell(node, found);
    };
    if matches!(step, Step::Deep) {
        walk(rest, node, found);
        if rest.is_empty() {
            return;
        }
    }
    let next = if matches!(step, Step::Deep) {
        steps
    } else {
        rest
    };
    match node {
        Node::Object(members) => {
            let meant = |name: &str| match step {
                Step::Named(wanted) => wanted == name,
                Step::Any | Step::Deep => true,
            };
            let members = members.iter().filter(|(name, _)| meant(name));
            members.for_each(|(_, value)| walk(next, value, found));
        }
        Node::List(items) => {
            let meant = |at: usize| match step {
                Step::Named(wanted) => wanted.parse() == Ok(at),
                Step::Any | Step::Deep => true,
            };
            let items = items.iter().enumerate().filter(|(at, _)| meant(*at));
            items.for_each(|(_, value)| walk(next, value, found));
        }
        Node::Null | Node::Text(_) | Node::Plain(_) => {}
    }
}

fn tell<'n>(node: &'n Node, found: &mut dyn FnMut(&'n str, bool)) {
    match node {
        Node::Null => {}
        Node::Text(text) => found(text, true),
        Node::Plain(text) => found(text, false),
        Node::List(items) => items.iter().for_each(|item| tell(item, found)),
        Node::Object(members) => members.iter().for_each(|(_, value)| tell(value, found)),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, on: bool) -> Result<Node, E> {
        Ok(Node::Plain(on.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Plain(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Plain(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Plain(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pointer: &str, expected: &[&str]) {
        let json =
            r#"{"a":{"b":["x","y"]},"a":{"b":"twice"},"n":5,"on":true,"c/d":"slash","z":null}"#;
        let node = Node::read(json).expect("JSON");
        let mut found = Vec::new();
        let pointer = Pointer::parse(pointer).expect("a pointer");
        pointer.find(&node, &mut |text, _| found.push(text.to_owned()));
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
}
