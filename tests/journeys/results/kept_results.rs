//! Kept results after failures.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step, payload},
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::{handle, house, results::long_results::read};

async fn served() -> House {
    let server = fake("files")
        .tool("read", Step::Lines(10_000))
        .tool("huge", Step::TextOfBytes(24 << 20));
    let house = house([server.setting("timeout_s = 50")]);
    house.indexed().await;
    house
}

/// Returns the folder of the results of the only configuration of a house.
fn folder(house: &House) -> PathBuf {
    let states = house.path("xdg-state/proxy");
    let mut states = fs::read_dir(states).unwrap().filter_map(Result::ok);
    states.next().unwrap().path().join("results")
}

fn files(house: &House) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(house)).unwrap();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

async fn second_lines(client: &Client, handle: &str) -> String {
    let wanted = json!({ "handle": handle, "offset": 1, "limit": 1 });
    read(client, wanted).await.text()
}

async fn client_named(house: &House, name: &str) -> Client {
    let client = house.serve();
    let greeting = json!({
        "protocolVersion": LEGACY_VERSION,
        "capabilities": {},
        "clientInfo": { "name": name, "version": "1" },
    });
    client.request("initialize", greeting).await;
    client.notify("notifications/initialized", json!({})).await;
    client
}

#[journey]
async fn a_handle_outlives_a_restart_and_belongs_to_its_client() {
    let house = served().await;
    let first = client_named(&house, "ada").await;
    let text = first.execute("files/read", json!({})).await.good();
    let kept = handle(&text).to_owned();
    first.close().await;

    let again = client_named(&house, "ada").await;
    assert!(second_lines(&again, &kept).await.starts_with("line 2: "));
    let other = client_named(&house, "bob").await;
    let refused = second_lines(&other, &kept).await;
    let unknown = second_lines(&other, "r0123456789abcdef").await;
    assert!(refused.starts_with("error handle_expired: "), "{refused}");
    assert_eq!(
        refused.replace(&kept, "r0123456789abcdef"),
        unknown,
        "the error does not reveal that the result exists"
    );
    house.stops_clean().await;
}

#[journey]
async fn who_comes_too_late_hears_what_to_call_again() {
    let house = served().await;
    let client = house.client().await;
    let text = client.execute("files/read", json!({})).await.good();
    let kept = handle(&text).to_owned();
    // The file may be written behind the answer.
    let is_kept = || folder(&house).join(format!("{kept}.result")).exists();
    crate::until("the file of the result", is_kept).await;
    for file in files(&house) {
        let file = fs::File::options().append(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(25))
            .unwrap();
    }
    let late = second_lines(&client, &kept).await;
    assert!(late.starts_with("error handle_expired: "), "{late}");
    assert!(
        late.ends_with("Call the tool that gave it again."),
        "{late}"
    );
    // The next result removes the expired one.
    client.execute("files/read", json!({})).await.good();
    crate::until("the removal of the result", || {
        !folder(&house).join(format!("{kept}.result")).exists()
    })
    .await;
    assert_eq!(second_lines(&client, &kept).await, late);
    house.stops_clean().await;
}

#[journey]
async fn half_a_surrogate_pair_is_replaced_for_clients_and_kept() {
    let block = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let long = block(&r"tail \ud800 \udc00\ud83d\ude00\n".repeat(4_000));
    let raw = |block: &str| Step::RawResult(format!(r#"{{"content":[{block}]}}"#));
    let house = house([fake("half")
        .tool("short", raw(&block(r"tail \ud800")))
        .tool("long", raw(&long))]);
    house.indexed().await;
    let (client, site) = (house.client().await, house.site().await);
    let session = site.web().initialize("journeys", LEGACY_VERSION).await;
    for web in [None, Some(session), Some(site.web().modern("journeys"))] {
        let execute = async |tool: &str, input: Value| match &web {
            Some(web) => web.execute(tool, input).await,
            None => client.execute(tool, input).await,
        };
        let short = execute("half/short", json!({})).await;
        assert_eq!(short.good(), "tail \u{fffd}");
        assert!(short.raw().contains(r#""tail \ufffd""#), "{}", short.raw());

        let first = execute("half/long", json!({})).await.good();
        let kept = handle(&first).to_owned();
        let input = json!({"handle": kept, "unit": "bytes", "offset": 0, "limit": 60});
        let read = execute("proxy/read_result", input).await.good();
        assert!(read.starts_with(&long[..60]), "{read}");
        let file = folder(&house).join(format!("{kept}.result"));
        assert!(fs::read_to_string(file).unwrap().contains(&long));
    }
    site.stop().await;
    house.stops_clean().await;
}

#[journey]
async fn a_damaged_file_is_an_error_that_says_so() {
    let house = served().await;
    let client = house.client().await;
    let text = client.execute("files/read", json!({})).await.good();
    for file in files(&house) {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    let error = second_lines(&client, handle(&text)).await;
    assert!(
        error.contains("damaged") && error.ends_with("Call the tool that gave it again."),
        "{error}"
    );
    house.stops_clean().await;
}

#[journey]
async fn where_nothing_can_be_kept_the_answer_still_comes() {
    let house = served().await;
    let client = house.client().await;
    client.execute("files/read", json!({})).await.good();
    // A file in place of the folder: nothing can be written, as on a full disk.
    fs::remove_dir_all(folder(&house)).unwrap();
    fs::write(folder(&house), "").unwrap();
    let text = client.execute("files/read", json!({})).await.good();
    assert!(text.contains("line 1: "), "{text}");
    assert!(text.contains("The rest could not be kept: "), "{text}");
    assert!(!text.contains("handle"), "{text}");
    house.stops_clean().await;
}

/// Starts the proxy with a limit on the size of its files: writing fails midway, as on a full disk.
fn with_little_disk(house: &House) -> Client {
    let proxy = house.command(["serve", "--standalone"]);
    let mut command = tokio::process::Command::new("/bin/sh");
    let limited = r#"ulimit -f 2000; trap "" XFSZ; exec "$@""#;
    command.args(["-c", limited, "sh"]);
    command
        .arg(proxy.as_std().get_program())
        .args(proxy.as_std().get_args());
    command.env_clear();
    for (key, value) in proxy.as_std().get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command.current_dir(house.path(""));
    Client::start(command)
}

#[journey(alone = "it starts a proxy with a file size limit")]
async fn a_disk_that_fills_up_midway_leaves_no_half_of_a_result() {
    let house = served().await;
    let client = with_little_disk(&house);
    client.initialize(LEGACY_VERSION).await;
    let text = client.execute("files/huge", json!({})).await.good();
    // The failure is reported with the result, or to the reader.
    if text.contains("The rest could not be kept: ") {
        assert!(!text.contains("handle"), "{text}");
    } else {
        let error = second_lines(&client, handle(&text)).await;
        assert!(error.starts_with("error handle_expired: "), "{error}");
        assert!(error.contains("could not be kept: "), "{error}");
    }
    assert_eq!(files(&house), Vec::<PathBuf>::new());
    // A shorter result is kept.
    let text = client.execute("files/read", json!({})).await.good();
    assert!(
        second_lines(&client, handle(&text))
            .await
            .starts_with("line 2: ")
    );
    client.close().await;
    house.stops_clean().await;
}

#[journey(alone = "it kills the writing process")]
async fn a_kill_in_the_middle_of_a_write_leaves_nothing_that_is_half() {
    let house = served().await;
    for _ in 0..4 {
        let client = house.client().await;
        let (_, answer) = client
            .begin("tools/call", crate::calling("files/huge", &json!({})))
            .await;
        let seen = || fs::read_dir(folder(&house)).is_ok_and(|mut files| files.next().is_some());
        crate::until("the start of the write", seen).await;
        client.kill().await;
        drop(answer);
        house.all_gone().await.unwrap();
        let client = house.client().await;
        for file in files(&house) {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            if file.extension().is_some_and(|it| it == "result") {
                let line = second_lines(&client, &name).await;
                assert!(line.starts_with("line 2: "), "{line}");
            }
            fs::remove_file(file).unwrap();
        }
        client.close().await;
    }
    house.stops_clean().await;
}

#[journey]
async fn a_hundred_long_results_at_once_are_all_kept() {
    let server = fake("files").tool("read", Step::Lines(3_000));
    let house = house([server.setting("timeout_s = 50")]);
    house.indexed().await;
    let client = house.client().await;
    let mut answers = Vec::new();
    for _ in 0..100 {
        let calling = crate::calling("files/read", &json!({}));
        answers.push(client.begin("tools/call", calling).await.1);
    }
    let mut handles = Vec::new();
    for answer in answers {
        let text = client.within("an answer", answer).await.good();
        handles.push(handle(&text).to_owned());
    }
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), 100);
    for kept in handles.iter().step_by(9) {
        let printed = house.cli(["call", "--handle", kept]).await;
        assert_eq!(printed.ended(0), payload::lines(3_000));
    }
    house.stops_clean().await;
}

#[journey]
async fn fifty_mb_are_cut_and_read_in_bounded_memory() {
    const BYTES: usize = 50_000_000;
    let server = fake("files").tool("huge", Step::TextOfBytes(BYTES));
    let house = house([server.setting("timeout_s = 50")]);
    house.indexed().await;
    let client = house.client().await;
    let text = client.execute("files/huge", json!({})).await.good();
    let kept = handle(&text).to_owned();
    let after_cut = peak(client.pid());
    let last = json!({ "handle": kept, "offset": -40, "unit": "bytes" });
    let whole = payload::text(BYTES);
    let end = read(&client, last).await;
    assert_eq!(end.content()[0]["text"], whole[BYTES - 40..]);
    let grep = read(&client, json!({ "handle": kept, "grep": "^line 500000:" }))
        .await
        .good();
    assert!(grep.contains("500000:line 500000: what"), "{grep}");
    let after_reading = peak(client.pid());
    let megabytes = |bytes: usize| bytes / 1_000_000;
    assert!(after_cut < 6 * BYTES, "{} MB", megabytes(after_cut));
    assert!(
        after_reading < after_cut + BYTES / 2,
        "{} MB",
        megabytes(after_reading)
    );
    house.stops_clean().await;
}

/// Returns the peak memory of a process in bytes.
fn peak(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[journey]
async fn the_room_of_all_results_is_kept_to() {
    let house = served().await;
    house.configure_more("[results]\nkeep_mib = 2");
    let client = house.client().await;
    for _ in 0..6 {
        client.execute("files/read", json!({})).await.good();
    }
    let bytes = || -> u64 {
        let sizes = files(&house)
            .into_iter()
            .filter_map(|file| fs::metadata(file).ok());
        sizes.map(|about| about.len()).sum()
    };
    crate::until("the quota to apply", || bytes() <= (2 << 20) + 10_000).await;
    let value: Value = json!(files(&house).len());
    assert!(value.as_u64() >= Some(2), "{value}");
    house.stops_clean().await;
}
