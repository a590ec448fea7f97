//! Values with the places where they stand in a text.

use std::ops::Range;

use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
    /// Written between brackets, with commas.
    pub(super) is_flow: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Map(Vec<Member>),
    List(Vec<Node>),
    Scalar(Value),
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: Node,
}

/// How far a way leads into a document.
#[derive(Debug)]
pub(super) struct Reached<'a> {
    /// The innermost value on the way.
    pub(super) node: &'a Node,
    /// The member that it is the value of.
    pub(super) member: Option<&'a Member>,
    /// How many of the keys led there.
    pub(super) depth: usize,
}

impl Node {
    pub(super) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(members) => {
                let pair = |member: &Member| (member.key.clone(), member.value.to_json());
                Value::Object(members.iter().map(pair).collect::<Map<_, _>>())
            }
        }
    }

    /// The member of this name; of several, the last, as parsers have it.
    pub(super) fn get(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            Kind::Map(members) => members.iter().rfind(|member| member.key == key),
            _ => None,
        }
    }

    pub(super) fn reach(&self, key: &[String]) -> Reached<'_> {
        let mut reached = Reached {
            node: self,
            member: None,
            depth: 0,
        };
        for key in key {
            let Some(member) = reached.node.get(key) else {
                break;
            };
            reached = Reached {
                node: &member.value,
                member: Some(member),
                depth: reached.depth + 1,
            };
        }
        reached
    }

    /// The index of the entry of this name, in a table or a list.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        match &self.kind {
            Kind::Map(members) => members.iter().rposition(|member| member.key == name),
            Kind::List(items) => items.iter().rposition(|item| {
                let own = item.get("name").map(|member| member.value.to_json());
                own.as_ref().and_then(Value::as_str) == Some(name)
            }),
            Kind::Scalar(_) => None,
        }
    }

    /// Where its entries stand.
    pub(super) fn spans(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Map(members) => members.iter().map(Member::span).collect(),
            Kind::List(items) => items.iter().map(|item| item.span.clone()).collect(),
            Kind::Scalar(_) => Vec::new(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Value::Null))
    }
}

impl Member {
    pub(super) fn span(&self) -> Range<usize> {
        self.key_span.start..self.value.span.end.max(self.key_span.end)
    }
}
