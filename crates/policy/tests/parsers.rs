//! Rules on files, compared with the parsers that servers use: Node's `URL` and Python's `urllib`.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use policy::{Effects, Policy, PolicyVerdict, Preset, RequestKind, Rule, Subject};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

const SPELLINGS: usize = 600;

/// The working directory of the server, which a rule does not know.
const BASE: &str = "/unknown/base/of/server";

/// Prints the paths that Node reads from each text.
const NODE: &str = r"
const { fileURLToPath, parse } = require('node:url');
const path = require('node:path').posix;
const base = process.argv[1];
const texts = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const paths = texts.map(text => {
  const found = new Set();
  const add = make => { try { const p = make(); if (typeof p === 'string') found.add(path.resolve(base, p)); } catch {} };
  const decode = decodeURIComponent;
  const file = make => { const url = make(); if (url.protocol !== 'file:') throw 0; return url; };
  // The parser encodes more than the text did, which is no other path.
  const byte = code => text.includes(code) ? code : String.fromCharCode(parseInt(code.slice(1), 16));
  const asWritten = path => /^[\x00-\x7f]*$/.test(path)
    ? Buffer.from(path.replace(/%[0-9a-f]{2}/gi, byte), 'latin1').toString()
    : path.replaceAll('%20', text.includes('%20') ? '%20' : ' ');
  for (const make of [() => new URL(text), () => new URL(text, 'file://' + base + '/')]) {
    add(() => asWritten(file(make).pathname));
    add(() => decode(file(make).pathname));
    add(() => fileURLToPath(file(make)));
  }
  add(() => asWritten(file(() => parse(text)).pathname));
  add(() => decode(file(() => parse(text)).pathname));
  if (!/^[a-z][a-z]+:/i.test(text.trim())) {
    add(() => text);
    add(() => text.trim());
    add(() => decode(text));
  }
  if (text.startsWith('file://')) add(() => decode(text.slice(7)));
  return [...found];
});
console.log(JSON.stringify(paths));
";

/// Prints the paths that Python reads from each text.
const PYTHON: &str = r"
import json, os.path, sys
from urllib.parse import unquote, urlparse, urlsplit
from urllib.request import Request, unwrap, url2pathname
base = sys.argv[1]
def read(text):
    found = set()
    def add(make):
        try:
            path = os.path.normpath(os.path.join(base, make()))
            found.add('/' + path.lstrip('/'))
        except Exception:
            pass
    for split in (urlsplit, urlparse):
        try:
            parts = split(text)
        except ValueError:
            continue
        if parts.scheme in ('', 'file'):
            add(lambda: parts.path)
            add(lambda: unquote(parts.path))
            add(lambda: url2pathname(parts.path))
    def opened():
        request = Request(unwrap(text))
        if request.type != 'file':
            raise ValueError
        return url2pathname(request.selector)
    add(opened)
    if text.startswith('file://'):
        add(lambda: unquote(text.removeprefix('file://')))
    return sorted(found)
print(json.dumps([read(text) for text in json.load(sys.stdin)]))
";

fn ask_parser(program: &str, arguments: [&str; 3], texts: &[String]) -> Vec<Vec<String>> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("NODE_NO_WARNINGS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs `{program}`: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(&serde_json::to_vec(texts).unwrap())
        .unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn folders() -> impl Strategy<Value = String> {
    let names = [
        "vault",
        "my keys",
        "schlüssel",
        "50%25",
        "a#b",
        "q?",
        "v;1",
        ".ssh",
        "x...y",
        "[a]",
    ];
    prop::collection::vec(select(names.to_vec()), 1..4)
        .prop_map(|names| format!("/{}", names.join("/")))
}

/// One character of a name, as an address may write it.
fn written_char(c: char) -> impl Strategy<Value = String> {
    let encode = |case: fn(u8) -> String| {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).bytes();
        bytes.map(case).collect::<String>()
    };
    let encoded = encode(|byte| format!("%{byte:02x}"));
    let upper = encode(|byte| format!("%{byte:02X}"));
    let twice = encode(|byte| format!("%25{byte:02x}"));
    let breaks = ["\t", "\n", "\r", "\r\n"].map(|it| format!("{it}{c}"));
    prop_oneof![
        40 => Just(c.to_string()),
        2 => Just(encoded),
        1 => Just(upper),
        1 => Just(twice),
        1 => select(breaks.to_vec()),
    ]
}

fn written_name(name: &str) -> impl Strategy<Value = String> + use<> {
    let chars: Vec<_> = name.chars().map(written_char).collect();
    chars.prop_map(|chars| chars.concat())
}

fn separator() -> impl Strategy<Value = String> {
    let others = [
        "//",
        "/./",
        "/x/../",
        "\\",
        "%2f",
        "%5c",
        "/%2e/",
        "/x/%2E%2e/",
        "/x/.%2e/",
        "/.../../",
        "/x/.\t./",
        "/x/.\n./",
        "\\x\\..\\",
        "/x%2f../",
        "/C:/../",
        "/%252e/",
        "/../",
    ];
    prop_oneof![6 => Just("/".to_owned()), 2 => select(others.to_vec()).prop_map(str::to_owned)]
}

/// A file in the folder, in some spelling; it may also miss the folder.
fn written_file(folder: &str) -> impl Strategy<Value = String> + use<> {
    let before = [
        "",
        "",
        "file://",
        "file:",
        "FILE://",
        "File:/",
        "file:\\\\",
        "file:/\\",
        "file://localhost",
        "file://host",
        "file://user@host:1",
        "\u{1}file://",
        " file:",
        "fi\tle:",
        "\nfile:////",
        "file:///C:",
        "file:///C|",
        "C:",
        "<URL:file:",
        "//host",
        "\u{feff}file://",
        "file:/.",
        "file:///..",
        "file:../../../../..",
        "../../../..",
        "file:./",
        "%66ile://",
        "~",
    ];
    let behind = [
        "",
        "",
        "",
        "?q",
        "#f",
        "?/../../x",
        ";p",
        " ",
        "\n",
        "\u{1}",
        "%00",
        "/..",
        "/.",
    ];
    let names: Vec<_> = folder
        .split('/')
        .skip(1)
        .chain(["key"])
        .map(|name| (separator(), written_name(name)))
        .collect();
    let path = names.prop_map(|parts| {
        let parts = parts.into_iter().map(|(separator, name)| separator + &name);
        parts.collect::<String>()
    });
    let bare = any::<bool>();
    let (before, behind) = (select(before.to_vec()), select(behind.to_vec()));
    (before, path, bare, behind).prop_map(|(before, path, bare, behind)| {
        // `file:a/b` has no slash in front.
        let path = path
            .strip_prefix('/')
            .filter(|_| bare && before.contains(':'))
            .unwrap_or(&path);
        format!("{before}{path}{behind}")
    })
}

fn rule(rule: &Value) -> Policy {
    let rule = Rule::read(rule.as_object().unwrap(), None).unwrap();
    Policy::new(Preset::Open, vec![rule])
}

fn decide(
    policy: &Policy,
    kind: RequestKind,
    name: &str,
    arguments: &str,
) -> (PolicyVerdict, Option<usize>) {
    let decision = policy.decide(&Subject {
        client: "",
        profiles: &[],
        server: "fs",
        kind,
        name,
        category: "",
        effects: Effects::default(),
        arguments,
    });
    (decision.verdict, decision.rule)
}

/// A text, and the paths that each parser reads from it.
struct ParsedText {
    folder: String,
    text: String,
    paths: Vec<String>,
}

impl ParsedText {
    fn is_inside(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.folder);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// Returns the rules whose decision contradicts the paths that the parsers read.
    fn faults(&self) -> Vec<&'static str> {
        let arguments = json!({ "path": self.text }).to_string();
        let place = json!({"/path": {"inside": self.folder}});
        let deny = rule(&json!({"decision": "deny", "arguments": place}));
        let allow = rule(&json!({"decision": "allow", "arguments": place}));
        let outside = json!({"/path": {"outside": self.folder}});
        let ask_outside = rule(&json!({"decision": "ask", "arguments": outside}));
        let glob = format!("{}/*", printable::escape_pattern(&self.folder));
        let pattern = json!({"/path": glob});
        let deny_glob = rule(&json!({"decision": "deny", "arguments": pattern}));
        let deny_resource =
            rule(&json!({"decision": "deny", "resource": format!("file://{glob}")}));
        let tool = |policy: &Policy| decide(policy, RequestKind::Tool, "read", &arguments);
        let mut faults = Vec::new();
        if self.paths.iter().any(|path| self.is_inside(path))
            && tool(&deny).0 != PolicyVerdict::Deny
        {
            faults.push("deny inside");
        }
        let is_below = |path: &String| self.is_inside(path) && **path != self.folder;
        if self.paths.iter().any(is_below) {
            if tool(&deny_glob).0 != PolicyVerdict::Deny {
                faults.push("deny by a pattern");
            }
            let resource = decide(&deny_resource, RequestKind::Resource, &self.text, "{}");
            if resource.0 != PolicyVerdict::Deny {
                faults.push("deny a resource");
            }
        }
        if self.paths.iter().any(|path| !self.is_inside(path)) {
            if tool(&allow).1.is_some() {
                faults.push("allow inside");
            }
            if tool(&ask_outside).0 != PolicyVerdict::Ask {
                faults.push("ask outside");
            }
        }
        faults
    }
}

fn read_spellings(seed: u64) -> Vec<ParsedText> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let spelled = folders().prop_flat_map(|folder| {
        let text = written_file(&folder);
        (Just(folder), text)
    });
    let drawn: Vec<_> = (0..SPELLINGS)
        .map(|_| spelled.new_tree(&mut runner).unwrap().current())
        .collect();
    let (folders, texts): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
    let by_node = ask_parser("node", ["-e", NODE, BASE], &texts);
    let by_python = ask_parser("python3", ["-c", PYTHON, BASE], &texts);
    let read = folders
        .into_iter()
        .zip(texts)
        .zip(by_node.into_iter().zip(by_python));
    read.map(|((folder, text), (by_node, by_python))| ParsedText {
        folder,
        text,
        paths: [by_node, by_python].concat(),
    })
    .collect()
}

#[test]
fn a_rule_on_files_holds_for_every_path_that_a_parser_makes_of_a_text() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = env::var("PARSERS_SEED").ok().and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or_else(|| now.as_secs() ^ u64::from(now.subsec_nanos()));
    let read = read_spellings(seed);
    let reach = |read: &&ParsedText| read.paths.iter().any(|path| read.is_inside(path));
    let reached = read.iter().filter(reach).count();
    assert!(
        reached >= SPELLINGS / 8,
        "{reached} of {SPELLINGS} reach the folder"
    );
    let told = |read: &ParsedText| {
        let faults = read.faults();
        let ParsedText {
            folder,
            text,
            paths,
        } = read;
        (!faults.is_empty()).then(|| format!("{faults:?}: {text:?} in {folder:?}: {paths:?}"))
    };
    let faults: Vec<String> = read.iter().filter_map(told).collect();
    assert!(
        faults.is_empty(),
        "PARSERS_SEED={seed}\n{}",
        faults.join("\n")
    );
}
