//! TypeScript declarations of tools, for authors of scripts.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{schema::resolve_pointer, tool::Tool};

/// The deepest nesting of types; deeper ones are `unknown`.
const DEPTH_MAX: usize = 8;

/// The most members of a type, and the most types of a union; the others are omitted.
const MEMBERS_MAX: usize = 200;

/// The longest doc comment, in characters.
const COMMENT_CHARS_MAX: usize = 600;

/// Declares a server as an object whose members are its tools: as a member of `tools` under each of its
/// `names`, and as a global under those of `globals` that are identifiers. Each tool is given with the
/// input schema that its callers see.
pub fn declare_server<'a>(
    server: &str,
    names: &[&str],
    globals: &[&str],
    tools: impl IntoIterator<Item = (&'a Tool, Cow<'a, str>)>,
) -> String {
    let mut out = String::new();
    let members: String = tools.into_iter().map(declare_tool).collect();
    let interface = format!("Server_{}", server.replace('-', "_"));
    out.push_str("// Called<T>: await gives T, its structuredContent; any: that or its text, parsed if it is JSON.\n");
    out.push_str(&format!("interface {interface} {{\n{members}}}\n"));
    for global in globals.iter().filter(|name| is_identifier(name)) {
        out.push_str(&format!("declare const {global}: {interface};\n"));
    }
    let members = names.iter().map(|name| format!("{name:?}: {interface}"));
    let members = members.collect::<Vec<_>>().join("; ");
    out.push_str(&format!("interface Tools {{ {members} }}\n"));
    out
}

/// Returns the declarations that every script has in addition to the servers' tools. A server takes the
/// names `fs` and `tools.list`.
pub fn declare_globals(has_server: impl Fn(&str) -> bool) -> String {
    let lines = SCRIPT_GLOBALS.lines().filter(|line| {
        let is_taken = |name: &str, start: &str| line.starts_with(start) && has_server(name);
        !is_taken("fs", "declare const fs:") && !is_taken("list", "interface Tools { list(")
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

const SCRIPT_GLOBALS: &str = "\
interface ToolError extends Error { code: string; server: string; tool: string; text: string }
/** A tool's value: its structuredContent, else its text, parsed if it is JSON; `.raw` is the whole result. */
interface Called<T> extends PromiseLike<T> { readonly raw: Promise<unknown> }
interface Tools {}
declare const tools: Tools;
declare const args: any;
declare function search(query: string): Promise<{ name: string; signature: string; description: string }[]>;
declare function describe(name: string): Promise<string>;
declare function help(): string;
declare function help(name: string): Promise<{
  name: string; description: string; input_schema: any; output_schema: any;
  example: { tool_name: string; tool_input: any } | null;
}>;
declare function print(...values: unknown[]): void;
declare function sleep(ms: number): Promise<void>;
interface Stream<Piece, All> extends PromiseLike<All>, AsyncIterable<Piece> {}
declare function result(handle: string): AsyncIterable<string> & {
  lines(offset?: number, limit?: number): Stream<string, string[]>; chunks(): Stream<string, string[]>;
  text(): PromiseLike<string>; json(): PromiseLike<any>;
  jq(filter: string): Promise<any>; grep(pattern: string): Promise<string>;
  bytes(offset?: number, limit?: number): Promise<string>; part(part: number): Promise<string>;
};
declare const workspace: {
  read(path: string): Promise<string>; write(path: string, text: string): Promise<null>;
  append(path: string, text: string): Promise<null>; remove(path: string): Promise<null>;
  list(path?: string): Promise<{ path: string; bytes: number }[]>; exists(path: string): Promise<boolean>;
  readJSON(path: string): Promise<any>; writeJSON(path: string, value: unknown): Promise<null>;
};
declare const fs: { readFile(path: string, encoding?: \"utf8\"): Promise<string>; writeFile(path: string, text: string): Promise<null> };
interface Tools { list(server?: string): Promise<{ name: string; signature: string; description: string }[]> }
";

fn declare_tool((tool, input): (&Tool, Cow<'_, str>)) -> String {
    let input: Value = serde_json::from_str(&input).unwrap_or_default();
    let output = tool.output_schema();
    let output: Option<Value> = output.and_then(|schema| serde_json::from_str(schema).ok());
    let output = output.map_or_else(|| "any".to_owned(), |schema| print_type(&schema));
    let has_required = input
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| !names.is_empty());
    let optional = if has_required { "" } else { "?" };
    format!(
        "{}  {}(input{optional}: {}): Called<{output}>;\n",
        comment(&tool.description(), "  "),
        key(tool.name()),
        print_type(&input),
    )
}

fn print_type(root: &Value) -> String {
    TypePrinter { root }.text(root, 0, 1)
}

/// Prints the types of a schema. References are resolved in `root`.
struct TypePrinter<'a> {
    root: &'a Value,
}

impl TypePrinter<'_> {
    fn text(&self, schema: &Value, depth: usize, level: usize) -> String {
        let Some(schema) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
            return "unknown".to_owned();
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let found = reference.strip_prefix('#');
            let found = found.and_then(|place| resolve_pointer(self.root, place));
            return found.map_or_else(
                || "unknown".to_owned(),
                |it| self.text(it, depth + 1, level),
            );
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return union(values.iter().map(Value::to_string));
        }
        for (word, sign) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(of) = schema.get(word).and_then(Value::as_array) {
                let parts: Vec<String> = of
                    .iter()
                    .take(MEMBERS_MAX)
                    .map(|it| self.text(it, depth + 1, level))
                    .collect();
                return format!("({})", parts.join(sign));
            }
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                union(kinds.map(|kind| self.of_kind(kind, schema, depth, level)))
            }
            Some(Value::String(kind)) => self.of_kind(kind, schema, depth, level),
            _ if schema.contains_key("properties") => self.object(schema, depth, level),
            _ => "unknown".to_owned(),
        }
    }

    fn of_kind(
        &self,
        kind: &str,
        schema: &Map<String, Value>,
        depth: usize,
        level: usize,
    ) -> String {
        match kind {
            "integer" | "number" => "number".to_owned(),
            "string" | "boolean" | "null" => kind.to_owned(),
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                let items = self.text(items, depth + 1, level);
                if items.contains([' ', '|', '&']) && !items.starts_with('{') {
                    format!("({items})[]")
                } else {
                    format!("{items}[]")
                }
            }
            "object" => self.object(schema, depth, level),
            _ => "unknown".to_owned(),
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize, level: usize) -> String {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&none);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
        };
        let indent = "  ".repeat(level + 1);
        let mut members = String::new();
        for (name, of) in properties.iter().take(MEMBERS_MAX) {
            let said = of.get("description").and_then(Value::as_str);
            members.push_str(&comment(said.unwrap_or_default(), &indent));
            let optional = if is_required(name) { "" } else { "?" };
            let text = self.text(of, depth + 1, level + 1);
            members.push_str(&format!("{indent}{}{optional}: {text};\n", key(name)));
        }
        match schema.get("additionalProperties") {
            Some(of @ Value::Object(_)) => {
                let text = self.text(of, depth + 1, level + 1);
                members.push_str(&format!("{indent}[name: string]: {text};\n"));
            }
            Some(Value::Bool(false)) => {}
            _ if properties.is_empty() => return "{ [name: string]: unknown }".to_owned(),
            _ => {}
        }
        if members.is_empty() {
            return "{}".to_owned();
        }
        format!("{{\n{members}{}}}", "  ".repeat(level))
    }
}

fn union(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.take(MEMBERS_MAX).collect();
    if parts.is_empty() {
        return "never".to_owned();
    }
    parts.join(" | ")
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let is_first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    chars.next().is_some_and(is_first) && chars.all(|c| is_first(c) || c.is_ascii_digit())
}

fn key(name: &str) -> String {
    if is_identifier(name) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

/// Renders a doc comment. `*/` is split, so untrusted text cannot end the comment.
fn comment(text: &str, indent: &str) -> String {
    let text = printable::one_line_of(text, COMMENT_CHARS_MAX).replace("*/", "* /");
    if text.trim().is_empty() {
        return String::new();
    }
    format!("{indent}/** {} */\n", text.trim())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::declare_server;
    use crate::Tool;

    fn seen(tools: &[Tool]) -> impl Iterator<Item = (&Tool, Cow<'_, str>)> {
        tools.iter().map(|it| (it, it.input_schema()))
    }

    #[test]
    fn a_server_is_an_object_of_its_tools() {
        let tool = r##"{"name":"a.b","description":"Makes */ one.","inputSchema":{"type":"object",
            "properties":{"title":{"type":"string","description":"what it is called"},
            "state":{"enum":["open","closed"]},"labels":{"type":"array","items":{"type":["string","null"]}},
            "of":{"$ref":"#/$defs/of"},"any":{},"x-y":{"type":"integer"}},"required":["title"],
            "$defs":{"of":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],
            "additionalProperties":false}}},
            "outputSchema":{"type":"object","additionalProperties":{"type":"boolean"}}}"##;
        let plain = r#"{"name":"list","inputSchema":{"type":"object"}}"#;
        let tools = [tool, plain].map(|json| Tool::parse(json).unwrap());
        let expected = r#"// Called<T>: await gives T, its structuredContent; any: that or its text, parsed if it is JSON.
interface Server_git_hub {
  /** Makes * / one. */
  "a.b"(input: {
    /** what it is called */
    title: string;
    state?: "open" | "closed";
    labels?: (string | null)[];
    of?: {
      n: number;
    };
    any?: unknown;
    "x-y"?: number;
  }): Called<{
    [name: string]: boolean;
  }>;
  list(input?: { [name: string]: unknown }): Called<any>;
}
declare const gitHub: Server_git_hub;
declare const git_hub: Server_git_hub;
interface Tools { "git-hub": Server_git_hub; "gitHub": Server_git_hub; "git_hub": Server_git_hub }
"#;
        let names = ["git-hub", "gitHub", "git_hub"];
        assert_eq!(
            declare_server("git-hub", &names, &names[1..], seen(&tools)),
            expected
        );
    }

    #[test]
    fn a_type_that_holds_itself_ends() {
        let tool =
            r##"{"name":"t","inputSchema":{"type":"object","properties":{"next":{"$ref":"#"}}}}"##;
        let tools = [Tool::parse(tool).unwrap()];
        assert!(declare_server("s", &["s"], &["s"], seen(&tools)).contains("next?: unknown;"));
    }
}
