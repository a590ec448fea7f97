//! Examples of edits.

use serde_json::json;

use super::{EditError, Format, Slot, edit, read, render_yaml};

/// Adds our entry to a text and removes another one.
#[track_caller]
fn check(format: Format, key: &str, text: &str, expected: &str) {
    let key: Vec<String> = key.split('/').map(str::to_owned).collect();
    let slot = Slot {
        key: &key,
        list: false,
    };
    let entry = json!({"command": "/bin/proxy", "args": ["serve"]});
    let added = edit(text, format, slot, "proxy", Some(&entry)).unwrap();
    assert_eq!(edit(&added, format, slot, "old", None).unwrap(), expected);
}

#[test]
fn json_keeps_what_it_is() {
    use Format::Json;
    check(
        Json,
        "mcpServers",
        "{\n  // mine\n  \"x\": 1, /* y */\n  \"mcpServers\": {\n    \"old\": { \"command\": \"a\" }, // gone\n    \"kept\": {\"command\": \"b\"} // stays\n  }\n}\n",
        "{\n  // mine\n  \"x\": 1, /* y */\n  \"mcpServers\": {\n    \"kept\": {\"command\": \"b\"}, // stays\n    \"proxy\": {\n      \"command\": \"/bin/proxy\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
    );
    check(
        Json,
        "mcpServers",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"old\": {},\r\n\t},\r\n}",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"proxy\": {\r\n\t\t\t\"command\": \"/bin/proxy\",\r\n\t\t\t\"args\": [\"serve\"],\r\n\t\t},\r\n\t},\r\n}",
    );
    check(
        Json,
        "a/b",
        "{\"z\":[],\"a\":{\"q\":1}}",
        "{\"z\":[],\"a\":{\n    \"q\":1,\n    \"b\": {\n      \"proxy\": {\n        \"command\": \"/bin/proxy\",\n        \"args\": [\"serve\"]\n      }\n    }\n  }}",
    );
}

#[test]
fn json_that_is_nearly_empty() {
    let filled = "{\n  \"s\": {\n    \"proxy\": {\n      \"command\": \"/bin/proxy\",\n      \"args\": [\"serve\"]\n    }\n  }\n}";
    check(Format::Json, "s", "{}", filled);
    check(Format::Json, "s", "{\n  \"s\": null\n}", filled);
    check(Format::Json, "s", "{\n  \"s\": {}\n}", filled);
    check(Format::Json, "s", "{\n  \"s\": {\n  }\n}", filled);
    check(
        Format::Json,
        "s",
        "\u{feff}{}",
        &format!("\u{feff}{filled}"),
    );
    let slot = Slot {
        key: &["s".to_owned()],
        list: false,
    };
    let entry = json!({"command": "/bin/proxy", "args": ["serve"]});
    for empty in ["", "null", " \n"] {
        let added = edit(empty, Format::Json, slot, "proxy", Some(&entry)).unwrap();
        assert_eq!(
            read(&added, Format::Json).unwrap(),
            json!({"s": {"proxy": entry}})
        );
    }
}

#[test]
fn toml_keeps_what_it_is() {
    check(
        Format::Toml,
        "mcp_servers",
        "# mine\nmodel = \"x\"\n\n[mcp_servers.old] # gone\ncommand = \"a\"\n\n[mcp_servers.old.env]\n# in it\nA = \"1\"\n\n# stays\n[tui]\na = 1\n",
        "# mine\nmodel = \"x\"\n\n[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]\n\n# stays\n[tui]\na = 1\n",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "mcp_servers = { old = { command = \"a\" }, b = { url = \"http://x\" } }\r\n",
        "mcp_servers = { b = { url = \"http://x\" } , proxy = { command = \"/bin/proxy\", args = [\"serve\"] } }\r\n",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "mcp_servers.old.command = \"a\"\nmcp_servers.old.args = [\n  \"x\", # y\n]\nmodel = 1",
        "model = 1\n\n[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "",
        "[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]\n",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "# mine\n\n# too",
        "# mine\n\n# too\n\n[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "a = 1\r\nb = \"\"\"\r\n# no\n\"\"\"\r\n\n# 1\n\n# 2\n[mcp_servers.old]\r\ncommand = \"x\"\r\n# 3\r\n[[x]]\r\n# 4\r\n[mcp_servers.old.env]\r\n",
        "a = 1\r\nb = \"\"\"\r\n# no\n\"\"\"\r\n\n# 1\n# 3\r\n[[x]]\r\n\r\n[mcp_servers.proxy]\r\ncommand = \"/bin/proxy\"\r\nargs = [\"serve\"]\r\n",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "# 1\n[mcp_servers.old]\ncommand = \"x\"\n# 2\n[mcp_servers.old.env]\n",
        "\n[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]\n",
    );
}

#[test]
fn yaml_is_read_and_its_lines_are_pasted() {
    let text = "# mine\na: &one\n  cmd: x\n  args: [1, yes, \"2\"]\nb: *one\nc: ~\n";
    let one = json!({"cmd": "x", "args": [1, "yes", "2"]});
    let whole = json!({"a": one, "b": one, "c": null});
    assert_eq!(read(text, Format::Yaml).unwrap(), whole);
    let bomb = (0..20).fold("a0: &a0 [x]\n".to_owned(), |text, at| {
        format!("{text}a{0}: &a{0} [*a{at}, *a{at}]\n", at + 1)
    });
    assert!(read(&bomb, Format::Yaml).is_err());

    let key = ["extensions".to_owned()];
    let slot = |list| Slot { key: &key, list };
    let entry = json!({"cmd": "/bin/my proxy", "args": ["serve"], "envs": {}});
    let lines = render_yaml(slot(false), "proxy", &entry);
    assert_eq!(
        lines,
        "extensions:\n  proxy:\n    cmd: \"/bin/my proxy\"\n    args: [\"serve\"]\n    envs: {}"
    );
    let pasted = read(&lines, Format::Yaml).unwrap();
    assert_eq!(pasted, json!({"extensions": {"proxy": entry}}));
    let lines = render_yaml(slot(true), "proxy", &entry);
    let pasted = read(&lines, Format::Yaml).unwrap();
    assert_eq!(pasted, json!({"extensions": [entry]}));
    let refused = edit("", Format::Yaml, slot(false), "proxy", Some(&entry));
    assert_eq!(refused, Err(EditError::Yaml));
}

#[test]
fn lists_with_names_are_edited_too() {
    let entry = json!({"name": "proxy", "command": "/bin/proxy"});
    let slot = Slot {
        key: &["mcp_servers".to_owned()],
        list: true,
    };
    for text in [
        "a = 1\nmcp_servers = []\n",
        "a = 1\n\n[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\n",
        "a = 1\n",
    ] {
        let added = edit(text, Format::Toml, slot, "proxy", Some(&entry)).unwrap();
        let whole = read(&added, Format::Toml).unwrap();
        let servers = whole["mcp_servers"].as_array().unwrap();
        assert_eq!(servers.last(), Some(&entry));
        let back = edit(&added, Format::Toml, slot, "proxy", None).unwrap();
        assert_eq!(back, text);
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let slot = Slot {
        key: &["s".to_owned()],
        list: false,
    };
    let check = |format, text: &str| {
        edit(text, format, slot, "proxy", Some(&json!({})))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        check(Format::Json, "{\"s\": []}"),
        "`s` contains no table of servers"
    );
    assert_eq!(
        check(Format::Json, "{\n\"s\": {"),
        "line 2: Unterminated object"
    );
    assert_eq!(check(Format::Toml, "a = 1\na = 2"), "line 2: duplicate key");
    assert!(check(Format::Yaml, "a: 1\n---\nb: 2\n").starts_with("line 2: a second document"));
}
