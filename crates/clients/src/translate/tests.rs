//! Tests of the translation of entries.

use serde_json::{Value, json};

use super::translate;
use crate::{
    Home, System,
    entry::ServerEntry,
    server::ImportedServer,
    table::{TimeUnit, Variables},
};

fn home() -> Home {
    Home::new("/home/ada", []).with_system(System::Linux)
}

fn entry(style: Variables, value: Value) -> ServerEntry {
    ServerEntry {
        variables: style,
        ..ServerEntry::pasted("x", value)
    }
}

/// Returns the parts of a server that are set, one per line.
fn tell(taken: &ImportedServer) -> String {
    let server = &taken.server;
    let mut lines = Vec::new();
    if let Some(command) = &server.command {
        lines.push(
            [std::slice::from_ref(command), &server.args]
                .concat()
                .join(" | "),
        );
    }
    lines.extend(server.url.clone());
    lines.extend(
        server
            .env
            .iter()
            .chain(&server.headers)
            .map(|(name, value)| format!("{name}={value}")),
    );
    lines.extend(
        server
            .inherit_env
            .iter()
            .map(|name| format!("inherits {name}")),
    );
    lines.extend(server.cwd.iter().map(|cwd| format!("in {cwd}")));
    lines.extend(
        taken
            .needs
            .iter()
            .map(|need| format!("needs {}: {}", need.variable, need.what)),
    );
    lines.extend(server.timeout_s.map(|timeout| format!("{timeout} s")));
    lines.extend((!server.allow.is_empty()).then(|| format!("allows {:?}", server.allow)));
    lines.extend((!server.deny.is_empty()).then(|| format!("denies {:?}", server.deny)));
    lines.extend(server.is_per_client.then(|| "per client".to_owned()));
    lines.extend(taken.remarks.iter().map(|remark| format!("! {remark}")));
    lines.join("\n")
}

#[track_caller]
fn check_entry(entry: &ServerEntry, expected: &[&str]) {
    let told = match translate(entry, &home()) {
        Ok(taken) => tell(&taken),
        Err(why) => format!("left out: {why}"),
    };
    assert_eq!(told, expected.join("\n"));
}

#[track_caller]
fn check(style: Variables, value: Value, expected: &[&str]) {
    check_entry(&entry(style, value), expected);
}

#[test]
fn variables_are_written_our_way() {
    let with = |text: &str| json!({"command": "x", "args": [text], "env": {"A": text}});
    let both = |text: &str| vec![format!("x | {text}"), format!("A={text}")];
    let check = |style, text: &str, expected: &str| {
        let lines = both(expected);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(style, with(text), &lines);
    };
    check(Variables::Braces, "${A}-${B:-c d}", "${A}-${B:-c d}");
    check(Variables::Braces, "$A costs $5", "$A costs $5");
    check(
        Variables::Braces,
        "a$$${A}",
        "a$$$$$$${A}".replace("$$$$$$", "$$$$").as_str(),
    );
    check(
        Variables::Braces,
        "${env:A}/${userHome}${/}x",
        "${A}//home/ada/x",
    );
    check(Variables::Braces, "${unknown:A}", "$${unknown:A}");
    check(Variables::Braces, "{env:A} {b}", "${A} {b}");
    check(Variables::Braces, "${{ secrets.A_B }}", "${A_B}");
    check(Variables::Dollar, "$A/${B}", "${A}/${B}");
    check(Variables::Braces, "${env:A}{env:B}${C}$D", "${A}${B}${C}$D");
}

#[test]
fn a_variable_in_the_default_of_another_is_told_and_never_written() {
    let entry = |text: &str| json!({"command": "x", "args": [text]});
    let note = "needs VAR: its value; its default in the entry names another variable, which clients read differently";
    for style in [Variables::Braces, Variables::Dollar] {
        check(style, entry("${VAR:-${HOME}/x}/y"), &["x | ${VAR}/y", note]);
        check(
            style,
            entry("a${VAR:-b${C:-${D}}e}"),
            &["x | a${VAR}", note],
        );
        check(style, entry("${A:-b}${C}"), &["x | ${A:-b}${C}"]);
    }
    check(
        Variables::None,
        entry("${VAR:-${HOME}/x}"),
        &[
            "x | $${VAR:-$${HOME}/x}",
            "! its client does not replace `${HOME}`: it stays literal text",
        ],
    );
}

#[test]
fn a_dollar_is_a_variable_where_its_client_says_so() {
    check(
        Variables::Dollar,
        json!({"command": "$BIN/x", "args": ["$A", "a$", "$5 and $ 6", "${A:-b}"], "cwd": "$D/e", "env": {"B": "$C-$5"}}),
        &[
            "${BIN}/x | ${A} | a$$ | $5 and $ 6 | ${A:-b}",
            "B=${C}-$5",
            "in ${D}/e",
        ],
    );
    check(
        Variables::Dollar,
        json!({"httpUrl": "https://$HOST/mcp?a=$5", "headers": {"Authorization": "Bearer $TOKEN", "X-Price": "US$9"}}),
        &[
            "https://${HOST}/mcp?a=$5",
            "Authorization=Bearer ${TOKEN}",
            "X-Price=US$9",
        ],
    );
    check(
        Variables::None,
        json!({"command": "x", "env": {"B": "${C}"}}),
        &[
            "x",
            "B=$${C}",
            "! its client does not replace `${C}`: it stays literal text",
        ],
    );
    check(
        Variables::Dollar,
        json!({"command": "x", "env": {"B": "$(cat /secret)"}}),
        &[
            "x",
            "B=${X_VALUE}",
            "needs X_VALUE: the output of a command in its entry, which the import does not run",
        ],
    );
}

#[test]
fn what_a_client_asks_for_becomes_a_variable() {
    let mut asked = entry(
        Variables::Braces,
        json!({"type": "http", "url": "https://x.dev/mcp", "headers": {"Authorization": "Bearer ${input:api-key}"}}),
    );
    asked.inputs = vec![json!({"id": "api-key", "description": "Key of X", "password": true})];
    check_entry(
        &asked,
        &[
            "https://x.dev/mcp",
            "Authorization=Bearer ${API_KEY}",
            "needs API_KEY: Key of X",
        ],
    );
}

#[cfg(unix)]
#[test]
fn the_folder_of_a_project_is_the_clients_or_its_own() {
    let value = json!({"command": "x", "args": ["--root", "${workspaceFolder}/src"], "cwd": "${workspaceFolder}"});
    let remark = "! it works in the folder of a project: each client gets its own process there";
    check(
        Variables::Braces,
        value.clone(),
        &["x | --root | ./src", "per client", remark],
    );
    let mut own = entry(Variables::Braces, value);
    own.project = Some("/projects/site".into());
    check_entry(
        &own,
        &["x | --root | /projects/site/src", "in /projects/site"],
    );
    let mut relative = entry(
        Variables::Braces,
        json!({"command": "./bin/x", "args": ["../data", "-v"]}),
    );
    relative.project = Some("/projects/site".into());
    check_entry(
        &relative,
        &["/projects/site/bin/x | ../data | -v", "in /projects/site"],
    );
    relative.project = None;
    check_entry(
        &relative,
        &[
            "./bin/x | ../data | -v",
            "! its program `./bin/x` is relative to the folder in which its client was started: write an absolute path",
            "! its arguments are relative to the folder in which its client was started: write absolute paths, or set `cwd`",
        ],
    );
}

#[test]
fn every_way_to_say_the_same_is_read() {
    use Variables::{Braces, None};
    check(
        None,
        json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": 1}}),
        &["npx | -y | x", "A=1"],
    );
    check(
        None,
        json!({"command": "npx -y 'a b'", "args": ["c"]}),
        &["npx | -y | a b | c"],
    );
    check(
        None,
        json!({"command": "/Apps/My App/x", "args": []}),
        &["/Apps/My App/x"],
    );
    check(
        None,
        json!({"command": {"path": "x", "args": ["a"], "env": {"B": "c"}}}),
        &["x | a", "B=c"],
    );
    check(
        None,
        json!({"httpUrl": "https://x.dev/mcp", "includeTools": ["a", "b[1]"], "excludeTools": ["c"]}),
        &[
            "https://x.dev/mcp",
            r#"allows ["a", "b[[]1[]]"]"#,
            r#"denies ["c"]"#,
        ],
    );
    check(
        None,
        json!({"url": "https://x.dev/mcp", "bearer_token_env_var": "T", "env_http_headers": {"X-A": "B"}}),
        &["https://x.dev/mcp", "X-A=${B}", "Authorization=Bearer ${T}"],
    );
    check(
        None,
        json!({"command": "x", "env_vars": ["A", {"name": "B"}]}),
        &["x", "inherits A", "inherits B"],
    );
    check(
        None,
        json!({"cmd": "x", "envs": {"A": "1"}, "env_keys": ["A", "K"], "tools": ["*"]}),
        &[
            "x",
            "A=1",
            "K=${K}",
            "needs K: stored by its client in a place that the import does not read",
        ],
    );
    let mut timed = entry(Braces, json!({"command": "x", "timeout": 90_500}));
    timed.timeout = Some(TimeUnit::Ms);
    check_entry(&timed, &["x", "91 s"]);
    check(
        Braces,
        json!({"command": "x", "tool_timeout_sec": 5, "timeout": 3}),
        &["x"],
    );
}

#[test]
fn what_cannot_be_a_server_of_ours_is_left_out() {
    let check = |value, why: &str| check(Variables::None, value, &[&format!("left out: {why}")]);
    check(
        json!({"type": "builtin", "name": "developer"}),
        "it is a part of pasted itself",
    );
    check(
        json!({"type": "ws", "url": "wss://x.dev"}),
        "it uses WebSocket, which is not supported",
    );
    check(
        json!({"url": "unix:///run/x"}),
        "it uses a local socket, which is not supported",
    );
    check(
        json!({"type": "stdio"}),
        "it names neither `command` nor `url`",
    );
    check(json!(3), "its entry is not a table");
}

#[test]
fn windows_wrappers_archives_and_dead_addresses_are_told() {
    let none = Variables::None;
    check(
        none,
        json!({"command": "cmd", "args": ["/c", "npx", "-y", "x"]}),
        &["npx | -y | x"],
    );
    check(
        none,
        json!({"command": "C:\\Windows\\cmd.exe", "args": ["/C", "npx.cmd", "x"]}),
        &["npx | x"],
    );
    check(
        none,
        json!({"command": "wsl", "args": ["--", "uvx", "x"]}),
        &["uvx | x"],
    );
    check(
        none,
        json!({"command": "wsl", "args": ["-d", "Ubuntu", "x"]}),
        &["wsl | -d | Ubuntu | x"],
    );
}

#[cfg(unix)]
#[test]
fn the_variables_of_a_file_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".env");
    std::fs::write(&file, "# x\nexport A=\"1 2\"\nB='${C}'\nD=\n\nnot a pair\n").unwrap();
    let mut filed = entry(
        Variables::Braces,
        json!({"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"D": "4"}}),
    );
    filed.project = Some(folder.path().to_owned());
    let remark = format!(
        "! the current variables of {} were imported",
        file.display()
    );
    check_entry(&filed, &["x", "D=4", "A=1 2", "B=$${C}", &remark]);
    std::fs::remove_file(&file).unwrap();
    let missing = translate(&filed, &home()).unwrap();
    assert!(
        missing.remarks[0].contains("cannot be read"),
        "{:?}",
        missing.remarks
    );
}
