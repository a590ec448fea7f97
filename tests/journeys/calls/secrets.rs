//! Secrets of a server are never shown or stored in clear.

use std::{fs, path::Path};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use journey::journey;
use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, Output, fake, program},
};
use serde_json::json;

use crate::house;

const SECRET: &str = "sk-live-5f1e9c0b7a";

/// Creates a house with a server that prints its token and exits, and one that works.
fn house_with_a_blabber() -> House {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    let script = "echo \"token $TOKEN is refused\" >&2; echo \"$TOKEN\"; exit 3";
    house.add(program("blabber", "sh", ["-c", script]).env("TOKEN", "${BLABBER_TOKEN}"));
    house
}

async fn run(house: &House, args: &[&str]) -> Output {
    let mut command = house.command(args);
    command.env("BLABBER_TOKEN", SECRET);
    let output = command.output().await.unwrap();
    Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

#[journey]
async fn a_token_is_in_no_message_and_in_no_file() {
    let house = house_with_a_blabber();
    let reindexed = run(&house, &["-vv", "reindex"]).await;
    let said = format!("{}{}", reindexed.stdout, reindexed.stderr);
    assert!(said.contains("is refused"), "{said}");
    assert!(!said.contains(SECRET), "{said}");

    let mut command = house.command(["-vv", "serve", "--standalone"]);
    command.env("BLABBER_TOKEN", SECRET);
    let client = Client::start(command);
    client.initialize("2025-11-25").await;
    client.execute("good/echo", json!({})).await.good();
    for query in ["token", "do echo", "*"] {
        let answer = client.search(query).await;
        assert!(!answer.raw().contains(SECRET), "{}", answer.raw());
    }
    client.close().await;
    assert!(!client.stderr().contains(SECRET), "{}", client.stderr());
    assert_eq!(
        files_with(SECRET, &house.path("xdg-state")),
        Vec::<String>::new()
    );
}

#[journey]
async fn a_server_that_died_of_its_token_is_explained_without_it() {
    let house = house::<Fake>([]);
    let gate = house.path("gate");
    let fails = format!(
        "if test -e {}; then echo \"bad $TOKEN\" >&2; exit 3; fi; exec \"$0\" \"$@\"",
        gate.display()
    );
    let good = fake("frail").tool("act", Step::Echo);
    let table = house_table(&house, good);
    let (command, script) = table;
    let args = ["-c", &fails, &command, "--script-file", &script];
    house.add(program("frail", "sh", args).env("TOKEN", "${BLABBER_TOKEN}"));
    run(&house, &["reindex"]).await.ended(0);
    fs::write(gate, "").unwrap();

    let call = run(&house, &["call", "frail/act"]).await;
    assert_eq!(call.code, Some(1));
    assert!(
        call.stderr.contains("server_unavailable"),
        "{}",
        call.stderr
    );
    assert!(call.stderr.contains("bad ***"), "{}", call.stderr);
    let said = format!("{}{}", call.stdout, call.stderr);
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(
        files_with(SECRET, &house.path("xdg-state")),
        Vec::<String>::new()
    );
}

/// A secret that the encodings render differently.
const AWKWARD_SECRET: &str = "sk/live+5f1e 9c0\"b?7~";

/// Returns the encodings of the secret, each with the part that identifies it.
fn forms_of(secret: &str) -> Vec<(String, String)> {
    let percent = |is_kept: fn(char) -> bool| -> String {
        let encode = |letter: char| match letter {
            letter if is_kept(letter) => letter.to_string(),
            letter => format!("%{:02X}", u32::from(letter)),
        };
        secret.chars().map(encode).collect()
    };
    let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    let quoted = json!(secret).to_string();
    let addresses = [
        percent(|it| it.is_ascii_alphanumeric()),
        percent(|it| it.is_ascii_alphanumeric() || "/~".contains(it)).to_lowercase(),
        percent(|it| it.is_ascii_alphanumeric() || it == ' ').replace(' ', "+"),
    ];
    let whole = [secret.to_owned(), quoted[1..quoted.len() - 1].to_owned()];
    let whole = whole.into_iter().chain(addresses);
    let whole = whole.chain([hex.to_uppercase(), hex]);
    let mut forms: Vec<_> = whole.map(|form| (form.clone(), form)).collect();
    for before in ["", "u", "us"] {
        let text = format!("{before}{secret}:x");
        for form in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            let telling = form[4..form.len() - 6].to_owned();
            forms.push((form, telling));
        }
    }
    forms
}

#[journey]
async fn no_form_of_a_secret_is_in_an_error_a_log_or_a_file() {
    let forms = forms_of(AWKWARD_SECRET);
    let said: Vec<&str> = forms.iter().map(|(form, _)| form.as_str()).collect();
    let error = json!({ "code": -32_000, "message": said.join(" "), "data": { "is": &said } });
    let server = fake("blabber")
        .env("TOKEN", "${BLABBER_TOKEN}")
        .before([Step::Stderr(format!("{}\n", said.join("\n")))])
        .tool("fail", Step::Error(error));
    let house = house([server]);
    let with_token = |args: &[&str]| {
        let mut command = house.command(args);
        command.env("BLABBER_TOKEN", AWKWARD_SECRET);
        command
    };
    with_token(&["reindex"]).status().await.unwrap();
    let client = Client::start(with_token(&["-vv", "serve", "--standalone"]));
    client.initialize("2025-11-25").await;
    let failed = client.execute("blabber/fail", json!({})).await;
    client.close().await;
    let log = house.cli(["logs", "blabber"]).await;
    assert!(failed.raw().contains("***"), "{}", failed.raw());
    assert!(log.stdout.contains("***"), "{}", log.stdout);
    for (_, telling) in &forms {
        for heard in [failed.raw(), &client.stderr(), &log.stdout] {
            assert!(!heard.contains(telling.as_str()), "{telling}: {heard}");
        }
        let files = files_with(telling, &house.path("xdg-state"));
        assert_eq!(files, Vec::<String>::new(), "{telling}");
    }
    house.stops_clean().await;
}

#[journey]
async fn only_a_server_that_was_given_it_hears_who_may_use_the_network_proxy() {
    const LOGIN: &str = "me:proxy-pass-5f1e9c";
    let address = format!("http://{LOGIN}@127.0.0.1:9");
    let told = format!("cannot connect through {address}\n");
    let server = |name| fake(name).tool("env", Step::Environment);
    let house = house([
        server("plain").before([Step::Stderr(told)]),
        server("given").setting("inherit_env = [\"HTTPS_PROXY\"]"),
    ]);
    house.cli(["reindex"]).await.ended(0);
    let mut command = house.command(["serve", "--standalone"]);
    command
        .env("HTTPS_PROXY", &address)
        .env("http_proxy", "http://127.0.0.1:9");
    let client = Client::start(command);
    client.initialize("2025-11-25").await;
    let plain = crate::answered_in_the_end(&client, "plain/env", &json!({})).await;
    assert!(!plain.contains("proxy-pass"), "{plain}");
    assert!(plain.contains("http://127.0.0.1:9"), "{plain}");
    let given = crate::answered_in_the_end(&client, "given/env", &json!({})).await;
    assert!(given.contains(&address), "{given}");
    client.close().await;
    let log = house.cli(["logs", "plain"]).await;
    assert!(
        log.stdout.contains("through http://***@127"),
        "{}",
        log.stdout
    );
    house.stops_clean().await;
}

/// Returns the command and the script file of a fake that another program starts.
fn house_table(house: &House, server: Fake) -> (String, String) {
    let script = serde_json::to_string(&server.into_script()).unwrap();
    let file = house.write("frail.json", &script);
    let command = crate::programs().fake_server;
    (command.display().to_string(), file.display().to_string())
}

/// Returns the files below the folder that contain this text.
fn files_with(text: &str, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(text, &path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let is_in = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        found.extend(is_in.then(|| path.display().to_string()));
    }
    found
}
