//! TOML: an entry is all the statements whose keys begin with its own.

mod statements;

use serde_json::{Map, Value};

use self::statements::{Statement, parse};
use super::{
    SyntaxError,
    flow::{Comments, Layout},
    json::{flow_of, wrap},
    lines::{Edit, line_number, line_start, newline_of, next_line},
    node::Node,
    render,
    slot::{Removal, Slot},
};

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| SyntaxError {
        line: error.span().map_or(1, |span| line_number(text, span.start)),
        what: error.message().to_owned(),
    })?;
    Ok(convert(toml::Value::Table(table)))
}

fn convert(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(switch) => switch.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(convert).collect(),
        toml::Value::Table(members) => {
            let pairs = members
                .into_iter()
                .map(|(key, value)| (key, convert(value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

pub(super) fn add(text: &str, slot: Slot<'_>, name: &str, entry: &Value) -> Vec<Edit> {
    let statements = parse(text);
    let holder = statements.iter().find_map(|statement| {
        let value = statement.value.as_ref()?;
        let rest = slot.key.strip_prefix(statement.key.as_slice())?;
        Some((value, rest))
    });
    if let Some((value, rest)) = holder {
        return add_inline(text, value, &wrap(rest, slot.list, name, entry));
    }
    let newline = newline_of(text);
    let keys: Vec<String> = slot.key.iter().map(|key| render::toml_key(key)).collect();
    let header = if slot.list {
        format!("[[{}]]", keys.join("."))
    } else {
        format!("[{}.{}]", keys.join("."), render::toml_key(name))
    };
    let members = entry.as_object().into_iter().flatten();
    let lines = members
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{} = {}", render::toml_key(key), render::toml_inline(value)));
    let block: Vec<String> = std::iter::once(header).chain(lines).collect();
    let block = block.join(newline);
    let block = match text {
        "" => format!("{block}{newline}"),
        text if text.ends_with('\n') => format!("{newline}{block}{newline}"),
        _ => format!("{newline}{newline}{block}"),
    };
    vec![Edit::insert(text.len(), block)]
}

/// An entry in a table, or a list, that is written on one line.
fn add_inline(text: &str, holder: &Node, value: &Value) -> Vec<Edit> {
    let item = match value {
        Value::Object(members) => members.iter().next().map(|(key, value)| {
            format!("{} = {}", render::toml_key(key), render::toml_inline(value))
        }),
        Value::Array(items) => items.first().map(render::toml_inline),
        _ => None,
    };
    let flow = flow_of(text, holder, Comments::Hash);
    let layout = match flow.layout() {
        Layout::Lines(_) if flow.items.is_empty() => Layout::Inline,
        layout => layout,
    };
    flow.insert(&item.unwrap_or_default(), &layout)
}

pub(super) fn remove(text: &str, slot: Slot<'_>, name: &str) -> Option<Removal> {
    let statements = parse(text);
    let inline = || remove_inline(text, &statements, slot, name);
    let entry = if slot.list {
        match find_item(&statements, slot.key, name) {
            Some(key) => key,
            None => return inline(),
        }
    } else {
        [slot.key, &[name.to_owned()]].concat()
    };
    let runs = runs_of(&statements, &entry);
    if runs.is_empty() {
        return inline();
    }
    let raw = runs
        .iter()
        .map(|(first, last)| &text[first.span.start..last.span.end]);
    let raw = raw.collect::<Vec<_>>().join(newline_of(text));
    let edits = runs
        .iter()
        .map(|(first, last)| delete_run(text, first, last))
        .collect();
    Some(Removal { edits, raw })
}

/// The key of the list's table that has this name.
fn find_item(statements: &[Statement], list: &[String], name: &str) -> Option<Vec<String>> {
    let is_name = |statement: &&Statement| {
        let key = statement.key.strip_prefix(list).unwrap_or_default();
        let value = statement.value.as_ref().map(Node::to_json);
        key.len() == 2 && key[1] == "name" && value.as_ref().and_then(Value::as_str) == Some(name)
    };
    let found = statements.iter().rfind(is_name)?;
    Some(found.key[..=list.len()].to_vec())
}

/// Statements of the entry that follow one another, by the first and the last.
fn runs_of<'a>(
    statements: &'a [Statement],
    entry: &[String],
) -> Vec<(&'a Statement, &'a Statement)> {
    let of_entry = |statement: &Statement| statement.key.starts_with(entry);
    statements
        .chunk_by(|a, b| of_entry(a) == of_entry(b))
        .filter(|run| of_entry(&run[0]))
        .filter_map(|run| Some((run.first()?, run.last()?)))
        .collect()
}

/// The lines of a run, and the empty line before it where one stays behind it too.
fn delete_run(text: &str, first: &Statement, last: &Statement) -> Edit {
    let newline = newline_of(text);
    let start = line_start(text, first.span.start);
    let end = next_line(text, last.span.end);
    let before = &text[..start];
    let ends_open = end == text.len() && !text.ends_with('\n');
    let after_blank = before == newline || before.ends_with(&newline.repeat(2));
    let before_blank = end == text.len() || text[end..].starts_with(newline);
    let back = match (ends_open, after_blank && before_blank) {
        (true, true) => 2 * newline.len(),
        (true, false) if start > 0 => newline.len(),
        (false, true) => newline.len(),
        _ => 0,
    };
    Edit::delete(start - back.min(start)..end)
}

fn remove_inline(
    text: &str,
    statements: &[Statement],
    slot: Slot<'_>,
    name: &str,
) -> Option<Removal> {
    statements.iter().find_map(|statement| {
        let rest = slot.key.strip_prefix(statement.key.as_slice())?;
        let reached = statement.value.as_ref()?.reach(rest);
        let index = reached
            .node
            .position(name)
            .filter(|_| reached.depth == rest.len())?;
        let flow = flow_of(text, reached.node, Comments::Hash);
        let raw = text[flow.items[index].clone()].to_owned();
        Some(Removal {
            edits: flow.remove(index),
            raw,
        })
    })
}
