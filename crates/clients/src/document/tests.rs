//! What edits look like.

use serde_json::json;

use super::{Format, Made, Slot, add, read, remove};

/// Adds our entry to a text and takes another out.
#[track_caller]
fn check(format: Format, key: &str, text: &str, expected: &str) {
    let key: Vec<String> = key.split('/').map(str::to_owned).collect();
    let slot = Slot {
        key: &key,
        list: false,
    };
    let entry = json!({"command": "/bin/proxy", "args": ["serve"]});
    let (added, made) = add(text, format, slot, "proxy", &entry).unwrap();
    let back = remove(&added, format, slot, "proxy", made)
        .unwrap()
        .unwrap();
    assert_eq!(back.text, text, "taken out again");
    let edited = match remove(&added, format, slot, "old", Made::default()).unwrap() {
        Some(removed) => removed.text,
        None => added,
    };
    assert_eq!(edited, expected);
}

#[test]
fn json_keeps_what_it_is() {
    use Format::Jsonc;
    check(
        Jsonc,
        "mcpServers",
        "{\n  // mine\n  \"x\": 1, /* y */\n  \"mcpServers\": {\n    \"old\": { \"command\": \"a\" }, // gone\n    \"kept\": {\"command\": \"b\"} // stays\n  }\n}\n",
        "{\n  // mine\n  \"x\": 1, /* y */\n  \"mcpServers\": {\n    \"kept\": {\"command\": \"b\"}, // stays\n    \"proxy\": {\n      \"command\": \"/bin/proxy\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
    );
    check(
        Jsonc,
        "mcpServers",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"old\": {},\r\n\t},\r\n}",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"proxy\": {\r\n\t\t\t\"command\": \"/bin/proxy\",\r\n\t\t\t\"args\": [\"serve\"]\r\n\t\t},\r\n\t},\r\n}",
    );
    check(
        Jsonc,
        "a/b",
        "{\"z\":[],\"a\":{\"q\":1}}",
        "{\"z\":[],\"a\":{\"q\":1, \"b\": { \"proxy\": { \"command\": \"/bin/proxy\", \"args\": [\"serve\"] } }}}",
    );
}

#[test]
fn json_that_is_nearly_empty() {
    let filled = "{\n  \"s\": {\n    \"proxy\": {\n      \"command\": \"/bin/proxy\",\n      \"args\": [\"serve\"]\n    }\n  }\n}";
    check(Format::Json, "s", "{}", filled);
    check(Format::Json, "s", "{\n  \"s\": null\n}", filled);
    check(Format::Json, "s", "{\n  \"s\": {}\n}", filled);
    check(
        Format::Json,
        "s",
        "{\n  \"s\": {\n  }\n}",
        &filled.replace("{\n    \"proxy", "{\n\n    \"proxy"),
    );
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
        let (added, _) = add(empty, Format::Json, slot, "proxy", &entry).unwrap();
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
        "# mine\nmodel = \"x\"\n\n# stays\n[tui]\na = 1\n\n[mcp_servers.proxy]\ncommand = \"/bin/proxy\"\nargs = [\"serve\"]\n",
    );
    check(
        Format::Toml,
        "mcp_servers",
        "mcp_servers = { old = { command = \"a\" }, b = { url = \"http://x\" } }\r\n",
        "mcp_servers = { b = { url = \"http://x\" }, proxy = { command = \"/bin/proxy\", args = [\"serve\"] } }\r\n",
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
}

#[test]
fn yaml_keeps_what_it_is() {
    check(
        Format::Yaml,
        "extensions",
        "# mine\nextensions:\n  old: # gone\n    cmd: a\n    args: [x, y]\n  # stays\n  kept:\n    cmd: |\n      b\n\nGOOSE: 1 # end\n",
        "# mine\nextensions:\n  # stays\n  kept:\n    cmd: |\n      b\n  proxy:\n    command: /bin/proxy\n    args: [\"serve\"]\n\nGOOSE: 1 # end\n",
    );
    check(
        Format::Yaml,
        "extensions",
        "a: 1\nextensions: {old: {cmd: x}}\n",
        "a: 1\nextensions: {\"proxy\": { \"command\": \"/bin/proxy\", \"args\": [\"serve\"] }}\n",
    );
    let entry = "  proxy:\n    command: /bin/proxy\n    args: [\"serve\"]";
    check(
        Format::Yaml,
        "extensions",
        "a: 1\nextensions:\n# end\n",
        &format!("a: 1\nextensions:\n{entry}\n# end\n"),
    );
    check(
        Format::Yaml,
        "extensions",
        "a: 1",
        &format!("a: 1\nextensions:\n{entry}"),
    );
    check(
        Format::Yaml,
        "extensions",
        "",
        &format!("extensions:\n{entry}\n"),
    );
}

#[test]
fn lists_with_names_are_edited_too() {
    let slot = Slot {
        key: &["mcpServers".to_owned()],
        list: true,
    };
    let entry = json!({"name": "proxy", "command": "/bin/proxy"});
    let text = "name: x\nmcpServers:\n- name: old\n  command: a\n  env:\n    A: b\n- name: kept\n  command: c\nrules: []\n";
    let (added, made) = add(text, Format::Yaml, slot, "proxy", &entry).unwrap();
    assert!(
        added.contains("command: c\n- name: proxy\n  command: /bin/proxy\nrules"),
        "{added}"
    );
    let back = remove(&added, Format::Yaml, slot, "proxy", made)
        .unwrap()
        .unwrap();
    assert_eq!(back.text, text);
    let out = remove(text, Format::Yaml, slot, "old", made)
        .unwrap()
        .unwrap();
    assert_eq!(
        out.text,
        "name: x\nmcpServers:\n- name: kept\n  command: c\nrules: []\n"
    );

    let slot = Slot {
        key: &["mcp_servers".to_owned()],
        list: true,
    };
    for text in [
        "a = 1\nmcp_servers = []\n",
        "a = 1\n\n[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\n",
        "a = 1\n",
    ] {
        let (added, made) = add(text, Format::Toml, slot, "proxy", &entry).unwrap();
        let whole = read(&added, Format::Toml).unwrap();
        let servers = whole["mcp_servers"].as_array().unwrap();
        assert_eq!(servers.last(), Some(&entry));
        let back = remove(&added, Format::Toml, slot, "proxy", made)
            .unwrap()
            .unwrap();
        assert_eq!(back.text, text);
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let slot = Slot {
        key: &["s".to_owned()],
        list: false,
    };
    let check = |format, text: &str| {
        add(text, format, slot, "proxy", &json!({}))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        check(Format::Json, "{\"s\": []}"),
        "`s` holds no table of servers"
    );
    assert_eq!(
        check(Format::Json, "{\n\"s\": {"),
        "line 2: Unterminated object"
    );
    assert_eq!(check(Format::Toml, "a = 1\na = 2"), "line 2: duplicate key");
    assert!(check(Format::Yaml, "a: 1\n---\nb: 2\n").starts_with("line 2: a second document"));
}
