//! Events of the parser put together as values with their places.

use std::{collections::HashMap, ops::Range};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value;

use crate::document::{
    error::SyntaxError,
    node::{Kind, Member, Node},
};

/// Values in one document, those that aliases stand for counted each time: an alias of aliases
/// is small, and what it means is not.
const NODES_MAX: usize = 100_000;

/// How deep values may lie in one another.
const DEPTH_MAX: usize = 64;

pub(in crate::document) fn parse(text: &str) -> Result<Option<Node>, SyntaxError> {
    let mut builder = Builder {
        text,
        bytes: text.char_indices().map(|(at, _)| at).collect(),
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        nodes: 0,
    };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxError {
            line: error.marker().line(),
            what: error.info().to_owned(),
        })?;
        let line = span.start.line();
        let fail = |what: &str| SyntaxError {
            line,
            what: what.to_owned(),
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                return Err(fail("a second document"));
            }
        }
        builder.take(event, span).map_err(fail)?;
    }
    Ok(builder.root)
}

struct Builder<'a> {
    text: &'a str,
    /// Where each character begins: the parser counts characters.
    bytes: Vec<usize>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

/// A table or list that has not ended.
struct Open {
    start: usize,
    anchor: usize,
    is_flow: bool,
    kind: Kind,
    /// The key that waits for its value.
    key: Option<(String, Range<usize>)>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), &'static str> {
        let range = self.byte(span.start.index())..self.byte(span.end.index());
        match event {
            Event::MappingStart(anchor, _) => self.begin(range, anchor, Kind::Map(Vec::new()), '{'),
            Event::SequenceStart(anchor, _) => {
                self.begin(range, anchor, Kind::List(Vec::new()), '[')
            }
            Event::MappingEnd | Event::SequenceEnd => self.end(range),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some();
                let value = if is_text {
                    Value::from(text.as_ref())
                } else {
                    resolve(&text)
                };
                let node = Node {
                    span: range,
                    kind: Kind::Scalar(value),
                    is_flow: true,
                };
                self.put(node, anchor)
            }
            Event::Alias(anchor) => {
                let mut node = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or("an alias of nothing")?;
                self.nodes += count(&node);
                move_to(&mut node, &range);
                self.put(node, 0)
            }
            _ => Ok(()),
        }
    }

    fn byte(&self, index: usize) -> usize {
        self.bytes.get(index).copied().unwrap_or(self.text.len())
    }

    fn begin(
        &mut self,
        range: Range<usize>,
        anchor: usize,
        kind: Kind,
        bracket: char,
    ) -> Result<(), &'static str> {
        if self.open.len() == DEPTH_MAX {
            return Err("values lie too deep in one another");
        }
        let is_flow = !range.is_empty() && self.text[range.start..].starts_with(bracket);
        self.open.push(Open {
            start: range.start,
            anchor,
            is_flow,
            kind,
            key: None,
        });
        Ok(())
    }

    fn end(&mut self, range: Range<usize>) -> Result<(), &'static str> {
        let Some(open) = self.open.pop() else {
            return Err("an end without a beginning");
        };
        let last = match &open.kind {
            Kind::Map(members) => members.last().map(|it| it.span().end),
            Kind::List(items) => items.last().map(|it| it.span.end),
            Kind::Scalar(_) => None,
        };
        let end = if open.is_flow {
            range.end
        } else {
            last.unwrap_or(open.start)
        };
        let node = Node {
            span: open.start..end,
            kind: open.kind,
            is_flow: open.is_flow,
        };
        self.put(node, open.anchor)
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), &'static str> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err("too many values");
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.kind, open.key.take()) {
            (Kind::List(items), _) => items.push(node),
            (Kind::Map(members), Some((key, key_span))) => {
                members.push(Member {
                    key,
                    key_span,
                    value: node,
                });
            }
            (Kind::Map(_), None) => match &node.kind {
                Kind::Scalar(value) => {
                    let key = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    open.key = Some((key, node.span));
                }
                _ => return Err("a key that is no text"),
            },
            (Kind::Scalar(_), _) => return Err("a value in a scalar"),
        }
        Ok(())
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::Map(members) => members.iter().map(|member| count(&member.value)).sum(),
        Kind::List(items) => items.iter().map(count).sum(),
        Kind::Scalar(_) => 0,
    }
}

/// What an alias stands for stands where the alias does.
fn move_to(node: &mut Node, span: &Range<usize>) {
    node.span = span.clone();
    node.is_flow = true;
    match &mut node.kind {
        Kind::Map(members) => members.iter_mut().for_each(|member| {
            member.key_span = span.clone();
            move_to(&mut member.value, span);
        }),
        Kind::List(items) => items.iter_mut().for_each(|item| move_to(item, span)),
        Kind::Scalar(_) => {}
    }
}

/// A plain scalar by YAML's core schema.
fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    let is_numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    match text.parse::<f64>() {
        Ok(number) if is_numeric => number.into(),
        _ => text.into(),
    }
}
