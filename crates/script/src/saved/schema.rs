//! Conversion of the TypeScript types of arguments to JSON Schema.

use serde_json::{Map, Value, json};
use tree_sitter::Node;

use super::comment::describe_before;
use crate::compile::{Unreadable, nodes, token};

/// The deepest nesting of types; it ends the conversion of a type that contains itself.
const DEPTH_MAX: usize = 24;

/// The types that a file declares, and their conversion.
pub(super) struct TypeConverter<'t, 's> {
    root: Node<'t>,
    text: &'s str,
}

type SchemaResult = Result<Value, Unreadable>;

impl<'t, 's> TypeConverter<'t, 's> {
    pub(super) fn new(root: Node<'t>, text: &'s str) -> Self {
        Self { root, text }
    }

    pub(super) fn schema(&self, node: Node<'t>) -> SchemaResult {
        self.read(node, 0)
    }

    fn read(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        if depth == DEPTH_MAX {
            return Err(Unreadable::at(
                node,
                self.text,
                "the type contains itself, or is nested too deeply",
            ));
        }
        let depth = depth + 1;
        match node.kind() {
            "predefined_type" => self.predefined(node),
            "literal_type" => Ok(json!({"const": self.literal(node)?})),
            "union_type" => self.union(node, depth),
            "object_type" | "interface_body" => self.object(node, depth),
            "array_type" => Ok(json!({"type": "array", "items": self.first(node, depth)?})),
            "tuple_type" => self.tuple(node, depth),
            "parenthesized_type" | "readonly_type" => self.first(node, depth),
            "generic_type" => self.generic(node, depth),
            "type_identifier" => self.named(node, depth),
            _ => Err(self.unknown(node)),
        }
    }

    fn first(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let inner = node.named_child(0).ok_or_else(|| self.unknown(node))?;
        self.read(inner, depth)
    }

    fn predefined(&self, node: Node<'t>) -> SchemaResult {
        match self.text_of(node) {
            name @ ("string" | "number" | "boolean" | "object") => Ok(json!({"type": name})),
            "any" | "unknown" => Ok(json!({})),
            _ => Err(self.unknown(node)),
        }
    }

    /// Converts a union; if all members are literals, to an `enum`.
    fn union(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let mut members = members_of_union(node);
        members.retain(|it| self.text_of(*it) != "undefined");
        if let [only] = members.as_slice() {
            return self.read(*only, depth);
        }
        if members.iter().all(|it| it.kind() == "literal_type") {
            let values = members.iter().map(|it| self.literal(*it));
            return Ok(json!({"enum": values.collect::<Result<Vec<_>, _>>()?}));
        }
        let each = members.iter().map(|it| self.read(*it, depth));
        Ok(json!({"anyOf": each.collect::<Result<Vec<_>, _>>()?}))
    }

    fn literal(&self, node: Node<'t>) -> SchemaResult {
        let inner = node.named_child(0).unwrap_or(node);
        let text = self.text_of(inner);
        if inner.kind() == "string" {
            return Ok(Value::from(self.string(inner)));
        }
        serde_json::from_str(text).map_err(|_| self.unknown(node))
    }

    fn string(&self, node: Node<'t>) -> String {
        let mut cursor = node.walk();
        let parts = node.named_children(&mut cursor);
        let read = |part: Node<'t>| match (part.kind(), self.text_of(part)) {
            ("escape_sequence", "\\n") => "\n",
            ("escape_sequence", "\\t") => "\t",
            ("escape_sequence", text) => text.trim_start_matches('\\'),
            (_, text) => text,
        };
        parts.map(read).collect()
    }

    fn object(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut others = Value::Bool(false);
        let mut cursor = node.walk();
        for member in node.named_children(&mut cursor) {
            match member.kind() {
                "comment" => {}
                "index_signature" => others = self.annotated(member, depth)?,
                "property_signature" => {
                    let name = member.child_by_field_name("name");
                    let name = name.ok_or_else(|| self.unknown(member))?;
                    let name = match name.kind() {
                        "string" => self.string(name),
                        "computed_property_name" => return Err(self.unknown(member)),
                        _ => self.text_of(name).to_owned(),
                    };
                    let mut schema = self.annotated(member, depth)?;
                    let said = describe_before(member, self.text);
                    if let Some(said) = said.filter(|it| !it.is_empty()) {
                        schema["description"] = Value::from(said);
                    }
                    if token(member, "?").is_none() && !self.may_be_undefined(member) {
                        required.push(name.clone());
                    }
                    properties.insert(name, schema);
                }
                _ => return Err(self.unknown(member)),
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema["additionalProperties"] = others;
        Ok(schema)
    }

    /// Converts the type after the `:`; a member without a type is any value.
    fn annotated(&self, member: Node<'t>, depth: usize) -> SchemaResult {
        match type_of(member) {
            Some(node) => self.read(node, depth),
            None => Ok(json!({})),
        }
    }

    fn may_be_undefined(&self, member: Node<'t>) -> bool {
        let members = type_of(member).map(members_of_union).unwrap_or_default();
        members.iter().any(|it| self.text_of(*it) == "undefined")
    }

    fn tuple(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let mut cursor = node.walk();
        let items = node.named_children(&mut cursor);
        let items: Vec<Value> = items
            .map(|item| self.read(item, depth))
            .collect::<Result<_, _>>()?;
        let count = items.len();
        Ok(json!({"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}))
    }

    fn generic(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let name = node.child_by_field_name("name").map(|it| self.text_of(it));
        let arguments = node.child_by_field_name("type_arguments");
        let argument = |at| arguments?.named_child(at);
        match (name.unwrap_or_default(), argument(0), argument(1)) {
            ("Array" | "ReadonlyArray", Some(item), None) => {
                Ok(json!({"type": "array", "items": self.read(item, depth)?}))
            }
            ("Record", Some(_), Some(value)) => {
                Ok(json!({"type": "object", "additionalProperties": self.read(value, depth)?}))
            }
            ("Readonly", Some(inner), None) => self.read(inner, depth),
            ("Partial", Some(inner), None) => {
                let mut schema = self.read(inner, depth)?;
                if let Some(schema) = schema.as_object_mut() {
                    schema.shift_remove("required");
                }
                Ok(schema)
            }
            _ => Err(self.unknown(node)),
        }
    }

    /// Converts an interface or a type of the same file.
    fn named(&self, node: Node<'t>, depth: usize) -> SchemaResult {
        let name = self.text_of(node);
        let is_it = |it: &Node<'t>| {
            let named = it.child_by_field_name("name");
            named.is_some_and(|named| self.text_of(named) == name)
        };
        let declared = nodes(self.root).filter(is_it).find(|it| {
            matches!(
                it.kind(),
                "interface_declaration" | "type_alias_declaration"
            )
        });
        let declared = declared.ok_or_else(|| {
            let why = format!("the type `{name}` is not declared in this file");
            Unreadable::at(node, self.text, &why)
        })?;
        let mut cursor = declared.walk();
        let mut children = declared.named_children(&mut cursor);
        let is_open = |it: Node<'t>| {
            matches!(
                it.kind(),
                "extends_type_clause" | "extends_clause" | "type_parameters"
            )
        };
        if let Some(open) = children.find(|it| is_open(*it)) {
            return Err(self.unknown(open));
        }
        let body = declared.child_by_field_name("body");
        let body = body.or_else(|| declared.child_by_field_name("value"));
        self.read(body.ok_or_else(|| self.unknown(declared))?, depth)
    }

    fn unknown(&self, node: Node<'t>) -> Unreadable {
        let shown = printable::one_line_of(self.text_of(node), 60);
        let why = format!(
            "`{shown}` is not supported in arguments; supported are string, number, boolean, any, \
             literals, unions, arrays, tuples, objects, Record, and types of the same file"
        );
        Unreadable::at(node, self.text, &why)
    }

    fn text_of(&self, node: Node<'t>) -> &'s str {
        &self.text[node.byte_range()]
    }
}

/// Returns the type after the `:` of a member or parameter.
pub(super) fn type_of(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("type")?.named_child(0)
}

/// Returns the members of a union: `a | b | c` is parsed as `(a | b) | c`. A type that is not a union
/// is its only member.
fn members_of_union(node: Node<'_>) -> Vec<Node<'_>> {
    let mut members = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if node.kind() == "union_type" {
            let mut cursor = node.walk();
            let inner: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            open.extend(inner.into_iter().rev().filter(|it| it.kind() != "comment"));
        } else {
            members.push(node);
        }
    }
    members
}
