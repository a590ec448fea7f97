//! Secrets of the configuration: stored, read from a file, printed by a command.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use journey::journey;
use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::house;

const SECRET: &str = "sk-kept-5f1e9c0b7a";

async fn keep(house: &House, name: &str, value: &str) {
    let mut command = house.command(["secret", "set", name]);
    command.stdin(std::process::Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut stdin = running.stdin.take().unwrap();
    stdin.write_all(value.as_bytes()).await.unwrap();
    drop(stdin);
    assert!(running.wait().await.unwrap().success());
}

#[journey]
async fn a_server_gets_what_is_kept_and_what_files_and_commands_say() {
    let house = house::<Fake>([]);
    let file = house.write("key", "from-file\n");
    let server = fake("vault")
        .env("KEPT", "${secret:vault.key}")
        .env("FILED", &format!("${{file:{}}}", file.display()))
        .env("PRINTED", "${command:printf 'from-%s' command}")
        .tool("env", Step::Environment);
    house.add(server);

    keep(&house, "vault.key", &format!("{SECRET}\n")).await;
    house.cli(["reindex"]).await.ended(0);
    house.cli(["secret", "rm", "vault.key"]).await.ended(0);
    let client = house.client().await;
    let missing = client.execute("vault/env", json!({})).await.bad();
    assert!(missing.contains("proxy secret set vault.key"), "{missing}");
    keep(&house, "vault.key", &format!("{SECRET}\n")).await;
    // The server would pause for longer before its next start; the stored secret ends the pause.
    let told = crate::answered_in_the_end(&client, "vault/env", &json!({})).await;
    for expected in [SECRET, "from-file", "from-command"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }

    assert_eq!(list(&house).await.0, "vault.key\n");
    house.cli(["secret", "rm", "vault.key"]).await.ended(0);
    house.cli(["secret", "rm", "vault.key"]).await.ended(1);
    assert_eq!(list(&house).await.0, "");
    house.stops_clean().await;
}

#[journey(alone = "it uses only the command line")]
async fn secrets_are_private_and_refused_where_they_are_not() {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    keep(&house, "key", SECRET).await;
    let file = find(&house.path("xdg-state"), "secrets.json").expect("the secret is stored");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (_, refused) = list(&house).await;
    assert!(refused.contains("chmod 600"), "{refused}");
    let argument = house.cli(["secret", "set", "key", SECRET]).await;
    assert_eq!(
        argument.code,
        Some(2),
        "a secret is not accepted as an argument"
    );
    let nothing = house.cli(["secret", "set", "key"]).await;
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
    house.stops_clean().await;
}

/// Returns the output of `secret list`, and its messages on standard error.
async fn list(house: &House) -> (String, String) {
    let output = house.command(["secret", "list"]).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|it| it.path());
    let mut found = entries.filter_map(|path| {
        if path.is_dir() {
            return find(&path, name);
        }
        path.ends_with(name).then_some(path)
    });
    found.next()
}

#[journey]
async fn no_process_of_ours_leaves_a_core_in_which_secrets_would_lie() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let mut processes = vec![client.pid()];
    if house.has_daemon() {
        processes.push(house.daemon().await);
    }
    for pid in processes {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file"));
        let bytes: u64 = core
            .unwrap()
            .split_whitespace()
            .nth(4)
            .unwrap()
            .parse()
            .unwrap();
        assert!(bytes <= 1, "{limits}");
    }
    house.stops_clean().await;
}
