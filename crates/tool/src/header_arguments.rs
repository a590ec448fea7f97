//! Arguments that are also sent as HTTP headers (`x-mcp-header` in the schema, from 2026-07-28 on).

use serde_json::Value;

use crate::{Literal, Tool, schema::plain_text};

const MARK: &str = "x-mcp-header";

static MARKED: Literal = Literal::new(MARK);

impl Tool {
    /// Returns the headers of a call with these arguments: the names from the schema, with the argument
    /// values as text.
    pub fn header_arguments(&self, arguments: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        if MARKED.is_in(self.json())
            && let Ok(schema) = serde_json::from_str(&self.input_schema())
            && let Ok(arguments) = serde_json::from_str(arguments)
        {
            collect(&schema, &arguments, &mut found);
        }
        found
    }
}

/// Collects the headers of the arguments. The recursion is bounded, because the parser of both
/// values has a nesting limit.
fn collect(schema: &Value, arguments: &Value, found: &mut Vec<(String, String)>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let Some(value) = arguments.get(name) else {
            continue;
        };
        let header = property.get(MARK).and_then(Value::as_str);
        let header = header.filter(|header| !header.is_empty());
        let is_single = value.is_string() || value.is_boolean() || value.is_number();
        if let Some(header) = header.filter(|_| is_single) {
            found.push((header.to_owned(), plain_text(value)));
        }
        collect(property, value, found);
    }
}

#[cfg(test)]
mod tests {
    use crate::Tool;

    #[track_caller]
    fn check(arguments: &str, expected: &[(&str, &str)]) {
        let tool = r#"{"name": "t", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "plain": {"type": "string"},
            "empty": {"type": "string", "x-mcp-header": ""},
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
        check(
            r#"{"region": null, "count": [1], "in": 1, "empty": "x"}"#,
            &[],
        );
        check("[", &[]);
    }
}
