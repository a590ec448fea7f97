use serde_json::{Value, json};

use super::Interface;

#[track_caller]
fn schema(text: &str) -> Value {
    Interface::read(text)
        .expect("the script can be parsed")
        .input_schema
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
    let read = Interface::read(text).expect("the script can be parsed");
    assert_eq!(read.description, "Close stale issues.\n\nAsks nobody.");
    let hints = (read.is_read_only, read.is_destructive, read.is_idempotent);
    assert_eq!(hints, (false, true, false));
    let read = Interface::read("/** Count.\n @readOnly @idempotent\n @idempotent */\n1 + 1");
    let read = read.expect("the script can be parsed");
    assert_eq!(read.description, "Count.");
    assert!(read.is_read_only && read.is_idempotent && !read.is_destructive);
}

/// Checks the description, and the tags as `r`, `d`, `i`.
#[track_caller]
fn says(text: &str, description: &str, tags: &str) {
    let read = Interface::read(text).expect(text);
    let letters = [
        (read.is_read_only, "r"),
        (read.is_destructive, "d"),
        (read.is_idempotent, "i"),
    ];
    let set: String = letters.iter().filter(|it| it.0).map(|it| it.1).collect();
    assert_eq!((&*read.description, &*set), (description, tags), "{text}");
}

#[test]
fn tags_are_read_in_comments_of_every_shape() {
    let main = "\nexport async function main() {}";
    says(&format!("/** Reads. @readOnly */{main}"), "Reads.", "r");
    says(&format!("/** @readOnly Reads. */{main}"), "Reads.", "r");
    says(
        &format!("/** Reads @readOnly @idempotent */{main}"),
        "Reads",
        "ri",
    );
    says(
        &format!("/**\n * Closes. @destructive, @idempotent\n * @returns none\n */{main}"),
        "Closes.",
        "di",
    );
    says(
        &format!("/**\n * Reads.\n * @readOnly as it only counts\n */{main}"),
        "Reads.",
        "r",
    );
    says(&format!("// @readOnly{main}"), "", "r");
    says(&format!("/* @destructive: it wipes */{main}"), "", "d");
    says(&format!("/** Reads. */\n// @readOnly{main}"), "Reads.", "r");
    says(
        &format!("/** Reads. (`@readOnly`) **@idempotent** */{main}"),
        "Reads.",
        "ri",
    );
    says(
        &format!("/**\r\n * Reads.\r\n * @readOnly\r\n */{main}"),
        "Reads.",
        "r",
    );
    says(
        &format!("/** Re\u{200b}ads. @read\u{200b}Only */{main}"),
        "Reads.",
        "r",
    );
    says(
        "/** Reads.\n@idempotent */\nawait github.list()",
        "Reads.",
        "i",
    );
    // A restrictive tag counts anywhere in the file.
    says("function main() {\n  // @readOnly\n}", "", "r");
    says(
        "const a = 1; // not @destructive?\nfunction main() {}",
        "",
        "d",
    );
    // Other tags, addresses and packages are not tags of a saved script.
    says(
        "/** Mails a@readOnly.com with @types/node, see {@link x}.\n * @param a b */\nfunction main() {}",
        "Mails a@readOnly.com with @types/node, see {@link x}.",
        "",
    );
    says(
        "const a = '/* @destructive */';\nfunction main() {}",
        "",
        "",
    );
}

#[test]
fn a_doubtful_tag_refuses_the_file() {
    let refuses = |comment: &str, why: &str| {
        is_refused(&format!("{comment}\nfunction main() {{}}"), why);
    };
    for name in [
        "readonly",
        "ReadOnly",
        "read-only",
        "READ_ONLY",
        "readOny",
        "readOnlyHint",
    ] {
        let why = format!("line 2: `@{name}` is not a tag; did you mean `@readOnly`?");
        refuses(&format!("/** Reads.\n * @{name} */"), &why);
        refuses(&format!("//\n// @{name}"), &why);
    }
    refuses("/** Wipes. @destructve */", "did you mean `@destructive`?");
    refuses("/** @idempotant */", "did you mean `@idempotent`?");
    refuses("/** @readOnly false */", "`@readOnly` takes no value");
    refuses("/** @idempotent: no */", "`@idempotent` takes no value");
    // A sentence, or a comment on something else, does not allow a call to be repeated.
    refuses("/** Never @idempotent */", "is not used as a tag here");
    refuses(
        "/** @idempotent */\nfunction other() {}",
        "is not used as a tag here",
    );
}

#[test]
fn what_cannot_be_understood_is_told_with_its_line() {
    is_refused(
        "const a = 1;\nfunction main(",
        "line 2, column 1: this is not valid TypeScript",
    );
    is_refused(
        "function main(\n args: { when: Date }) {}",
        "line 2, column 16: the type `Date` is not declared in this file",
    );
    is_refused(
        "function main(a: { x: () => void }) {}",
        "`() => void` is not supported in arguments",
    );
    is_refused("function main(a: string) {}", "`main` must take an object");
    is_refused("function main(a: {}, b: {}) {}", "`main` takes one object");
    is_refused(
        "interface A { a: A }\nfunction main(a: A) {}",
        "contains itself",
    );
    is_refused("enum A { B }\nfunction main() {}", "as const");
    is_refused(
        "interface A extends B { a: string }\nfunction main(a: A) {}",
        "is not supported in arguments",
    );
}
