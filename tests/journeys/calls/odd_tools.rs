//! Odd tools of third parties: all can be searched, described and called.

use journeys::{
    fake::{Paging, Step},
    house::fake,
};
use serde_json::{Value, json};

use crate::house;

fn wide(parameters: usize) -> Value {
    let properties: serde_json::Map<String, Value> = (0..parameters)
        .map(|number| (format!("parameter_{number}"), json!({ "type": "string" })))
        .collect();
    json!({ "type": "object", "properties": properties })
}

/// Returns the name, description, schema and accepted arguments of each tool.
fn odd_tools() -> Vec<(String, Value, Value, Value)> {
    let object = || json!({ "type": "object" });
    let tool = |name: &str, description: Value, schema, arguments| {
        (name.to_owned(), description, schema, arguments)
    };
    vec![
        tool("undescribed", Value::Null, object(), json!({ "a": 1 })),
        tool("emptily_described", json!(""), object(), json!({})),
        tool("dotted.name.here", json!("Dotted."), object(), json!({})),
        tool(
            "double__under__score",
            json!("Underscored."),
            object(),
            json!({}),
        ),
        tool("with/slash", json!("Slashed."), object(), json!({})),
        tool(
            &"long_name_".repeat(7)[..64],
            json!("Long."),
            object(),
            json!({}),
        ),
        tool(
            "referring",
            json!("Refers."),
            json!({
                "type": "object", "properties": { "at": { "$ref": "#/$defs/Point" } }, "required": ["at"],
                "$defs": { "Point": { "type": "object", "properties": { "x": { "type": "number" } } } }
            }),
            json!({ "at": { "x": 1.5 } }),
        ),
        tool(
            "either",
            json!("Either."),
            json!({
                "type": "object", "properties": { "id": { "anyOf": [{ "type": "integer" }, { "type": "string" }] } }
            }),
            json!({ "id": "5" }),
        ),
        tool("no_properties", json!("Nothing."), object(), json!({})),
        tool(
            "wide",
            json!("Wide."),
            wide(200),
            json!({ "parameter_199": "z" }),
        ),
        tool(
            "talkative",
            json!("word ".repeat(200_000)),
            object(),
            json!({}),
        ),
        tool(
            "unicode",
            json!("Sucht Müll ☃ 日本語."),
            object(),
            json!({ "ü": "☃" }),
        ),
    ]
}

#[journey]
async fn odd_tools_are_found_described_and_called() {
    let mut server = fake("odd");
    for (name, description, schema, _) in odd_tools() {
        let mut definition = json!({ "name": name, "inputSchema": schema });
        if !description.is_null() {
            definition["description"] = description;
        }
        server = server.tool_as(definition, Step::Echo);
    }
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    for (name, _, schema, arguments) in odd_tools() {
        let full = format!("odd/{name}");
        let found = client.search(&name).await.good();
        assert!(found.contains(&full), "{full} is not in:\n{found}");
        let described = client.describe(&full).await.good();
        let input = described
            .lines()
            .find_map(|line| line.strip_prefix("input "));
        let input: Value = serde_json::from_str(input.unwrap()).unwrap();
        assert_eq!(input, schema, "{full}");
        let reply = client.execute(&full, arguments.clone()).await.good();
        assert_eq!(reply, arguments.to_string(), "{full}");
    }
    house.stops_clean().await;
}

/// An ordinary check of this schema would take years.
#[journey]
async fn a_schema_that_doubles_forty_times_is_called_and_described_like_any_other() {
    let next = |level: usize| json!({ "$ref": format!("#/$defs/d{level}") });
    let mut schema = json!({
        "type": "object", "required": ["a"], "properties": { "a": next(0) }
    });
    for level in 0..40 {
        let both = json!({ "anyOf": [next(level + 1), next(level + 1)] });
        schema["$defs"][format!("d{level}")] = both;
    }
    schema["$defs"]["d40"] = json!({ "type": "integer", "not": {} });
    let double = json!({ "name": "double", "inputSchema": schema });
    let house = house([fake("odd").tool_as(double, Step::Echo)]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let wrong = json!({ "a": "no integer" });
    let reply = client.execute("odd/double", wrong.clone()).await.good();
    assert_eq!(reply, wrong.to_string());
    let described = client.describe("odd/double").await.good();
    assert!(!described.contains("\nexample "), "{described}");
    client.search("odd/double").await.good();
    house.stops_clean().await;
}

#[journey]
async fn entries_that_are_no_tools_cost_only_themselves() {
    let server = fake("odd")
        .tool("fine", Step::Echo)
        .listed(json!({ "name": 5, "inputSchema": {} }))
        .listed(json!("no tool at all"))
        .listed(json!({ "description": "nameless" }));
    let house = house([server]);
    house.cli(["reindex"]).await;
    let client = house.client().await;
    assert_eq!(
        client.execute("odd/fine", json!({ "a": 1 })).await.good(),
        r#"{"a":1}"#
    );
    house.stops_clean().await;
}

#[journey]
async fn pages_are_read_to_the_end_and_a_turning_cursor_ends() {
    let mut paged = fake("paged").script(|it| it.page_size = Some(10));
    for number in 0..95 {
        paged = paged.tool(&format!("tool_{number}"), Step::Echo);
    }
    let turning = fake("turning")
        .tool("spin", Step::Echo)
        .script(|it| it.paging = Paging::RepeatsCursor);
    let house = house([paged, turning]);
    house.cli(["reindex"]).await;
    let client = house.client().await;
    client.execute("paged/tool_94", json!({})).await.good();
    house.stops_clean().await;
}
