//! Definitions of commands.

#[cfg(unix)]
mod programs;

use serde_json::{Value, json};

use super::{CommandDefinition, CommandTool};

fn define(command: &[&str]) -> CommandDefinition {
    CommandDefinition {
        command: command.iter().map(ToString::to_string).collect(),
        ..CommandDefinition::default()
    }
}

fn with_args(command: &[&str], args: &Value) -> CommandDefinition {
    CommandDefinition {
        args: Some(args.to_string()),
        ..define(command)
    }
}

fn tool(definition: &CommandDefinition) -> CommandTool {
    CommandTool::new("it", definition).unwrap()
}

#[track_caller]
fn check_words(definition: &CommandDefinition, arguments: &Value, expected: &[&str]) {
    let arguments = arguments.as_object().unwrap();
    let (words, _) = tool(definition).fill(arguments).unwrap();
    let words: Vec<String> = words.iter().map(|it| it.plain().unwrap()).collect();
    assert_eq!(words, expected, "{:?}", definition.command);
}

#[track_caller]
fn check_refused(definition: &CommandDefinition, arguments: &Value) {
    let filled = tool(definition).fill(arguments.as_object().unwrap());
    let why = filled.unwrap_err();
    assert!(why.contains("begins with `-`"), "{why}");
}

#[track_caller]
fn check_mistake(definition: &CommandDefinition, expected: &str) {
    let why = CommandTool::new("it", definition).unwrap_err();
    assert!(why.contains(expected), "{why}");
}

#[test]
fn placeholders_become_words_and_parts_of_words() {
    let rg = define(&["rg", "--json", "{pattern}", "{path?}"]);
    check_words(&rg, &json!({"pattern": "a b"}), &["--json", "a b"]);
    let both = json!({"pattern": "$(x) ' \"", "path": "src"});
    check_words(&rg, &both, &["--json", "$(x) ' \"", "src"]);
    let glob = define(&["rg", "--glob={glob?}", "-m{count?}", "--", "{paths...}"]);
    let given = json!({"glob": "*.rs", "count": 3, "paths": ["-a", "b"]});
    check_words(&glob, &given, &["--glob=*.rs", "-m3", "--", "-a", "b"]);
    check_words(&glob, &json!({"glob": null}), &["--"]);
    let literal = define(&["awk", "{ print $1 }", "{}", "{{.Names}}", "a{", ""]);
    let as_written = ["{ print $1 }", "{}", "{{.Names}}", "a{", ""];
    check_words(&literal, &json!({}), &as_written);
    let default = with_args(
        &["head", "--lines={n}"],
        &json!({"n": {"type": "integer", "default": 5}}),
    );
    check_words(&default, &json!({}), &["--lines=5"]);
    check_words(&default, &json!({"n": -3}), &["--lines=-3"]);
}

#[test]
fn a_value_is_no_option_unless_the_configuration_says_so() {
    let rg = define(&["rg", "{pattern}", "{paths...}"]);
    check_refused(&rg, &json!({"pattern": "--pre=sh"}));
    check_refused(&rg, &json!({"pattern": "-"}));
    check_refused(&rg, &json!({"pattern": "a", "paths": ["b", "-f"]}));
    check_refused(&define(&["ls", "{a}{b}"]), &json!({"a": "", "b": "-R"}));
    check_refused(&define(&["head", "{n}"]), &json!({"n": -1}));
    // A variable may be empty.
    check_refused(&define(&["ls", "${EMPTY:-}{a}"]), &json!({"a": "-R"}));
    let arguments = json!({"pattern": "-v", "paths": ["-x"]});
    check_words(
        &define(&["rg", "--", "{pattern}", "{paths...}"]),
        &arguments,
        &["--", "-v", "-x"],
    );
    let free = define(&["rg", "{-pattern}", "{-paths...}", "{-last?}"]);
    check_words(&free, &arguments, &["-v", "-x"]);
    let case = json!({"case": {"enum": ["-i", "-s"]}});
    let chosen = with_args(&["rg", "{case?}"], &case);
    check_words(&chosen, &json!({"case": "-i"}), &["-i"]);
    check_refused(&chosen, &json!({"case": "-f"}));
    let listed = with_args(&["rg", "{case...}"], &case);
    check_words(&listed, &json!({"case": ["-i", "-s"]}), &["-i", "-s"]);
}

#[test]
fn the_schema_follows_from_the_placeholders() {
    let definition = CommandDefinition {
        stdin: Some("{text?}".to_owned()),
        read_only: Some(true),
        title: Some("ripgrep".to_owned()),
        ..with_args(
            &["rg", "--max-count={count}", "{pattern}", "{paths...}"],
            &json!({
                "count": {"type": "integer", "default": 3},
                "paths": {"description": "Folders.", "minLength": 1},
            }),
        )
    };
    let expected = json!({
        "name": "it",
        "description": "Runs `rg --max-count={count} {pattern} {paths...}`.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "default": 3},
                "pattern": {"type": "string"},
                "paths": {
                    "type": "array",
                    "description": "Folders.",
                    "items": {"minLength": 1, "type": "string"},
                },
                "text": {"type": "string"},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
        "title": "ripgrep",
    });
    assert_eq!(tool(&definition).listed, expected);
}

#[test]
fn a_definition_that_cannot_work_is_a_mistake() {
    check_mistake(&define(&[]), "no program");
    check_mistake(
        &define(&["{program}"]),
        "the program cannot be a placeholder",
    );
    check_mistake(&define(&["rg", "--x={a...}"]), "must be a word by itself");
    check_mistake(&define(&["rg", "${X"]), "without a closing");
    let unused = with_args(&["rg", "{a}"], &json!({"b": "string"}));
    check_mistake(&unused, "`args.b`: there is no `{b}`");
    let unknown = with_args(&["rg", "{a}"], &json!({"a": "strin"}));
    check_mistake(&unknown, "`args.a`: the type is none of `string`");
    let invalid = with_args(&["rg", "{a}"], &json!({"a": {"pattern": "("}}));
    check_mistake(&invalid, "no valid JSON schema");
    let name = CommandTool::new("a/b", &define(&["rg"])).unwrap_err();
    assert!(name.contains("letters, digits"), "{name}");
}
