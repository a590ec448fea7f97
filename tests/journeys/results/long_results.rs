//! A long result of any kind: the first response fits and is useful, and all parts joined are the
//! server's text.

use std::fmt::Write as _;

use journeys::{
    client::{Client, Reply},
    fake::{Step, payload},
    house::{Fake, House, fake},
};
use serde_json::{Value, json};

use crate::{handle, house, tokens};

/// The default budget of a result, in tokens.
pub(crate) const BUDGET: usize = 4_000;

pub(crate) fn texts(reply: &Reply) -> Vec<String> {
    let blocks = reply.content();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.map(str::to_owned).collect()
}

/// Returns the texts of a reply and checks that they fit.
#[track_caller]
pub(crate) fn fitting(reply: &Reply, budget: usize) -> Vec<String> {
    let texts = texts(reply);
    let cost: usize = texts.iter().map(|text| tokens(text)).sum();
    assert!(
        cost <= budget,
        "{cost} tokens of {budget}: {:?}",
        texts.last()
    );
    texts
}

pub(crate) async fn read(client: &Client, arguments: Value) -> Reply {
    client.execute("proxy/read_result", arguments).await
}

/// Returns the number of parts in the note after a part.
#[track_caller]
fn parts(note: &str, part: usize) -> usize {
    let start = format!("[part {part} of ");
    let rest = note
        .strip_prefix(&start)
        .unwrap_or_else(|| panic!("{note}"));
    let digits: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .collect();
    digits.replace(',', "").parse().unwrap()
}

/// Reads every part and returns them joined.
pub(crate) async fn joined(client: &Client, footer: &str, budget: usize) -> String {
    let mut whole = String::new();
    for part in 1.. {
        let reply = read(client, json!({ "handle": handle(footer), "part": part })).await;
        let mut texts = fitting(&reply, budget);
        let note = texts.pop().unwrap();
        whole.extend(texts);
        if part == parts(&note, part) {
            break;
        }
    }
    whole
}

pub(crate) async fn served(
    tools: impl IntoIterator<Item = (&'static str, Step)>,
) -> (House, Client) {
    let server = tools
        .into_iter()
        .fold(fake("big"), |server: Fake, (name, step)| {
            server.tool(name, step)
        });
    let house = house([server.setting("timeout_s = 50")]);
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

pub(crate) fn items(count: usize) -> Vec<Value> {
    let item = |id| json!({ "id": id, "title": format!("Broken link on page {id}"), "state": "open", "labels": ["bug"] });
    (0..count).map(item).collect()
}

fn repeated(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "{}", line(number)).unwrap();
    }
    text
}

pub(crate) fn log() -> String {
    let lines = repeated(3_000, |at| {
        let level = if at % 200 == 7 { "ERROR" } else { "INFO" };
        format!(
            "2026-01-02T03:04:{:02}Z {level} worker {at} has looked at its queue",
            at % 60
        )
    });
    lines + "2026-01-02T04:00:00Z FATAL the very last line\n"
}

fn base64() -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(letters[usize::try_from(seed >> 58).unwrap()])
    };
    "iVBORw0KGgo".to_owned() + &(0..40_000).map(|_| next()).collect::<String>()
}

/// A kind of text: its name, the text, and the start of its described shape.
type Case = (&'static str, String, &'static str);

fn json_kinds() -> Vec<Case> {
    let nodes = json!({ "issues": { "total": 700, "nodes": items(700) } });
    let opened = repeated(3_000, |at| format!("{{\"k{at}\":"));
    let nested = opened.replace('\n', "") + "1" + &"}".repeat(3_000);
    let lines = repeated(900, |at| items(at + 1)[at].to_string());
    vec![
        (
            "array",
            json!(items(847)).to_string(),
            "847 items of {id, title, state, labels[]}",
        ),
        (
            "pretty",
            format!("{:#}", json!(items(500))),
            "500 items of {id, title, state, labels[]}",
        ),
        (
            "object",
            json!({ "total": 500, "items": items(500) }).to_string(),
            "object {total, items[500] of {id, title, state, labels[]}}",
        ),
        (
            "deep",
            json!({ "data": { "repository": nodes } }).to_string(),
            "object {data{}}",
        ),
        ("nested", nested, "object {k0{}}"),
        (
            "json_lines",
            lines,
            "900 lines of JSON of {id, title, state, labels[]}",
        ),
    ]
}

fn line_kinds() -> Vec<Case> {
    let rows = repeated(3_000, |at| format!("{at},\"thing, {at}\",{at}.50"));
    let part = "## Part\n\nSome words stand here, and [a link](https://example.com).\n\n";
    let found = repeated(2_000, |at| {
        format!("src/file{}.rs:{at}: let x = {at};", at / 100)
    });
    let code = repeated(1_500, |at| {
        format!("fn name_{at}() {{\n    let x = {at};\n}}\n")
    });
    vec![
        (
            "csv",
            "id,name,price\n".to_owned() + &rows,
            "3,001 lines of a table with 3 columns: id, name, price",
        ),
        (
            "markdown",
            "# Guide\n\n".to_owned() + &part.repeat(400),
            "1,602 lines of Markdown; sections: Guide, Part",
        ),
        (
            "log",
            log(),
            "3,001 lines of log: FATAL 1, ERROR 15, INFO 2,985",
        ),
        (
            "search",
            found,
            "2,000 lines found in 20 files: src/file0.rs 100",
        ),
        ("code", code, "6,000 lines of code"),
    ]
}

fn text_kinds() -> Vec<Case> {
    let sentences = "This is a sentence about nothing. ".repeat(2_000);
    let scripts = "日本語の文章です。Ünïcödé 🎉 текст.\n".repeat(1_500);
    vec![
        ("prose", sentences, "1 line of 68,000 characters"),
        (
            "long",
            repeated(6_000, |at| {
                format!("line {at} of a text that is cut when it is read on")
            }),
            "6,000 lines",
        ),
        ("other_scripts", scripts, "1,500 lines"),
        ("base64", base64(), "base64, 40,011 characters"),
        ("blanks", " \n\t".repeat(30_000), ""),
        (
            "one_letter",
            "a".repeat(100_000),
            "1 line of 100,000 characters",
        ),
    ]
}

/// Splits a cut text into the heading, the excerpt and the footer.
fn apart<'a>(cut: &'a str, whole: &str) -> (&'a str, &'a str, &'a str) {
    let (told, rest) = cut.split_once('\n').expect("the text has a heading");
    let (shown, footer) = rest.split_at(rest.rfind("[cut: ").expect("the text has a footer"));
    // The newline before the footer is ours if the text has none there.
    let has_it = if shown.contains(" lines between ") {
        whole.ends_with('\n')
    } else {
        whole.starts_with(shown)
    };
    let is_ours = shown.ends_with('\n') && !has_it;
    (
        told,
        if is_ours {
            &shown[..shown.len() - 1]
        } else {
            shown
        },
        footer,
    )
}

/// Splits the shown lines at the mark between the first and the last ones.
pub(crate) fn ends(shown: &str) -> (&str, &str) {
    let Some((before, tail)) = shown.split_once(" lines between …]\n") else {
        return (shown, "");
    };
    let (head, _) = before.rsplit_once("[… ").unwrap();
    (head, tail)
}

#[journey]
async fn every_kind_is_cut_to_fit_and_its_parts_joined_are_the_whole() {
    let kinds = [json_kinds(), line_kinds(), text_kinds()].concat();
    let tools = kinds
        .iter()
        .map(|(name, text, _)| (*name, Step::Text(text.clone())));
    let (house, client) = served(tools).await;
    for (name, text, shape) in kinds {
        let reply = client.execute(&format!("big/{name}"), json!({})).await;
        let first = fitting(&reply, BUDGET);
        let [only] = first.as_slice() else {
            panic!("{name}: one text became {} blocks", first.len());
        };
        let (told, shown, footer) = apart(only, &text);
        let (cost, said) = told.split_once(" tokens; ").unwrap();
        assert!(cost.starts_with("[whole: "), "{name}: {told}");
        assert!(said.starts_with(shape), "{name}: {told}");
        assert!(footer.starts_with("[cut: "), "{name}: {footer}");
        assert_eq!(footer.contains(" part 1 of about "), name == "long");
        if ["array", "pretty", "object", "deep"].contains(&name) {
            serde_json::from_str::<Value>(shown).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(footer.contains(" items"), "{name}: {footer}");
            assert!(
                tokens(shown) > BUDGET * 3 / 4,
                "{name}: {} tokens",
                tokens(shown)
            );
        } else if name == "base64" {
            assert!(tokens(shown) < 100, "{name}: {shown}");
        } else if name != "nested" {
            let (head, tail) = ends(shown);
            assert!(text.starts_with(head) && text.ends_with(tail), "{name}");
            let of_lines = [
                "json_lines",
                "log",
                "search",
                "other_scripts",
                "blanks",
                "long",
            ];
            assert_eq!(!tail.is_empty(), of_lines.contains(&name), "{name}");
            let says = footer.contains(" and last ");
            assert_eq!(says, of_lines.contains(&name), "{name}: {footer}");
            assert!(
                tokens(shown) > BUDGET / 2,
                "{name}: {} tokens",
                tokens(shown)
            );
        }
        assert_eq!(joined(&client, footer, BUDGET).await, text, "{name}");
        let printed = house.cli(["call", "--handle", handle(footer)]).await;
        assert_eq!(printed.ended(0), text, "{name}");
    }
    house.stops_clean().await;
}

#[journey(alone = "a daemon reads a changed file with a delay")]
async fn a_budget_is_obeyed_from_wherever_it_comes() {
    let text = json!(items(600)).to_string();
    let (house, client) = served([
        ("list", Step::Text(text.clone())),
        ("own", Step::Text(text.clone())),
    ])
    .await;
    for budget in [200, 333, 1_000, 2_500, 10_000] {
        let call = json!({ "tool_name": "big/list", "tool_input": {}, "max_tokens": budget });
        let reply = client.call("execute_dynamic_tool", call).await;
        let first = fitting(&reply, budget);
        assert_eq!(joined(&client, first.last().unwrap(), budget).await, text);
        let whole = json!({ "handle": handle(first.last().unwrap()), "part": 1 });
        let call =
            json!({ "tool_name": "proxy/read_result", "tool_input": whole, "max_tokens": 250 });
        fitting(&client.call("execute_dynamic_tool", call).await, 250);
    }
    let call = json!({ "tool_name": "big/list", "tool_input": {}, "raw": true });
    assert_eq!(client.call("execute_dynamic_tool", call).await.good(), text);
    house.configure_more(
        "max_tokens = 1500\n[servers.big.overlay.own]\nmax_tokens = 700\n[results]\nmax_tokens = 900",
    );
    let client = house.client().await;
    let of = async |tool| fitting(&client.execute(tool, json!({})).await, 1_500).concat();
    assert!(
        tokens(&of("big/list").await) > 900,
        "the server allows more"
    );
    assert!(
        tokens(&of("big/own").await) <= 700,
        "the tool has its own limit"
    );
    house.stops_clean().await;
}

#[journey]
async fn several_texts_share_the_budget_and_what_is_no_text_passes() {
    let text = |text: String| json!({ "type": "text", "text": text });
    let picture = json!({ "type": "image", "data": "A".repeat(60_000), "mimeType": "image/png" });
    let link = json!({ "type": "resource_link", "uri": "file:///x", "name": "x" });
    let page = json!({ "type": "resource", "resource": { "uri": "file:///y", "text": payload::lines(900) } });
    let blocks = [
        text("short".to_owned()),
        text(log()),
        picture.clone(),
        text(json!(items(700)).to_string()),
        link.clone(),
        page,
        json!({ "type": "hologram", "beams": items(400) }),
    ];
    let (house, client) = served([(
        "mixed",
        Step::Result(json!({ "content": blocks, "_meta": { "k": 1 } })),
    )])
    .await;
    let reply = client.execute("big/mixed", json!({})).await;
    assert_eq!(reply.result()["_meta"], json!({ "k": 1 }));
    let content = reply.content();
    assert_eq!(content[3], picture);
    assert_eq!(content[5], link);
    let page = &content[6];
    assert_eq!(page["resource"]["uri"], "file:///y");
    let shown = page["resource"]["text"].as_str().unwrap();
    let (head, tail) = ends(shown);
    let whole = payload::lines(900);
    let is_cut = whole.starts_with(head) && whole.ends_with(tail) && !tail.is_empty();
    assert!(is_cut && shown.len() > 2_000, "{shown}");
    let first = fitting(&reply, BUDGET - tokens(shown));
    assert_eq!(first[1], "short");
    let last = content.last().unwrap()["text"].as_str().unwrap();
    let hologram = blocks[6].to_string();
    let whole = [
        "short",
        &log(),
        &json!(items(700)).to_string(),
        &payload::lines(900),
        &hologram,
    ]
    .concat();
    assert_eq!(joined(&client, last, BUDGET).await, whole);
    let json = house
        .cli(["call", "--handle", handle(last), "--json"])
        .await
        .json();
    assert_eq!(json, json!({ "content": blocks, "_meta": { "k": 1 } }));
    house.stops_clean().await;
}
