//! Calls with wrong arguments, replayed: after some of them the hit has what would have prevented them.

use excerpt::tokens;
use serde_json::{Value, json};

use super::{
    ask, execute,
    memory::{Memory, TestGateway},
};
use crate::SEARCH;

/// The most tokens of a hit (interface, section 4).
const HIT_TOKENS_MAX: usize = 90;

/// A mistake that models make: the tool, the arguments as they were sent, and the parts of its schema
/// that would have prevented it.
struct Mistake {
    tool: Value,
    calls: Vec<Value>,
    wants: &'static [&'static str],
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object",
        "properties": properties, "required": required, "additionalProperties": false}})
}

/// The types of a chart, too many for a signature.
const CHART_TYPES: [&str; 12] = [
    "bar",
    "bubble",
    "candlestick",
    "funnel",
    "gauge",
    "line",
    "pie",
    "radar",
    "sankey",
    "scatter",
    "treemap",
    "violin",
];

fn mistakes() -> Vec<Mistake> {
    let mut all = plain_mistakes();
    all.extend(nested_mistakes());
    all
}

fn plain_mistakes() -> Vec<Mistake> {
    vec![
        // A word for a date.
        Mistake {
            tool: tool(
                "create_event",
                "Create an event in the calendar",
                json!({
                "summary": {"type": "string"},
                "start": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT",
                    "description": "Start in RFC 3339 with an offset, such as 2026-11-25T10:00:00+01:00"}}),
                &["summary", "start"],
            ),
            calls: vec![
                json!({"summary": "Lunch", "start": "tomorrow 12:00"}),
                json!({"summary": "Lunch", "start": "2026/11/26 12:00"}),
                json!({"summary": "Lunch", "start": "12:00"}),
            ],
            wants: &[
                "start: matching ^\\d{4}-\\d\\d-\\d\\dT",
                "RFC 3339 with an offset",
            ],
        },
        // A value of a list that the signature cuts.
        Mistake {
            tool: tool(
                "render_chart",
                "Render a chart",
                json!({
                "type": {"enum": CHART_TYPES}, "data": {"type": "array"}}),
                &["type", "data"],
            ),
            calls: vec![
                json!({"type": "doughnut", "data": []}),
                json!({"type": "area", "data": []}),
                json!({"type": "histogram", "data": []}),
            ],
            wants: &["\"pie\"", "\"violin\""],
        },
    ]
}

fn nested_mistakes() -> Vec<Mistake> {
    vec![
        // A page that is too long.
        Mistake {
            tool: tool(
                "search_commits",
                "Search commits of a repository",
                json!({
                "query": {"type": "string"},
                "per_page": {"type": "integer", "minimum": 1, "maximum": 100}}),
                &["query"],
            ),
            calls: vec![
                json!({"query": "x", "per_page": 500}),
                json!({"query": "y", "per_page": 1000}),
                json!({"query": "z", "per_page": 0}),
            ],
            wants: &["per_page: at least 1, at most 100"],
        },
        // A name in place of an identifier.
        Mistake {
            tool: tool(
                "list_charges",
                "List charges of a customer",
                json!({
                "customer": {"type": "string", "pattern": "^cus_[a-z0-9]+$",
                    "description": "Id of the customer, from find_customer; not the name"}}),
                &["customer"],
            ),
            calls: vec![
                json!({"customer": "Ada Lovelace"}),
                json!({"customer": "ada@example.org"}),
                json!({"customer": "4711"}),
            ],
            wants: &["^cus_[a-z0-9]+$", "from find_customer; not the name"],
        },
        // An operator within an item, behind a cut signature.
        Mistake {
            tool: tool(
                "query_rows",
                "Query rows of a table",
                json!({
                "table": {"type": "string"}, "limit": {"type": "integer"},
                "order_by": {"type": "string"}, "descending": {"type": "boolean"},
                "filters": {"type": "array", "items": {"type": "object", "required": ["column", "operator"],
                    "properties": {"column": {"type": "string"}, "value": {},
                        "operator": {"enum": ["eq", "neq", "gt", "lt", "like"]}}}}}),
                &["table"],
            ),
            calls: vec![
                json!({"table": "t", "filters": [{"column": "a", "operator": "=="}]}),
                json!({"table": "t", "filters": [{"column": "a", "operator": "equals"}]}),
                json!({"table": "t", "filters": [{"column": "a", "operator": ">"}, {"column": "b"}]}),
            ],
            wants: &["operator: \"eq\"|\"neq\"|\"gt\"|\"lt\"|\"like\""],
        },
    ]
}

async fn find_hit(scene: &TestGateway, name: &str) -> String {
    let found = ask(
        scene,
        SEARCH,
        &json!({"query": format!("select:desk/{name}")}),
    )
    .await;
    let found = found.printable();
    let mut lines = found.lines();
    let begin = format!("desk/{name}(");
    lines
        .find(|line| line.starts_with(&begin))
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_hit_of_a_tool_that_is_often_called_wrongly_has_what_would_have_prevented_it() {
    let done = |_: &str| Ok(json!({"content": [{"type": "text", "text": "done"}]}));
    let mut memory = Memory::default();
    for mistake in mistakes() {
        memory = memory.tool("desk", &mistake.tool, done);
    }
    let scene = memory.open().await;
    for Mistake { tool, calls, wants } in mistakes() {
        let name = tool["name"].as_str().unwrap();
        let before = find_hit(&scene, name).await;
        for (nth, call) in calls.iter().enumerate() {
            assert_eq!(find_hit(&scene, name).await, before, "after {nth} mistakes");
            let said = execute(&scene, &format!("desk/{name}"), call).await;
            assert!(said.starts_with("error invalid_input: "), "{said}");
        }
        let after = find_hit(&scene, name).await;
        assert!(after.starts_with(&before), "{after}");
        for want in wants {
            assert!(!before.contains(want), "{before}");
            assert!(after.contains(want), "{after}");
        }
        let cost = tokens::count(&after);
        assert!(cost <= HIT_TOKENS_MAX, "{cost} tokens: {after}");
    }
    assert!(scene.calls().is_empty());
}

#[tokio::test]
async fn nothing_that_a_client_wrote_is_kept_of_its_mistakes() {
    let done = |_: &str| Ok(json!({"content": [{"type": "text", "text": "done"}]}));
    let tool = tool(
        "note",
        "Write a note",
        json!({"title": {"type": "string"}}),
        &["title"],
    );
    let scene = Memory::default().tool("desk", &tool, done).open().await;
    for _ in 0..3 {
        execute(
            &scene,
            "desk/note",
            &json!({"title": {"hunter1": 1}, "hunter2": "hunter3"}),
        )
        .await;
    }
    let catalog = &scene.gateway.catalog;
    catalog.flush(std::time::Duration::from_secs(20));
    let usage = catalog.settings().state_dir.join("usage.json");
    let usage = std::fs::read_to_string(usage).unwrap();
    assert!(
        usage.contains("title") && !usage.contains("hunter"),
        "{usage}"
    );
}
