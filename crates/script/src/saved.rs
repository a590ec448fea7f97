//! The interface of a saved script as a tool, read from its text without running it.

mod comment;
mod schema;
mod tag;

use serde_json::{Value, json};
use tree_sitter::Node;

use self::{
    comment::{describe_before, describe_first},
    schema::{TypeConverter, type_of},
    tag::{Tag, read_tags},
};
use crate::compile::{Unreadable, first_error, main_of, parse, refuse_unsupported};

/// The interface of a saved script as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The comment of `main`, else the first comment of the file; empty if there is none.
    pub description: String,
    /// The JSON Schema of the one object that `main` accepts.
    pub input_schema: Value,
    /// `@readOnly`: the script may only call tools that are read-only themselves.
    pub is_read_only: bool,
    /// `@destructive`.
    pub is_destructive: bool,
    /// `@idempotent`.
    pub is_idempotent: bool,
}

impl Interface {
    /// Reads the interface from TypeScript or JavaScript. The error holds the reason and the line.
    pub fn read(text: &str) -> Result<Self, String> {
        read(text).map_err(|Unreadable { text, place }| match place {
            Some(place) => format!("{place}: {text}"),
            None => text,
        })
    }
}

fn read(text: &str) -> Result<Interface, Unreadable> {
    let tree = parse(text)?;
    let root = tree.root_node();
    if let Some(error) = first_error(root) {
        return Err(Unreadable::at(error, text, "this is not valid TypeScript"));
    }
    refuse_unsupported(root, text)?;
    let mut cursor = root.walk();
    let mut statements = root.named_children(&mut cursor);
    let main = statements.find_map(|it| Some((it, main_of(it, text)?)));
    let tags = read_tags(root, main.map(|(statement, _)| statement), text)?;
    let description = main.and_then(|(statement, _)| describe_before(statement, text));
    let description = description.or_else(|| describe_first(root, text));
    Ok(Interface {
        input_schema: match main {
            Some((_, main)) => schema_of(main, root, text)?,
            None => nothing(),
        },
        description: description.unwrap_or_default(),
        is_read_only: tags.contains(&Tag::ReadOnly),
        is_destructive: tags.contains(&Tag::Destructive),
        is_idempotent: tags.contains(&Tag::Idempotent),
    })
}

/// Returns the schema of a script without parameters.
fn nothing() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// Returns the schema of the only parameter of `main`; without a type, it accepts any object.
fn schema_of(main: Node<'_>, root: Node<'_>, text: &str) -> Result<Value, Unreadable> {
    let function = main.child_by_field_name("value").unwrap_or(main);
    let Some(parameters) = function.child_by_field_name("parameters") else {
        let bare = function.child_by_field_name("parameter");
        return Ok(bare.map_or_else(nothing, |_| json!({"type": "object"})));
    };
    let mut cursor = parameters.walk();
    let given = parameters.named_children(&mut cursor);
    let mut given = given.filter(|it| it.kind() != "comment");
    let Some(parameter) = given.next() else {
        return Ok(nothing());
    };
    if let Some(more) = given.next() {
        let why = "`main` takes one object: `main(args: { name: string; count?: number })`";
        return Err(Unreadable::at(more, text, why));
    }
    let Some(annotated) = type_of(parameter) else {
        return Ok(json!({"type": "object"}));
    };
    let schema = TypeConverter::new(root, text).schema(annotated)?;
    let is_object = schema.get("type") == Some(&json!("object"));
    let is_any = schema.as_object().is_some_and(serde_json::Map::is_empty);
    match schema {
        _ if is_any => Ok(json!({"type": "object"})),
        schema if is_object => Ok(schema),
        _ => Err(Unreadable::at(
            annotated,
            text,
            "`main` must take an object, like every tool",
        )),
    }
}

#[cfg(test)]
mod tests;
