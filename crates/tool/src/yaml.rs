//! YAML: one document, built from the events of the parser. It is read only.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The limit of the number of values in a document. The values of an alias are counted each time: an
/// alias of aliases is small, but its value is not.
const NODES_MAX: usize = 100_000;

/// The limit of the depth of nested values.
const DEPTH_MAX: usize = 64;

/// A text that is not valid YAML, or too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct YamlError {
    /// The line, counted from 1.
    pub line: usize,
    /// The message of the parser.
    pub what: String,
}

/// Reads one document as JSON.
pub fn read_yaml(text: &str) -> Result<Value, YamlError> {
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError {
            line: error.marker().line(),
            what: error.info().to_owned(),
        })?;
        let fail = |what: &str| YamlError {
            line: span.start.line(),
            what: what.to_owned(),
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                return Err(fail("a second document"));
            }
        }
        builder.take(event).map_err(fail)?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    root: Value,
    nodes: usize,
}

/// A table or list that is still open.
struct Open {
    anchor: usize,
    value: Value,
    /// The key whose value comes next.
    key: Option<String>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::MappingStart(anchor, _) => self.begin(anchor, Value::Object(Map::new())),
            Event::SequenceStart(anchor, _) => self.begin(anchor, Value::Array(Vec::new())),
            Event::MappingEnd | Event::SequenceEnd => {
                let open = self
                    .open
                    .pop()
                    .ok_or("an end event without a start event")?;
                self.put(open.value, open.anchor)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some();
                let value = if is_text {
                    Value::from(text.as_ref())
                } else {
                    resolve(&text)
                };
                self.put(value, anchor)
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or("an alias without an anchor")?;
                self.nodes += count(&value);
                self.put(value, 0)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, value: Value) -> Result<(), &'static str> {
        if self.open.len() == DEPTH_MAX {
            return Err("values are nested too deeply");
        }
        let key = None;
        self.open.push(Open { anchor, value, key });
        Ok(())
    }

    fn put(&mut self, value: Value, anchor: usize) -> Result<(), &'static str> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err("too many values");
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = value;
            return Ok(());
        };
        match (&mut open.value, open.key.take(), value) {
            (Value::Array(items), _, value) => items.push(value),
            (Value::Object(members), Some(key), value) => drop(members.insert(key, value)),
            (_, None, Value::Array(_) | Value::Object(_)) => {
                return Err("a key that is not a string");
            }
            (_, _, Value::String(key)) => open.key = Some(key),
            (_, _, key) => open.key = Some(key.to_string()),
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

/// Resolves a plain scalar by YAML's core schema.
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
