//! The shape of a schema's values, short enough for a signature.

use printable::{is_hidden, seen_json};
use serde_json::Value;

use super::reader::{Field, SchemaNode};

/// A simplified type of the values that a schema accepts.
#[derive(Debug)]
pub(crate) enum Shape<'a> {
    Any,
    /// A schema that is nested deeper than the reader's limit.
    Cut,
    Plain(&'static str),
    Literals(Vec<&'a Value>),
    List(Box<Shape<'a>>),
    Object(Vec<Field<'a>>),
    Union(Vec<Shape<'a>>),
}

/// The level of detail in the text of a shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    pub(crate) literals_max: usize,
    /// The number of literals shown if there are more than `literals_max`.
    pub(crate) literals_shown: usize,
    pub(crate) literals_chars_max: usize,
    pub(crate) alternatives_max: usize,
    pub(crate) fields_max: usize,
}

impl Detail {
    /// The detail of `docs/interface.md`: enums up to eight values, one level of `{...}`.
    pub(crate) const FULL: Self = Self {
        literals_max: 8,
        literals_shown: 3,
        literals_chars_max: 100,
        alternatives_max: 4,
        fields_max: 6,
    };
    /// The detail of a signature that would be too long otherwise.
    pub(crate) const BRIEF: Self = Self {
        literals_max: 3,
        literals_shown: 2,
        literals_chars_max: 24,
        alternatives_max: 2,
        fields_max: 0,
    };
}

const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "null", "array", "object",
];

impl<'a> Shape<'a> {
    pub(crate) fn of(node: SchemaNode<'a>) -> Self {
        if node.is_spent() {
            return Self::Cut;
        }
        let node = node.resolve();
        if let Some(literals) = literals(node) {
            return Self::Literals(literals);
        }
        match node.get("type") {
            Some(Value::String(name)) => Self::of_type(node, name),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                Self::union(names.map(|name| Self::of_type(node, name)))
            }
            _ => Self::of_untyped(node),
        }
    }

    fn of_type(node: SchemaNode<'a>, name: &str) -> Self {
        match name {
            "array" => {
                let items = node.items().map_or(Self::Any, Self::of);
                Self::List(Box::new(items))
            }
            "object" => Self::Object(node.fields()),
            _ => {
                let known = TYPES.into_iter().find(|known| *known == name);
                known.map_or(Self::Any, Self::Plain)
            }
        }
    }

    fn of_untyped(node: SchemaNode<'a>) -> Self {
        if node.get("properties").is_some() {
            return Self::Object(node.fields());
        }
        let alternatives = node.alternatives();
        if !alternatives.is_empty() {
            return Self::union(alternatives.into_iter().map(Self::of));
        }
        let mut parts = node.parts("allOf").into_iter().map(Self::of);
        match parts.find(|part| !matches!(part, Self::Any)) {
            Some(Self::Object(_)) => Self::Object(node.fields()),
            Some(part) => part,
            None if node.get("items").is_some() => Self::of_type(node, "array"),
            None => Self::Any,
        }
    }

    /// Makes a flat union: nested unions are merged, literals are joined, `null` is last.
    fn union(shapes: impl Iterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        for shape in shapes {
            match shape {
                Self::Union(inner) => inner
                    .into_iter()
                    .for_each(|s| push_alternative(&mut flat, s)),
                other => push_alternative(&mut flat, other),
            }
        }
        flat.sort_by_key(Self::is_null);
        match flat.len() {
            0 => Self::Any,
            1 => flat.remove(0),
            _ => Self::Union(flat),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Plain("null"))
    }

    /// Removes `null`, which adds nothing to the type of an optional field.
    pub(crate) fn drop_null(self) -> Self {
        match self {
            Self::Union(shapes) => Self::union(shapes.into_iter().filter(|shape| !shape.is_null())),
            other => other,
        }
    }

    /// Returns every literal of the shape, its items and its alternatives.
    pub(crate) fn literals(&self) -> Vec<&'a Value> {
        match self {
            Self::Literals(values) => values.clone(),
            Self::List(items) => items.literals(),
            Self::Union(shapes) => shapes.iter().flat_map(Self::literals).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn text(&self, detail: Detail) -> String {
        match self {
            Self::Any => "any".to_owned(),
            Self::Cut => "…".to_owned(),
            Self::Plain(name) => (*name).to_owned(),
            Self::Literals(values) => literals_text(values, "|", detail),
            Self::List(items) => list_text(items, detail),
            Self::Object(fields) => object_text(fields, detail),
            Self::Union(shapes) => union_text(shapes, detail),
        }
    }
}

/// The literals that are listed in the time of one step of the reader.
const LITERALS_A_STEP: u32 = 16;
/// The most alternatives of a union: each is compared with those before it.
const ALTERNATIVES_MAX: usize = 256;

fn literals(node: SchemaNode<'_>) -> Option<Vec<&Value>> {
    if let Some(value) = node.get("const") {
        return Some(vec![value]);
    }
    let values = node.get("enum")?.as_array()?;
    node.spend(u32::try_from(values.len()).unwrap_or(u32::MAX) / LITERALS_A_STEP);
    (!values.is_empty()).then(|| values.iter().collect())
}

fn push_alternative<'a>(flat: &mut Vec<Shape<'a>>, shape: Shape<'a>) {
    if let Shape::Literals(values) = &shape
        && let Some(Shape::Literals(known)) =
            flat.iter_mut().find(|s| matches!(s, Shape::Literals(_)))
    {
        known.extend(values);
        return;
    }
    let repeats = |known: &Shape<'_>| match (known, &shape) {
        (Shape::Plain(known), Shape::Plain(new)) => known == new,
        (Shape::Any, Shape::Any) | (Shape::Cut, Shape::Cut) => true,
        _ => false,
    };
    if flat.len() < ALTERNATIVES_MAX && !flat.iter().any(repeats) {
        flat.push(shape);
    }
}

/// Joins literals as JSON, with `…` for omitted ones.
pub(crate) fn literals_text(values: &[&Value], between: &str, detail: Detail) -> String {
    let is_few = values.len() <= detail.literals_max;
    let shown = if is_few {
        values.len()
    } else {
        detail.literals_shown
    };
    let mut text = String::new();
    for (nth, value) in values.iter().enumerate() {
        let literal = value.to_string();
        let literal = seen_json(&literal);
        let chars = text.chars().count() + literal.chars().count();
        let fits = nth < shown && chars <= detail.literals_chars_max;
        if nth > 0 {
            text.push_str(between);
        }
        if !fits {
            text.push('…');
            break;
        }
        text.push_str(&literal);
    }
    text
}

fn list_text(items: &Shape<'_>, detail: Detail) -> String {
    let is_many = match items {
        Shape::Union(_) => true,
        Shape::Literals(values) => values.len() > 1,
        Shape::Any => return "array".to_owned(),
        _ => false,
    };
    let text = items.text(detail);
    if is_many {
        format!("({text})[]")
    } else {
        format!("{text}[]")
    }
}

fn object_text(fields: &[Field<'_>], detail: Detail) -> String {
    if fields.is_empty() {
        return "object".to_owned();
    }
    if detail.fields_max == 0 {
        return "{…}".to_owned();
    }
    let shown = fields.iter().take(detail.fields_max);
    // The fields of a nested object are not shown.
    let inside = Detail {
        fields_max: 0,
        ..detail
    };
    let mut parts: Vec<String> = shown.map(|field| field.text(inside)).collect();
    if fields.len() > detail.fields_max {
        parts.push("…".to_owned());
    }
    format!("{{{}}}", parts.join(", "))
}

fn union_text(shapes: &[Shape<'_>], detail: Detail) -> String {
    let mut parts: Vec<String> = Vec::new();
    for shape in shapes {
        let text = shape.text(detail);
        if parts.contains(&text) {
            continue;
        }
        if parts.len() == detail.alternatives_max {
            parts.push("…".to_owned());
            break;
        }
        parts.push(text);
    }
    parts.join("|")
}

/// The longest default that a signature shows, in characters.
const DEFAULT_CHARS_MAX: usize = 16;

impl Field<'_> {
    /// Renders the field as `name: type`, `name?: type` or `name?: type=default`.
    pub(crate) fn text(&self, detail: Detail) -> String {
        let name = name_text(self.name);
        let mark = if self.required { "" } else { "?" };
        format!("{name}{mark}: {}", self.type_text(detail))
    }

    /// Renders `type` or `type=default`.
    pub(crate) fn type_text(&self, detail: Detail) -> String {
        let shape = Shape::of(self.node);
        if self.required {
            return shape.text(detail);
        }
        let default = self.default_text().unwrap_or_default();
        format!("{}{default}", shape.drop_null().text(detail))
    }

    fn default_text(&self) -> Option<String> {
        let default = self.node.annotation("default")?;
        let is_scalar = default.is_boolean() || default.is_number() || default.is_string();
        let is_shown = is_scalar && default.as_str() != Some("");
        let text = is_shown.then(|| format!("={}", seen_json(&default.to_string())))?;
        (text.chars().count() <= DEFAULT_CHARS_MAX).then_some(text)
    }
}

/// Returns a property's name, quoted as JSON if it is not an identifier.
pub(crate) fn name_text(name: &str) -> String {
    let starts_well = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    let is_plain = |c: char| (c.is_alphanumeric() || c == '_' || c == '$') && !is_hidden(c);
    if starts_well && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        seen_json(&Value::from(name).to_string()).into_owned()
    }
}
