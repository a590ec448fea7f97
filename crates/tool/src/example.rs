//! Example arguments that satisfy a schema.

mod text;

use serde_json::{Map, Value};

use crate::{
    Checker,
    schema::{Field, SchemaNode, SchemaReader, Shape},
};

/// Generates example arguments for an input schema: the required ones, with the examples and defaults
/// of the schema if it has some.
///
/// Returns `None` if no generated arguments are known to satisfy the schema.
pub fn example(schema: &str) -> Option<Value> {
    let root: Value = serde_json::from_str(schema).ok()?;
    let checker = Checker::new(schema);
    if checker.is_blind() {
        return None;
    }
    let attempts = [
        (FieldScope::Illustrative, ValueSource::Schema),
        (FieldScope::Required, ValueSource::Schema),
        (FieldScope::Illustrative, ValueSource::Types),
        (FieldScope::Required, ValueSource::Types),
        (FieldScope::All, ValueSource::Schema),
        (FieldScope::All, ValueSource::Types),
    ];
    let mut attempts = attempts.into_iter().map(|(scope, source)| {
        let reader = SchemaReader::new(&root);
        let attempt = Attempt { scope, source };
        attempt.object(reader.root())
    });
    attempts.find(|example| checker.accepts(example))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldScope {
    /// The required fields, and a few fields of a nested object that requires none.
    Illustrative,
    Required,
    /// For schemas that need more fields than `required` lists.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueSource {
    /// The examples and defaults of the schema, else its types and limits.
    Schema,
    /// Types and limits alone, if the examples and defaults do not satisfy the schema.
    Types,
}

#[derive(Debug, Clone, Copy)]
struct Attempt {
    scope: FieldScope,
    source: ValueSource,
}

/// The most optional fields in an example of an object that requires none.
const OPTIONAL_FIELDS_MAX: usize = 2;
/// The most items of an example list.
const ITEMS_MAX: u64 = 8;

impl Attempt {
    fn object(self, node: SchemaNode<'_>) -> Value {
        let mut fields = node.fields();
        if self.scope != FieldScope::All {
            fields.retain(|field| field.required);
        }
        // Below the first level the required fields are enough.
        let scope = if self.scope == FieldScope::All {
            FieldScope::Required
        } else {
            self.scope
        };
        Self { scope, ..self }.entries(fields)
    }

    fn entries(self, fields: Vec<Field<'_>>) -> Value {
        let entries = fields.into_iter();
        let entries =
            entries.map(|field| (field.name.to_owned(), self.value(field.name, field.node)));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    fn nested(self, node: SchemaNode<'_>) -> Value {
        let mut fields = node.fields();
        if self.scope == FieldScope::Illustrative && fields.iter().all(|field| !field.required) {
            fields.retain(|field| {
                matches!(Shape::of(field.node), Shape::Plain(_) | Shape::Literals(_))
            });
            fields.truncate(OPTIONAL_FIELDS_MAX);
        } else {
            fields.retain(|field| field.required);
        }
        self.entries(fields)
    }

    fn value(self, name: &str, node: SchemaNode<'_>) -> Value {
        let of_schema = find_value(node).filter(|_| self.source == ValueSource::Schema);
        if let Some(value) = of_schema {
            return value.clone();
        }
        let shape = Shape::of(node);
        let node = choose_alternative(node);
        self.of_shape(name, node, &shape)
    }

    fn of_shape(self, name: &str, node: SchemaNode<'_>, shape: &Shape<'_>) -> Value {
        match shape {
            Shape::Literals(values) => {
                let mut values = values.iter().filter(|value| !value.is_null());
                let value = values.find(|value| is_short(value));
                value.map_or(Value::Null, |value| (*value).clone())
            }
            Shape::Plain("integer") => integer(node, name),
            Shape::Plain("number") => number(node, name),
            Shape::Plain("boolean") => Value::Bool(true),
            Shape::Plain("null") => Value::Null,
            Shape::Plain(_) | Shape::Any | Shape::Cut => Value::from(text::text(name, node)),
            Shape::List(_) => self.list(name, node),
            Shape::Object(_) => self.nested(node),
            Shape::Union(shapes) => {
                let first = shapes.iter().find(|shape| !shape.is_null());
                first.map_or(Value::Null, |shape| self.of_shape(name, node, shape))
            }
        }
    }

    fn list(self, name: &str, node: SchemaNode<'_>) -> Value {
        let limit = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
        let least = limit("minItems").unwrap_or(1);
        let count = least
            .max(1)
            .min(limit("maxItems").unwrap_or(ITEMS_MAX))
            .min(ITEMS_MAX);
        let first = node.parts("prefixItems");
        let one = name.strip_suffix('s').unwrap_or(name);
        let item = |nth: u64| {
            let at = usize::try_from(nth).ok();
            let own = at.and_then(|at| first.get(at)).copied();
            let item = own.or_else(|| node.items());
            item.map_or_else(|| Value::from(one), |item| self.value(one, item))
        };
        let mut items: Vec<Value> = (0..count).map(item).collect();
        if node.get("uniqueItems") == Some(&Value::Bool(true)) {
            vary(&mut items, node);
        }
        Value::Array(items)
    }
}

/// Makes equal items differ: by the values of their enum, else by a number.
fn vary(items: &mut [Value], node: SchemaNode<'_>) {
    let choices = node
        .items()
        .map(|item| Shape::of(item).literals())
        .unwrap_or_default();
    for (nth, item) in items.iter_mut().enumerate().skip(1) {
        *item = match &*item {
            _ if nth < choices.len() => choices[nth].clone(),
            Value::String(text) => Value::from(format!("{text} {}", nth + 1)),
            Value::Number(number) => number.as_i64().map_or(Value::Null, |number| {
                Value::from(number + i64::try_from(nth).unwrap_or(0))
            }),
            other => other.clone(),
        };
    }
}

/// The longest value taken from a schema, as JSON, in bytes: references may repeat it thousands of
/// times.
const VALUE_BYTES_MAX: usize = 2_000;

/// Returns the example or default of the schema.
fn find_value(node: SchemaNode<'_>) -> Option<&Value> {
    let examples = node.annotation("examples").and_then(Value::as_array);
    examples
        .and_then(|examples| examples.first())
        .or_else(|| node.annotation("example"))
        .or_else(|| node.annotation("default"))
        .filter(|value| !value.is_null() && value.as_str() != Some(""))
        .filter(|value| is_short(value))
}

fn is_short(value: &Value) -> bool {
    let mut room = VALUE_BYTES_MAX;
    subtract_size(value, &mut room).is_some()
}

/// Subtracts the size of a value from the room; stops with `None` as soon as the room is exceeded.
fn subtract_size(value: &Value, room: &mut usize) -> Option<()> {
    let mut take = |bytes: usize| {
        *room = room.checked_sub(bytes)?;
        Some(())
    };
    match value {
        Value::String(text) => take(text.len() + 2),
        Value::Array(items) => {
            take(2)?;
            items.iter().try_for_each(|item| subtract_size(item, room))
        }
        Value::Object(members) => {
            take(2)?;
            members.iter().try_for_each(|(name, member)| {
                *room = room.checked_sub(name.len() + 4)?;
                subtract_size(member, room)
            })
        }
        _ => take(1),
    }
}

/// Resolves a node to its first alternative that is not `null`, which has the limits.
fn choose_alternative(node: SchemaNode<'_>) -> SchemaNode<'_> {
    let node = node.resolve();
    if node.get("type").is_some() || node.get("properties").is_some() {
        return node;
    }
    let alternatives = node.alternatives().into_iter();
    let first = alternatives
        .map(SchemaNode::resolve)
        .find(|node| !Shape::of(*node).is_null());
    first.map_or(node, |first| {
        if first.is_spent() {
            first
        } else {
            choose_alternative(first)
        }
    })
}

fn integer(node: SchemaNode<'_>, name: &str) -> Value {
    let limit = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let step = limit("multipleOf")
        .filter(|step| *step >= 1.0)
        .unwrap_or(1.0);
    let value = within(node, usual_number(name), 1.0);
    let value = (value / step).ceil() * step;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an example, which is checked afterwards"
    )]
    Value::from(value as i64)
}

fn number(node: SchemaNode<'_>, name: &str) -> Value {
    let value = within(node, usual_number(name), 0.5);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers are cast"
    )]
    if value.fract() == 0.0 {
        return Value::from(value as i64);
    }
    Value::from(value)
}

/// Moves a number between the schema's limits, `step` away from exclusive ones.
fn within(node: SchemaNode<'_>, wish: f64, step: f64) -> f64 {
    let limit = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|limit| limit + step));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|limit| limit - step));
    wish.min(most.unwrap_or(f64::MAX))
        .max(least.unwrap_or(f64::MIN))
}

fn usual_number(name: &str) -> f64 {
    match name.to_lowercase().as_str() {
        "port" => 8080.0,
        "year" => 2026.0,
        "limit" | "count" | "max_results" | "maxresults" | "per_page" | "perpage" => 10.0,
        "width" => 800.0,
        "height" => 600.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests;
