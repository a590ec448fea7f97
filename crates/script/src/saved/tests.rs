use serde_json::{Value, json};

use super::Interface;

#[track_caller]
fn schema(text: &str) -> Value {
    Interface::read(text).expect("it can be read").input_schema
}

#[track_caller]
fn takes(arguments: &str, properties: &Value, required: &Value) {
    let text = format!("export async function main(args: {{ {arguments} }}) {{ return 1 }}");
    let schema = schema(&text);
    assert_eq!(schema["properties"], *properties, "{arguments}");
    assert_eq!(schema["required"], *required, "{arguments}");
    assert_eq!(schema["additionalProperties"], json!(false), "{arguments}");
}

#[track_caller]
fn is_refused(text: &str, expected: &str) {
    let why = Interface::read(text).expect_err(text);
    assert!(why.contains(expected), "{text}: {why}");
}

#[test]
fn arguments_are_the_schema() {
    takes(
        "a: string; b?: number, c: boolean[]",
        &json!({"a": {"type": "string"}, "b": {"type": "number"},
            "c": {"type": "array", "items": {"type": "boolean"}}}),
        &json!(["a", "c"]),
    );
    takes(
        r#"state: "open" | 'closed' | 3 | null; "odd-name"?: Array<string> | undefined; u: string | number | undefined"#,
        &json!({"state": {"enum": ["open", "closed", 3, null]},
            "odd-name": {"type": "array", "items": {"type": "string"}},
            "u": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
        &json!(["state"]),
    );
    takes(
        "o: { readonly x: Record<string, number>; [key: string]: unknown }; t: [string, number]; \
         r: readonly ('a' | 'b')[]",
        &json!({
            "o": {"type": "object", "required": ["x"], "additionalProperties": {}, "properties": {
                "x": {"type": "object", "additionalProperties": {"type": "number"}}}},
            "t": {"type": "array", "minItems": 2, "maxItems": 2,
                "prefixItems": [{"type": "string"}, {"type": "number"}]},
            "r": {"type": "array", "items": {"enum": ["a", "b"]}}}),
        &json!(["o", "t", "r"]),
    );
    takes(
        "/** Who\n * writes. */ a: string;\n /** How many. */\n b?: 1 | 2",
        &json!({"a": {"type": "string", "description": "Who\nwrites."},
            "b": {"enum": [1, 2], "description": "How many."}}),
        &json!(["a"]),
    );
}

#[test]
fn main_is_found_however_it_is_written() {
    let expected = json!({"n": {"type": "number"}});
    for text in [
        "async function main({ n = 3 }: { n?: number } = {}) {}",
        "const main = async (args: { n?: number }) => args.n",
        "export default async function main(args: Partial<Args>) {}\ninterface Args { n: number }",
        "export default async (args: Args) => args.n\ntype Args = { n?: number }",
        "export default function (args: Readonly<{ n?: number }>) { return args.n }",
    ] {
        assert_eq!(schema(text)["properties"], expected, "{text}");
    }
    let any = json!({"type": "object"});
    for text in [
        "export async function main(args) { return args }",
        "const main = args => args",
        "export function main(args: any) {}",
    ] {
        assert_eq!(schema(text), any, "{text}");
    }
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(schema("await github.list()"), nothing);
    assert_eq!(schema("function main() {}"), nothing);
}

#[test]
fn its_comment_describes_it_and_tags_are_its_hints() {
    let text = "/** Of helpers. */\nconst help = 1;\n/**\n * Close stale issues.\n *\n * Asks nobody.\n * @destructive\n * @param args none\n */\nexport async function main() {}";
    let read = Interface::read(text).expect("it can be read");
    assert_eq!(read.description, "Close stale issues.\n\nAsks nobody.");
    let hints = (read.is_read_only, read.is_destructive, read.is_idempotent);
    assert_eq!(hints, (false, true, false));
    let read = Interface::read("/** Count.\n @readOnly @idempotent\n @idempotent */\n1 + 1");
    let read = read.expect("it can be read");
    assert_eq!(read.description, "Count.");
    assert!(read.is_read_only && read.is_idempotent && !read.is_destructive);
}

#[test]
fn what_cannot_be_understood_is_told_with_its_line() {
    is_refused(
        "const a = 1;\nfunction main(",
        "line 2: this is no TypeScript",
    );
    is_refused(
        "function main(\n args: { when: Date }) {}",
        "line 2: the type `Date` is not declared in this file",
    );
    is_refused(
        "function main(a: { x: () => void }) {}",
        "`() => void` cannot be told",
    );
    is_refused("function main(a: string) {}", "`main` takes an object");
    is_refused("function main(a: {}, b: {}) {}", "`main` takes one object");
    is_refused(
        "interface A { a: A }\nfunction main(a: A) {}",
        "holds itself",
    );
    is_refused("enum A { B }\nfunction main() {}", "as const");
    is_refused(
        "interface A extends B { a: string }\nfunction main(a: A) {}",
        "cannot be told",
    );
}
