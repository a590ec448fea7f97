//! Tests with the tools of real servers: the cost of search hits, and that this crate handles every
//! tool.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{fs, io::Write as _, path::Path};

use serde_json::Value;
use tiktoken_rs::o200k_base_singleton;
use tool::{Checker, Tool, example, parameters, purpose, signature};

/// The maximum tokens of one hit, and the maximum mean: a response with five hits also has a line
/// of counts and must stay under 200 tokens (interface, section 4).
const HIT_TOKENS_MAX: usize = 90;
const HIT_TOKENS_MEAN_MAX: usize = 37;

/// The minimum percentage of schemas that compile, and of schemas with a generated example.
const SEEING_PERCENT_MIN: usize = 99;
const SHOWN_PERCENT_MIN: usize = 99;

#[test]
fn hits_of_real_tools_are_cheap() {
    let mut costs: Vec<usize> = Vec::new();
    for (server, tool) in tools() {
        let signature = signature(&tool.input_schema(), "");
        let hit = format!(
            "{server}/{}{signature} - {}\n",
            tool.name(),
            purpose(&tool, None, None, &[])
        );
        let cost = o200k_base_singleton().encode_ordinary(&hit).len();
        assert!(cost <= HIT_TOKENS_MAX, "{cost} tokens: {hit}");
        assert_eq!(hit.lines().count(), 1, "{hit}");
        costs.push(cost);
    }
    costs.sort_unstable();
    let total: usize = costs.iter().sum();
    let at = |percent: usize| costs[(costs.len() - 1) * percent / 100];
    assert!(
        total <= HIT_TOKENS_MEAN_MAX * costs.len(),
        "{total} tokens for {} tools, p50 {}, p90 {}, max {}",
        costs.len(),
        at(50),
        at(90),
        at(100)
    );
}

#[test]
fn real_tools_are_read_checked_and_shown() {
    let tools = tools();
    let mut seeing = 0;
    let mut shown = 0;
    for (server, tool) in &tools {
        let schema = tool.input_schema();
        let checker = Checker::new(&schema);
        seeing += usize::from(!checker.is_blind());
        let names = parameters(&schema)
            .into_iter()
            .map(|parameter| parameter.name);
        assert!(
            names.into_iter().all(|name| schema.contains(&name)),
            "{server}/{}",
            tool.name()
        );
        let Some(example) = example(&schema) else {
            continue;
        };
        let arguments = example.as_object().unwrap();
        assert_eq!(
            checker.check(arguments),
            Ok(None),
            "{server}/{}",
            tool.name()
        );
        shown += 1;
    }
    let count = tools.len();
    assert!(
        seeing * 100 >= count * SEEING_PERCENT_MIN,
        "{seeing} of {count} can be checked"
    );
    assert!(
        shown * 100 >= count * SHOWN_PERCENT_MIN,
        "{shown} of {count} have an example"
    );
}

/// Returns every tool of the catalogues in the repository, or of the larger collection beside it if
/// there is one, and a few tools written for this test.
fn tools() -> Vec<(String, Tool)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let larger = root.join("../shared/servers/snapshots");
    let folder = if larger.exists() {
        larger
    } else {
        root.join("tests/catalogues")
    };
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|it| it == "json"));
    let theirs: Vec<_> = files.flat_map(|file| tools_of(&file)).collect();
    assert!(theirs.len() >= TOOLS_MIN, "{} tools", theirs.len());
    // The output of `eprintln!` is hidden while the test passes.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "real_tools: {} tools", theirs.len()).unwrap();
    theirs.into_iter().chain(own_tools()).collect()
}

/// The number of tools in the repository.
const TOOLS_MIN: usize = 344;

fn tools_of(file: &Path) -> Vec<(String, Tool)> {
    let server = file.file_stem().unwrap().to_string_lossy().into_owned();
    let snapshot: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let tools = snapshot["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| (server.clone(), Tool::parse(&tool.to_string()).unwrap()))
        .collect()
}

/// Tools like those of real servers, in our own words: plain, without parameters, with many
/// parameters, with alternatives.
const OWN_TOOLS: &str = r##"[
  {"name": "add_note", "description": "Write a note.\n\nIt is kept until it is deleted.",
   "inputSchema": {"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
     "title": {"type": "string", "maxLength": 80}, "body": {"type": "string"},
     "tags": {"type": "array", "items": {"type": "string"}}}}},
  {"name": "list-notes", "inputSchema": {"type": "object"}},
  {"name": "clock.now", "description": "Tell the time, e.g. in Paris. Uses the system's clock.",
   "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
     "timezone": {"type": "string", "default": "UTC"}, "format": {"enum": ["iso", "unix", "rfc2822"]}}}},
  {"name": "plan_trip", "description": "Plan a trip by train, ship or bicycle through as many places as there are days, with hotels and meals.",
   "inputSchema": {"type": "object", "required": ["stops", "travellers"], "properties": {
     "stops": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/stop"}},
     "travellers": {"type": "integer", "minimum": 1, "maximum": 9},
     "budget": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": null}},
    "$defs": {"stop": {"type": "object", "required": ["city", "arrival"], "properties": {
      "city": {"type": "string"}, "arrival": {"type": "string", "format": "date"},
      "hotel": {"type": "object", "properties": {"stars": {"type": "integer"}}}}}}}},
  {"name": "paint", "description": "画一幅画。",
   "inputSchema": {"type": "object", "required": ["shape"], "properties": {"shape": {"oneOf": [
     {"type": "object", "required": ["kind", "radius"], "properties": {"kind": {"const": "circle"}, "radius": {"type": "number", "exclusiveMinimum": 0}}},
     {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "dot"}}}]}}}},
  {"name": "files.v2__read.many-at_once__with.a.name.as.long.as.names.get.64",
   "description": "Read files. Paths are taken from the root.", "inputSchema": {"type": "object", "required": ["paths"],
     "properties": {"paths": {"type": ["array", "null"], "items": {"type": "string"}}, "If-Match": {"type": "string"}}}},
  {"name": "raw_request", "inputSchema": {"type": "object", "additionalProperties": true}}
]"##;

fn own_tools() -> Vec<(String, Tool)> {
    let tools: Vec<Value> = serde_json::from_str(OWN_TOOLS).unwrap();
    let tools = tools
        .iter()
        .map(|tool| Tool::parse(&tool.to_string()).unwrap());
    tools.map(|tool| ("own".to_owned(), tool)).collect()
}
