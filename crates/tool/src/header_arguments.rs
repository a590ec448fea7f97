//! Arguments that are also sent as HTTP headers (`x-mcp-header` in the schema, from 2026-07-28 on).

use serde_json::{Map, Value};

use crate::{Literal, Tool, schema::plain_text};

const MARK: &str = "x-mcp-header";

static MARKED: Literal = Literal::new(MARK);

/// The types that a marked argument may have. The specification leaves out `number`; the conformance suite
/// marks numbers and expects their headers.
const TYPES: [&str; 4] = ["string", "integer", "boolean", "number"];

/// Keywords that hold a schema, or a list of schemas, of another value than a named argument.
const SCHEMA_KEYWORDS: [&str; 16] = [
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords that hold schemas by name, beside `properties`.
pub(crate) const MAP_KEYWORDS: [&str; 5] = [
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// An argument that is sent as a header too.
#[derive(Debug)]
struct HeaderArgument {
    /// The names of the properties that lead to it.
    path: Vec<String>,
    header: String,
}

impl Tool {
    /// Returns the headers of a call with these arguments: the names from the schema, with the argument
    /// values as text. None if a mark is invalid.
    pub fn header_arguments(&self, arguments: &str) -> Vec<(String, String)> {
        let Ok(marked) = self.find_header_arguments() else {
            return Vec::new();
        };
        let arguments: Value = match serde_json::from_str(arguments) {
            Ok(arguments) if !marked.is_empty() => arguments,
            _ => return Vec::new(),
        };
        let headers = marked
            .into_iter()
            .filter_map(|HeaderArgument { path, header }| {
                let mut names = path.iter();
                let value = names.try_fold(&arguments, |value, name| value.get(name))?;
                let is_single = value.is_string() || value.is_boolean() || value.is_number();
                is_single.then(|| (header, plain_text(value)))
            });
        headers.collect()
    }

    /// Checks the marks of arguments that are sent as headers. The error says what is wrong with one: over
    /// streamable HTTP, from 2026-07-28 on, a client leaves such a tool out (server/tools,
    /// `x-mcp-header`).
    pub fn check_header_arguments(&self) -> Result<(), String> {
        self.find_header_arguments().map(drop)
    }

    fn find_header_arguments(&self) -> Result<Vec<HeaderArgument>, String> {
        let mut found = Vec::new();
        if MARKED.is_in(self.json())
            && let Ok(schema) = serde_json::from_str::<Value>(&self.input_schema())
        {
            find(&schema, Some(&mut Vec::new()), &mut found)?;
        }
        Ok(found)
    }
}

/// Adds the marked properties of a schema. `path` leads to its value; it is none for a value that has no
/// path of names, such as an item of a list. The recursion is bounded, because the parser has a nesting
/// limit.
fn find(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return Ok(());
    };
    if let Some(mark) = keywords.get(MARK) {
        let path = path.as_deref().filter(|path| !path.is_empty());
        let Some(path) = path else {
            return Err(format!("`{MARK}` stands at no property of the arguments"));
        };
        let header =
            read_mark(mark, keywords).map_err(|why| format!("`{}`: {why}", path.join(".")))?;
        if found
            .iter()
            .any(|other| other.header.eq_ignore_ascii_case(header))
        {
            return Err(format!("`{MARK}` has {header:?} twice"));
        }
        found.push(HeaderArgument {
            path: path.clone(),
            header: header.to_owned(),
        });
    }
    for (keyword, value) in keywords {
        if keyword == "properties" {
            for (name, property) in value.as_object().into_iter().flatten() {
                if let Some(path) = path.as_deref_mut() {
                    path.push(name.clone());
                }
                find(property, path.as_deref_mut(), found)?;
                if let Some(path) = path.as_deref_mut() {
                    path.pop();
                }
            }
        } else if SCHEMA_KEYWORDS.contains(&keyword.as_str()) {
            find(value, None, found)?;
            for part in value.as_array().into_iter().flatten() {
                find(part, None, found)?;
            }
        } else if MAP_KEYWORDS.contains(&keyword.as_str()) {
            for part in value.as_object().into_iter().flat_map(Map::values) {
                find(part, None, found)?;
            }
        }
    }
    Ok(())
}

/// Returns the name of the header. A property without a type passes: its value decides.
fn read_mark<'s>(mark: &'s Value, keywords: &Map<String, Value>) -> Result<&'s str, String> {
    let header = mark
        .as_str()
        .ok_or_else(|| format!("`{MARK}` is no text"))?;
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.is_empty() || !header.bytes().all(is_of_token) {
        let shown = printable::one_line_of(header, HEADER_CHARS_SHOWN_MAX);
        return Err(format!(
            "`{MARK}` is {shown:?}, which is no name of a header"
        ));
    }
    let is_fit = match keywords.get("type") {
        None => true,
        Some(Value::Array(types)) => {
            let mut types = types.iter().filter(|name| *name != "null").peekable();
            types.peek().is_some() && types.all(is_single)
        }
        Some(name) => is_single(name),
    };
    if is_fit {
        return Ok(header);
    }
    Err(format!(
        "`{MARK}` stands at a property that is no text, number or boolean"
    ))
}

fn is_single(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

/// The longest part of an invalid name in an error, in characters.
const HEADER_CHARS_SHOWN_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Tool;

    #[track_caller]
    fn check(arguments: &str, expected: &[(&str, &str)]) {
        let tool = r#"{"name": "t", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "plain": {"type": "string"},
            "in": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}}
        }}}"#;
        let found = Tool::parse(tool).unwrap().header_arguments(arguments);
        let found: Vec<_> = found
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(found, expected, "{arguments}");
    }

    #[test]
    fn marked_arguments_that_are_single_values_become_headers() {
        check(r#"{"region": "eu", "plain": "x"}"#, &[("Region", "eu")]);
        check(
            r#"{"count": 3, "in": {"dry": true}}"#,
            &[("Count", "3"), ("Dry", "true")],
        );
        check(r#"{"region": null, "count": [1], "in": 1}"#, &[]);
        check("[", &[]);
    }

    fn tool(schema: &Value) -> Tool {
        let tool = json!({"name": "t", "inputSchema": schema});
        Tool::parse(&tool.to_string()).unwrap()
    }

    #[test]
    fn a_valid_mark_is_at_a_property_of_a_single_value() {
        for property in [
            json!({"type": "string", "x-mcp-header": "Region"}),
            json!({"type": "number", "x-mcp-header": "Region"}),
            json!({"type": ["boolean", "null"], "x-mcp-header": "x_1.2~!"}),
            json!({"enum": ["a"], "x-mcp-header": "Region"}),
            json!({"type": "object", "properties": {"x-mcp-header": {"type": "string"}}}),
            json!({"type": "object", "properties": {"b": {"type": "string", "x-mcp-header": "B"}}}),
            json!({"type": "string", "default": {"x-mcp-header": ""}}),
        ] {
            let schema = json!({"properties": {"a": property}});
            assert_eq!(tool(&schema).check_header_arguments(), Ok(()), "{schema}");
        }
    }

    #[test]
    fn an_invalid_mark_has_a_reason_and_makes_no_header() {
        let marked = |kind: &str, header: Value| json!({"properties": {"a": {"type": kind, "x-mcp-header": header}}});
        let text = json!({"type": "string", "x-mcp-header": "A"});
        let two = |other: &str| {
            let other = json!({"type": "string", "x-mcp-header": other});
            json!({"properties": {"a": text, "b": {"properties": {"c": other}}}})
        };
        let names = [
            "",
            "My Region",
            "A:B",
            "Région",
            "A\t1",
            "A\r\nB: c",
            "a/b",
            "\u{212a}",
        ];
        let mut invalid: Vec<Value> = names.map(|name| marked("string", json!(name))).into();
        invalid.extend(["object", "array", "null", "x"].map(|kind| marked(kind, json!("A"))));
        invalid.extend([json!(1), json!(null), json!(["A"])].map(|mark| marked("string", mark)));
        invalid.extend(["A", "a"].map(two));
        invalid.extend([
            json!({"properties": {"a": {"type": ["null"], "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": ["string", "object"], "x-mcp-header": "A"}}}),
            json!({"type": "object", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "array", "items": text}}}),
            json!({"properties": {"a": {"type": "array", "items": {"properties": {"b": text}}}}}),
            json!({"additionalProperties": text}),
            json!({"anyOf": [{"properties": {"a": text}}]}),
            json!({"not": text}),
            json!({"then": text}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": text}}),
            json!({"definitions": {"a": text}}),
            json!({"patternProperties": {"^a": text}}),
        ]);
        for schema in invalid {
            let tool = tool(&schema);
            assert!(tool.check_header_arguments().is_err(), "{schema}");
            let headers = tool.header_arguments(r#"{"a": "x"}"#);
            assert!(headers.is_empty(), "{schema}");
        }
    }
}
