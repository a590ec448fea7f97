//! `init` imports eight clients with twenty servers, one of them with a YAML file, and
//! `init --undo` reverts it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step},
    house::{House, Output, fake},
    processes::HOUSE_VARIABLE,
};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::{house, programs};

/// The configuration file of each client, and its content.
const FILES: [(&str, &str); 8] = [
    (".claude.json", include_str!("moving_in/claude.json")),
    (".cursor/mcp.json", include_str!("moving_in/cursor.json")),
    (
        "xdg-config/Code/User/mcp.json",
        include_str!("moving_in/vscode.json"),
    ),
    (".codex/config.toml", include_str!("moving_in/codex.toml")),
    (
        ".gemini/settings.json",
        include_str!("moving_in/gemini.json"),
    ),
    (
        "xdg-config/opencode/opencode.jsonc",
        include_str!("moving_in/opencode.jsonc"),
    ),
    (
        "xdg-config/goose/config.yaml",
        include_str!("moving_in/goose.yaml"),
    ),
    (
        "xdg-config/zed/settings.json",
        include_str!("moving_in/zed.json"),
    ),
];

/// The names of the servers in the clients; `diary` is the second `memory`.
const SERVERS: [&str; 20] = [
    "memory", "git", "time", "notes", "fetch", "files", "browser", "issues", "docs", "search",
    "weather", "calendar", "mail", "db", "cache", "music", "photos", "maps", "kanban", "diary",
];

/// Creates a house whose clients list all the servers, and which has no configuration.
fn house_with_clients() -> House {
    let servers = SERVERS.map(|name| {
        fake(name)
            .tool(&format!("use_{name}"), Step::Echo)
            .tool("erase", Step::Echo)
    });
    let house = house(servers);
    fs::remove_file(house.config()).unwrap();
    fs::create_dir(house.path("site")).unwrap();
    let root = house.path("").display().to_string();
    let root = root.trim_end_matches('/');
    house.write(
        "browser.env",
        &format!("# its variables\nexport {HOUSE_VARIABLE}='{root}'\n"),
    );
    for (name, text) in FILES {
        let text = fill_in(&house, text);
        let path = house.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = if name == ".claude.json" { 0o600 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    house
}

fn fill_in(house: &House, text: &str) -> String {
    let root = house.path("").display().to_string();
    text.replace("@FAKE@", &programs().fake_server.display().to_string())
        .replace("@HOUSE@", root.trim_end_matches('/'))
        .replace("@MARK@", HOUSE_VARIABLE)
}

/// Returns the proxy's command with none of the clients' own programs on its path, so that files
/// are edited.
fn command(house: &House, words: &[&str]) -> Command {
    let mut command = house.command(words);
    command
        .env("PATH", "/usr/bin:/bin")
        .env("ISSUES_TOKEN", "t0ken-of-ada");
    command
}

async fn run(house: &House, words: &[&str]) -> Output {
    let output = command(house, words)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        code: output.status.code(),
    }
}

/// Returns every file of the house with its mode, except our state and the fakes' records.
fn look(house: &House) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![house.path("")];
    let ours: [&Path; 2] = [&house.path("xdg-state"), &house.path("run")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
        {
            if ours.contains(&path.as_path()) || path.to_string_lossy().ends_with(".received") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                found.insert(path.clone(), (mode, fs::read(&path).unwrap()));
            }
        }
    }
    found
}

fn read(house: &House, name: &str) -> String {
    fs::read_to_string(house.path(name)).unwrap()
}

#[tokio::test]
async fn eight_clients_move_in_are_served_and_move_out() {
    let house = house_with_clients();
    let before = look(&house);

    let shown = run(&house, &["init", "--dry-run"]).await;
    shown.ended(0);
    assert!(
        shown.stdout.contains("+[servers.memory]"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("-[mcp_servers.docs] # the manuals"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stderr.contains("remove `photos` from"),
        "{}",
        shown.stderr
    );
    assert!(
        shown.stderr.contains("schema.json: new file"),
        "{}",
        shown.stderr
    );
    assert_eq!(look(&house), before);

    let moved = run(&house, &["init", "--yes"]).await;
    moved.ended(0);
    paste_into_goose(&house, &moved.stderr);
    assert!(
        moved
            .stderr
            .contains("developer of Goose: it is a part of Goose itself"),
        "{}",
        moved.stderr
    );
    assert!(
        moved
            .stderr
            .contains("notes: only for clients that work in"),
        "{}",
        moved.stderr
    );
    check_servers(&house).await;
    check_files(&house);
    check_session(&house).await;

    let again = run(&house, &["init", "--yes"]).await;
    again.ended(0);
    assert!(
        again.stderr.contains("Cursor: nothing to change"),
        "{}",
        again.stderr
    );
    assert!(
        again.stderr.contains("Goose: nothing to change"),
        "{}",
        again.stderr
    );
    let (goose, text) = FILES[6];
    house.write(goose, &fill_in(&house, text));
    run(&house, &["init", "--undo"]).await.ended(0);
    assert_eq!(look(&house), before);
    run(&house, &["init", "--undo"]).await.ended(1);
    house.stops_clean().await;
}

/// Follows the instructions of `init` for a YAML file, which it does not edit.
fn paste_into_goose(house: &House, told: &str) {
    let (goose, _) = FILES[6];
    let before = read(house, goose);
    assert!(!before.contains("proxy-under-test"), "{before}");
    let lines = told.split_once("goose/config.yaml:\n\nextensions:\n");
    let (lines, rest) = lines.expect(told).1.split_once("\n\n").expect(told);
    for name in ["music", "photos"] {
        assert!(rest.contains(&format!("remove `{name}` from")), "{told}");
    }
    let kept = before.split_once("  music:").unwrap().0;
    let after = before.split_once("GOOSE_MODEL").unwrap().1;
    house.write(goose, &format!("{kept}{lines}\n\nGOOSE_MODEL{after}"));
}

/// Checks that the configuration has all twenty servers as their clients had them.
async fn check_servers(house: &House) {
    let listed: Value = run(house, &["servers", "--json"]).await.json();
    let listed = listed["servers"].as_array().unwrap();
    let names: Vec<&str> = listed
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 20, "{names:?}");
    assert!(
        names.contains(&"memory-zed") && names.contains(&"fetch"),
        "{names:?}"
    );
    let off: Vec<&Value> = listed
        .iter()
        .filter(|it| it["state"] == "disabled")
        .map(|it| &it["name"])
        .collect();
    assert_eq!(off, ["search"]);
    let config = read(house, "config.toml");
    assert!(config.starts_with("#:schema schema.json\n"), "{config}");
    let schema: Value = serde_json::from_str(&read(house, "schema.json")).unwrap();
    assert!(schema["properties"]["servers"].is_object(), "{schema}");
    let of_calendar = config.split("[servers.calendar]").nth(1).unwrap();
    assert!(
        of_calendar
            .split("[servers")
            .next()
            .unwrap()
            .contains("deny = [\"erase\"]"),
        "{config}"
    );
}

/// Checks that each client has our entry, none of its own servers, and the rest of its file.
fn check_files(house: &House) {
    for (name, text) in FILES {
        let now = read(house, name);
        assert!(now.contains("proxy-under-test"), "{name}: {now}");
        // The disabled entry in Codex remains.
        let left = now.matches(".script.json").count();
        assert_eq!(
            left,
            usize::from(name == ".codex/config.toml"),
            "{name}: {now}"
        );
        let kept = [
            "// the team uses these",
            "\"numStartups\": 41",
            "# Codex",
            "// warm",
            "ui_font_size",
            "bundled: true",
        ];
        for part in kept.iter().filter(|part| text.contains(*part)) {
            assert!(now.contains(part), "{name} lost {part}: {now}");
        }
    }
    let copies = look(house)
        .into_iter()
        .filter(|(path, _)| path.to_string_lossy().contains(".proxy-backup-"));
    let copies: Vec<u32> = copies.map(|(_, (mode, _))| mode & 0o777).collect();
    assert_eq!(copies, [0o600; 7]);
}

/// Starts the command of a client's file in a folder.
async fn start_session(house: &House, folder: &Path) -> Client {
    let claude: Value = serde_json::from_str(&read(house, ".claude.json")).unwrap();
    let entry = &claude["mcpServers"]["proxy"];
    let args: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let mut started = Command::new(entry["command"].as_str().unwrap());
    started
        .args(&args)
        .arg("--standalone")
        .current_dir(folder)
        .env_clear();
    let own = command(house, &[]);
    for (name, value) in own
        .as_std()
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)))
    {
        started.env(name, value);
    }
    let client = house.keep(Client::start(started));
    client.initialize(LEGACY_VERSION).await;
    client
}

/// Checks that a client that starts the command of its file reaches servers of several others, and that
/// the server of a project is only for its folder.
async fn check_session(house: &House) {
    let elsewhere = start_session(house, &house.path("")).await;
    elsewhere
        .execute("notes/use_notes", json!({"a": 1}))
        .await
        .bad();
    let client = start_session(house, &house.path("site")).await;
    for (server, tool) in [
        ("notes", "use_notes"),
        ("browser", "use_browser"),
        ("weather", "use_weather"),
        ("memory-zed", "use_diary"),
    ] {
        client
            .execute(&format!("{server}/{tool}"), json!({"a": 1}))
            .await
            .good();
    }
    client.execute("calendar/erase", json!({})).await.bad();
}

#[tokio::test]
async fn a_server_that_does_not_answer_stays_with_its_client() {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    let good: toml::Table = read(&house, "config.toml").parse().unwrap();
    let good = serde_json::to_value(&good["servers"]["good"]).unwrap();
    fs::remove_file(house.config()).unwrap();
    fs::create_dir(house.path(".cursor")).unwrap();
    let file = json!({"mcpServers": {"good": good, "broken": {"command": "/nowhere/x", "env": {"API_KEY": "abc-secret-def"}}}});
    house.write(".cursor/mcp.json", &file.to_string());
    let before = look(&house);

    let shown = run(&house, &["init", "--dry-run"]).await;
    let told = format!("{}{}", shown.stdout, shown.stderr);
    assert!(
        !told.contains("abc-secret-def") && told.contains("stored by `proxy secret`"),
        "{told}"
    );
    let moved = run(&house, &["init", "--yes", "--json"]).await;
    moved.ended(3);
    assert_eq!(moved.json()["failed"], json!(["broken"]));
    let now: Value = serde_json::from_str(&read(&house, ".cursor/mcp.json")).unwrap();
    let names: Vec<&String> = now["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["broken", "proxy"]);
    let mode = fs::metadata(house.config()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let config = read(&house, "config.toml");
    assert!(config.contains("${secret:broken.API_KEY}"), "{config}");
    let kept = command(&house, &["secret", "list"]).output().await.unwrap();
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), "broken.API_KEY\n");
    let undone = run(&house, &["init", "--undo"]).await;
    undone.ended(0);
    assert!(
        undone.stderr.contains("secrets removed: broken.API_KEY"),
        "{}",
        undone.stderr
    );
    assert_eq!(look(&house), before);
    assert_eq!(run(&house, &["secret", "list"]).await.stdout, "");

    run(&house, &["init", "--client", "cursr"]).await.ended(2);
    house.stops_clean().await;
}

#[tokio::test]
async fn undo_leaves_secrets_that_are_named_or_were_set_since() {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    fs::remove_file(house.config()).unwrap();
    fs::create_dir(house.path(".cursor")).unwrap();
    let file = json!({"mcpServers": {"far": {"command": "/nowhere/x", "env": {
        "A_TOKEN": "first-secret-1", "B_TOKEN": "second-secret-2", "C_TOKEN": "third-secret-3"}}}});
    house.write(".cursor/mcp.json", &file.to_string());
    run(&house, &["init", "--yes"]).await.ended(3);
    let config = read(&house, "config.toml");
    house.write(
        "config.toml",
        "[servers.other]\ncommand = \"/nowhere/y\"\nenv.KEY = \"${secret:far.A_TOKEN}\"\n",
    );
    pipe(&house, &["secret", "set", "far.B_TOKEN"], "another").await;

    let undone = run(&house, &["init", "--undo"]).await;
    undone.ended(3);
    for line in [
        "secrets removed: far.C_TOKEN",
        "secret `far.A_TOKEN` stays: the configuration names it; remove it with: proxy secret rm far.A_TOKEN",
        "secret `far.B_TOKEN` stays: it was set to another value since",
    ] {
        assert!(undone.stderr.contains(line), "{}", undone.stderr);
    }
    let listed = run(&house, &["secret", "list"]).await.stdout;
    assert_eq!(listed, "far.A_TOKEN\nfar.B_TOKEN\n");

    // The configuration again has the content that the run wrote, so the rest can be undone.
    house.write("config.toml", &config);
    run(&house, &["init", "--undo"]).await.ended(0);
    assert!(!house.config().exists());
    assert_eq!(
        run(&house, &["secret", "list"]).await.stdout,
        "far.B_TOKEN\n"
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn a_second_run_keeps_what_never_answered_and_an_edited_configuration_blocks_no_undo() {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    fs::remove_file(house.config()).unwrap();
    fs::create_dir(house.path(".cursor")).unwrap();
    let file = json!({"mcpServers": {"broken": {"command": "/nowhere/x"}}}).to_string();
    house.write(".cursor/mcp.json", &file);
    run(&house, &["init", "--yes"]).await.ended(3);
    let again = run(&house, &["init", "--yes"]).await;
    again.ended(3);
    assert!(
        again.stderr.contains("broken: no answer"),
        "{}",
        again.stderr
    );
    assert!(read(&house, ".cursor/mcp.json").contains("\"broken\""));

    fs::create_dir(house.path(".gemini")).unwrap();
    let gemini = file.replace("broken", "other").replace("/x", "/y");
    house.write(".gemini/settings.json", &gemini);
    run(&house, &["init", "--yes"]).await.ended(3);
    let config = read(&house, "config.toml");
    house.write("config.toml", &format!("{config}# mine\n"));
    for _ in 0..2 {
        run(&house, &["init", "--undo"]).await.ended(3);
    }
    assert_eq!(read(&house, ".gemini/settings.json"), gemini);
    assert_eq!(read(&house, ".cursor/mcp.json"), file);
    assert!(read(&house, "config.toml").ends_with("# mine\n"));
    house.stops_clean().await;
}

/// Runs the command with this text on stdin.
async fn pipe(house: &House, words: &[&str], text: &str) {
    let mut child = command(house, words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn what_is_pasted_is_taken_over() {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    let table: toml::Table = read(&house, "config.toml").parse().unwrap();
    let good = serde_json::to_value(&table["servers"]["good"]).unwrap();
    house.configure("# mine\n");
    let pasted = json!({"mcpServers": {"Good One": good}}).to_string();
    pipe(&house, &["add", "-"], &pasted).await;
    let config = read(&house, "config.toml");
    assert!(
        config.starts_with("# mine\n") && config.contains("[servers.good-one]"),
        "{config}"
    );

    let unreadable = json!({"mcpServers": {"odd": {"start": "x"}}}).to_string();
    let path = house.write("odd.json", &unreadable);
    let left = run(&house, &["add", "--import", &path.display().to_string()]).await;
    left.ended(1);
    let why = "not imported: odd of pasted: it names neither `command` nor `url`";
    assert!(left.stderr.contains(why), "{}", left.stderr);

    let path = house.write("other.json", "{\"a\": 1}");
    let refused = run(&house, &["add", "--import", &path.display().to_string()]).await;
    refused.ended(2);
    assert!(
        refused.stderr.contains("supported formats"),
        "{}",
        refused.stderr
    );
    let fifo = house.path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().await.unwrap();
    assert!(made.success());
    let piped = run(&house, &["add", "--import", &fifo.display().to_string()]).await;
    piped.ended(2);
    assert!(piped.stderr.contains("proxy add -"), "{}", piped.stderr);
    let unknown = run(&house, &["add", "--import", "vs-code"]).await;
    unknown.ended(2);
    assert!(
        unknown.stderr.contains("did you mean `vscode`?"),
        "{}",
        unknown.stderr
    );
    assert_eq!(read(&house, "config.toml"), config);
    house.stops_clean().await;
}
