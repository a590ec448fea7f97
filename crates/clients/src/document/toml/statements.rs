//! A TOML text as its statements: headers and pairs, each with the whole of its key.

use std::{collections::HashMap, ops::Range};

use serde_json::Value;
use toml_parser::{
    Source,
    parser::{Event, EventKind, parse_document},
};

use crate::document::node::{Kind, Member, Node};

/// A header or a pair.
#[derive(Debug)]
pub(super) struct Statement {
    /// From the root. A table of a list has its number behind the name of the list.
    pub(super) key: Vec<String>,
    /// From its first bracket or key to the end of its last.
    pub(super) span: Range<usize>,
    /// Of a pair.
    pub(super) value: Option<Node>,
}

/// The statements of a text that was read as TOML before.
pub(super) fn parse(text: &str) -> Vec<Statement> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    parse_document(&tokens, &mut events, &mut ());
    let is_blank = |event: &Event| {
        matches!(
            event.kind(),
            EventKind::Whitespace | EventKind::Comment | EventKind::Newline
        )
    };
    events.retain(|event| !is_blank(event));
    let mut reader = Reader {
        source,
        events,
        at: 0,
    };
    reader.read_statements()
}

struct Reader<'a> {
    source: Source<'a>,
    events: Vec<Event>,
    at: usize,
}

impl Reader<'_> {
    fn read_statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut table: Vec<String> = Vec::new();
        let mut lists: HashMap<Vec<String>, usize> = HashMap::new();
        while let Some(event) = self.next() {
            let start = event.span().start();
            let (key, value) = match event.kind() {
                EventKind::StdTableOpen => {
                    let key = self.read_key();
                    table = number(&key, &lists);
                    (table.clone(), None)
                }
                EventKind::ArrayTableOpen => {
                    let key = self.read_key();
                    let mut list = number(&key, &lists);
                    let is_known = lists.contains_key(&key[..]) || lists.contains_key(&list);
                    if is_known {
                        list.pop();
                    }
                    *lists.entry(list.clone()).or_insert(0) += 1;
                    list.push((lists[&list] - 1).to_string());
                    table = list;
                    (table.clone(), None)
                }
                EventKind::SimpleKey => {
                    self.at -= 1;
                    let key = self.read_key();
                    let value = self.read_value();
                    ([table.clone(), key].concat(), value)
                }
                _ => continue,
            };
            let end = self.events[self.at.saturating_sub(1)].span().end();
            statements.push(Statement {
                key,
                span: start..end,
                value,
            });
        }
        statements
    }

    fn next(&mut self) -> Option<Event> {
        let event = self.events.get(self.at)?;
        self.at += 1;
        Some(Event::new_unchecked(
            event.kind(),
            event.encoding(),
            event.span(),
        ))
    }

    /// The parts of a key, up to and with what ends it.
    fn read_key(&mut self) -> Vec<String> {
        let mut key = Vec::new();
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::SimpleKey => {
                    let mut part = std::borrow::Cow::Borrowed("");
                    if let Some(raw) = self.source.get(event) {
                        raw.decode_key(&mut part, &mut ());
                    }
                    key.push(part.into_owned());
                }
                EventKind::KeySep => {}
                _ => break,
            }
        }
        key
    }

    fn read_value(&mut self) -> Option<Node> {
        let event = self.next()?;
        let start = event.span().start();
        let kind = match event.kind() {
            EventKind::Scalar => {
                let mut text = std::borrow::Cow::Borrowed("");
                let raw = self.source.get(event)?;
                let _ = raw.decode_scalar(&mut text, &mut ());
                Kind::Scalar(Value::from(text.into_owned()))
            }
            EventKind::ArrayOpen => {
                let mut items = Vec::new();
                while self
                    .peek()
                    .is_some_and(|kind| kind != EventKind::ArrayClose)
                {
                    match self.peek()? {
                        EventKind::ValueSep => drop(self.next()),
                        _ => items.push(self.read_value()?),
                    }
                }
                self.next()?;
                Kind::List(items)
            }
            EventKind::InlineTableOpen => {
                let mut members = Vec::new();
                while self
                    .peek()
                    .is_some_and(|kind| kind != EventKind::InlineTableClose)
                {
                    match self.peek()? {
                        EventKind::ValueSep => drop(self.next()),
                        _ => members.push(self.read_member()?),
                    }
                }
                self.next()?;
                Kind::Map(members)
            }
            _ => return None,
        };
        let end = self.events[self.at - 1].span().end();
        Some(Node {
            span: start..end,
            kind,
            is_flow: true,
        })
    }

    fn read_member(&mut self) -> Option<Member> {
        let start = self.events.get(self.at)?.span().start();
        let key = self.read_key();
        let key_span = start..start;
        let value = self.read_value()?;
        // A dotted key in an inline table is told apart by its whole: it is no entry's name.
        Some(Member {
            key: key.join("."),
            key_span,
            value,
        })
    }

    fn peek(&self) -> Option<EventKind> {
        self.events.get(self.at).map(Event::kind)
    }
}

/// The key with the number of the newest table behind each list that it goes through.
fn number(key: &[String], lists: &HashMap<Vec<String>, usize>) -> Vec<String> {
    let mut numbered = Vec::new();
    for part in key {
        numbered.push(part.clone());
        if let Some(count) = lists.get(&numbered) {
            numbered.push((count - 1).to_string());
        }
    }
    numbered
}
