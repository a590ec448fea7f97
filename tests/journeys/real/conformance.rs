//! The official conformance suite, as far as it applies to a server that has only tools, and
//! three of them.

use std::collections::BTreeSet;

use journeys::{
    bridge::Bridge,
    fake::Step,
    house::{Fake, fake},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{house, real_clients};

/// Asked of us directly.
const DIRECT: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "logging-set-level",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// These call tools by fixed names. A server behind us has the tools, and a bridge before us
/// makes of each call one of `execute_dynamic_tool`: what comes back went through us.
const BRIDGED: [&str; 8] = [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
];

/// Not run, and why.
const NOT_APPLICABLE: [(&str, &str); 18] = [
    ("completion-complete", "not in the fixture"),
    ("tools-call-sampling", "not in the fixture"),
    ("tools-call-elicitation", "not in the fixture"),
    ("elicitation-sep1034-defaults", "not in the fixture"),
    ("elicitation-sep1330-enums", "not in the fixture"),
    (
        "json-schema-2020-12",
        "looks for a fourth tool in `tools/list`",
    ),
    (
        "server-sse-polling",
        "streams are not resumed (decision 0011)",
    ),
    ("resources-list", "not in the fixture"),
    ("resources-read-text", "not in the fixture"),
    ("resources-read-binary", "not in the fixture"),
    ("resources-templates-read", "not in the fixture"),
    ("resources-subscribe", "not in the fixture"),
    ("resources-unsubscribe", "not in the fixture"),
    ("prompts-list", "not in the fixture"),
    ("prompts-get-simple", "not in the fixture"),
    ("prompts-get-with-args", "not in the fixture"),
    ("prompts-get-embedded-resource", "not in the fixture"),
    ("prompts-get-with-image", "not in the fixture"),
];

/// The tools that the suite wants of a server.
fn everything() -> Fake {
    let image = json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" });
    let resource = json!({ "type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "Embedded." } });
    let text = json!({ "type": "text", "text": "Several kinds." });
    let content = |blocks: &[&Value]| Step::Result(json!({ "content": blocks }));
    let logs = ["started", "processing", "completed"];
    let logs = logs.map(|data| Step::log("info", data)).into_iter();
    let progress = [0, 50, 100].map(|done| [Step::progress(done, 100), Step::WaitMs(20)]);
    let after = |steps: Vec<Step>| [steps, vec![Step::text("Done.")]].concat();
    fake("everything")
        .tool("test_simple_text", Step::text("This is a simple text."))
        .tool("test_image_content", content(&[&image]))
        .tool("test_audio_content", content(&[&audio]))
        .tool("test_embedded_resource", content(&[&resource]))
        .tool(
            "test_multiple_content_types",
            content(&[&text, &image, &resource]),
        )
        .tool("test_tool_with_logging", after(logs.collect()))
        .tool(
            "test_error_handling",
            Step::ToolError("As intended.".to_owned()),
        )
        .tool("test_tool_with_progress", after(progress.concat()))
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn every_scenario_that_applies_passes() {
    let clients = real_clients();
    let house = house([everything()]);
    house.indexed().await;
    let site = house.site().await;
    let bridge = Bridge::to(site.address(), "everything").await;
    let direct = DIRECT.map(|scenario| (scenario, site.url().to_owned()));
    let bridged = BRIDGED.map(|scenario| (scenario, bridge.url()));
    let mut waiting = direct.into_iter().chain(bridged);
    let mut running = JoinSet::new();
    loop {
        // Each is a Node.js of its own; a few at a time are enough.
        while running.len() < 3
            && let Some((scenario, url)) = waiting.next()
        {
            let clients = clients.clone();
            running.spawn(async move { (scenario, clients.conformance(&url, scenario).await) });
        }
        let Some(ended) = running.join_next().await else {
            break;
        };
        let (scenario, said) = ended.unwrap();
        let passed = said.lines().find(|line| line.starts_with("Passed: "));
        let passed = passed.unwrap_or_else(|| panic!("{scenario}:\n{said}"));
        let is_good = passed.ends_with(", 0 failed, 0 warnings") && !passed.contains(" 0/0");
        assert!(is_good, "{scenario}:\n{said}");
    }
    drop(bridge);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn no_scenario_is_forgotten() {
    let clients = real_clients();
    let there: BTreeSet<String> = clients.scenarios().await.into_iter().collect();
    let skipped = NOT_APPLICABLE.map(|(scenario, _)| scenario);
    let known = DIRECT.iter().chain(&BRIDGED).chain(&skipped);
    let known: BTreeSet<String> = known.map(ToString::to_string).collect();
    assert_eq!(known, there);
}
