//! Example arguments that satisfy a schema.

mod text;

use serde_json::{Map, Value};

use crate::{
    Checker,
    schema::{Field, Node, Reading, Shape},
};

/// Generates example arguments for an input schema: the required ones, with the schema's own
/// examples and defaults if it has some.
///
/// They satisfy the schema; `None` if none were found, or that cannot be determined.
pub fn example(schema: &str) -> Option<Value> {
    let root: Value = serde_json::from_str(schema).ok()?;
    let checker = Checker::new(schema);
    if checker.is_blind() {
        return None;
    }
    let attempts = [
        (Scope::Telling, Trust::Given),
        (Scope::Required, Trust::Given),
        (Scope::Telling, Trust::Types),
        (Scope::Required, Trust::Types),
        (Scope::All, Trust::Given),
        (Scope::All, Trust::Types),
    ];
    let mut attempts = attempts.into_iter().map(|(scope, trust)| {
        let reading = Reading::new(&root);
        let attempt = Attempt { scope, trust };
        attempt.object(reading.root())
    });
    attempts.find(|example| checker.accepts(example))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The fields that are required, and a few of a nested object that requires none.
    Telling,
    Required,
    /// For schemas that ask for more than `required` says.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Examples and defaults are taken as given.
    Given,
    /// They were wrong: only types and limits count.
    Types,
}

#[derive(Debug, Clone, Copy)]
struct Attempt {
    scope: Scope,
    trust: Trust,
}

/// Optional fields that tell what an object is about.
const TELLING_FIELDS_MAX: usize = 2;
/// Items an example list is filled with at most.
const ITEMS_MAX: u64 = 8;

impl Attempt {
    fn object(self, node: Node<'_>) -> Value {
        let mut fields = node.fields();
        if self.scope != Scope::All {
            fields.retain(|field| field.required);
        }
        // Below the first level what is required will do.
        let scope = if self.scope == Scope::All {
            Scope::Required
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

    fn nested(self, node: Node<'_>) -> Value {
        let mut fields = node.fields();
        if self.scope == Scope::Telling && fields.iter().all(|field| !field.required) {
            fields.retain(|field| {
                matches!(Shape::of(field.node), Shape::Plain(_) | Shape::Literals(_))
            });
            fields.truncate(TELLING_FIELDS_MAX);
        } else {
            fields.retain(|field| field.required);
        }
        self.entries(fields)
    }

    fn value(self, name: &str, node: Node<'_>) -> Value {
        let given = || find_given(node).filter(|_| self.trust == Trust::Given);
        if let Some(value) = given() {
            return value.clone();
        }
        let shape = Shape::of(node);
        let node = meant(node);
        self.of_shape(name, node, &shape)
    }

    fn of_shape(self, name: &str, node: Node<'_>, shape: &Shape<'_>) -> Value {
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

    fn list(self, name: &str, node: Node<'_>) -> Value {
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

/// Makes equal items differ: by the enum they come from, else by a number.
fn vary(items: &mut [Value], node: Node<'_>) {
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

/// The longest value taken from a schema, as JSON, in bytes: references may offer it thousands of
/// times.
const GIVEN_BYTES_MAX: usize = 2_000;

/// The value that the schema itself offers.
fn find_given(node: Node<'_>) -> Option<&Value> {
    let examples = node.annotation("examples").and_then(Value::as_array);
    examples
        .and_then(|examples| examples.first())
        .or_else(|| node.annotation("example"))
        .or_else(|| node.annotation("default"))
        .filter(|value| !value.is_null() && value.as_str() != Some(""))
        .filter(|value| is_short(value))
}

fn is_short(value: &Value) -> bool {
    let mut room = GIVEN_BYTES_MAX;
    takes_up(value, &mut room).is_some()
}

/// Takes from the room what a value needs; `None` where that is more, found out without a look at
/// the rest.
fn takes_up(value: &Value, room: &mut usize) -> Option<()> {
    let mut take = |bytes: usize| {
        *room = room.checked_sub(bytes)?;
        Some(())
    };
    match value {
        Value::String(text) => take(text.len() + 2),
        Value::Array(items) => {
            take(2)?;
            items.iter().try_for_each(|item| takes_up(item, room))
        }
        Value::Object(members) => {
            take(2)?;
            members.iter().try_for_each(|(name, member)| {
                *room = room.checked_sub(name.len() + 4)?;
                takes_up(member, room)
            })
        }
        _ => take(1),
    }
}

/// The node with the limits: of alternatives the first that is not `null`.
fn meant(node: Node<'_>) -> Node<'_> {
    let node = node.resolve();
    if node.get("type").is_some() || node.get("properties").is_some() {
        return node;
    }
    let alternatives = node.alternatives().into_iter();
    let first = alternatives
        .map(Node::resolve)
        .find(|node| !Shape::of(*node).is_null());
    first.map_or(node, |first| {
        if first.is_spent() {
            first
        } else {
            meant(first)
        }
    })
}

fn integer(node: Node<'_>, name: &str) -> Value {
    let limit = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let step = limit("multipleOf")
        .filter(|step| *step >= 1.0)
        .unwrap_or(1.0);
    let value = within(node, usual_number(name), 1.0);
    let value = (value / step).ceil() * step;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an example; the checker has the last word"
    )]
    Value::from(value as i64)
}

fn number(node: Node<'_>, name: &str) -> Value {
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

/// The wish moved between the schema's limits, `step` away from those that exclude themselves.
fn within(node: Node<'_>, wish: f64, step: f64) -> f64 {
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
