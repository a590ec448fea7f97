//! A table of hostile definitions: the proxy survives all of them, sends no other request, and its
//! other tools work.

use std::fmt::Write as _;

use journey::journey;
use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::house;

/// More nested levels than the stack of any recursive function can hold.
const LEVELS: usize = 10_000;

/// The expected outcome of a call with the arguments of the row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// The arguments reach the server unchanged.
    Called,
    /// The arguments violate the schema and do not reach the server.
    Refused,
    /// The schema cannot be checked, or the tool is left out: any response is accepted.
    Answered,
}
use Then::{Answered, Called, Refused};

/// Name, schema, arguments. `URL` is an address that must not be requested.
const SCHEMAS: [(&str, &str, &str, Then); 34] = [
    (
        "cycle",
        r##"{"properties":{"a":{"$ref":"#"}}}"##,
        r#"{"a":{"a":{"a":{}}}}"#,
        Called,
    ),
    ("only_cycle", r##"{"$ref":"#"}"##, "{}", Answered),
    (
        "two_cycle",
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        "{}",
        Answered,
    ),
    (
        "cycle_of_all",
        r##"{"allOf":[{"$ref":"#"}]}"##,
        "{}",
        Answered,
    ),
    (
        "remote",
        r#"{"properties":{"a":{"$ref":"URL"}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "remote_id",
        r#"{"$id":"URL","properties":{"a":{"$ref":"other.json"}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "remote_schema",
        r#"{"$schema":"URL","properties":{"a":{"type":"string"}}}"#,
        r#"{"a":"x"}"#,
        Called,
    ),
    (
        "remote_dynamic",
        r#"{"properties":{"a":{"$dynamicRef":"URL#x"}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "file",
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "relative",
        r#"{"properties":{"a":{"$ref":"../../etc/passwd"}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "nowhere",
        r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "bad_pointer",
        r##"{"properties":{"a":{"$ref":"#/%zz~9"}}}"##,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "ref_of_number",
        r#"{"properties":{"a":{"$ref":5}}}"#,
        r#"{"a":1}"#,
        Called,
    ),
    (
        "backreference",
        r#"{"properties":{"a":{"pattern":"^(a*)*\\1$"}}}"#,
        r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#,
        Answered,
    ),
    (
        "lookahead",
        r#"{"properties":{"a":{"pattern":"^(?=(a+))a*b$"}}}"#,
        r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#,
        Answered,
    ),
    (
        "huge_pattern",
        r#"{"properties":{"a":{"pattern":"((a{1,1000}){1,1000}){1,1000}"}}}"#,
        r#"{"a":"x"}"#,
        Answered,
    ),
    (
        "bad_pattern",
        r#"{"properties":{"a":{"pattern":"("}}}"#,
        r#"{"a":"x"}"#,
        Called,
    ),
    (
        "unknown_type",
        r#"{"properties":{"a":{"type":"strnig"}}}"#,
        r#"{"a":"x"}"#,
        Called,
    ),
    (
        "type_of_number",
        r#"{"properties":{"a":{"type":5}}}"#,
        r#"{"a":"x"}"#,
        Called,
    ),
    ("required_text", r#"{"required":"a"}"#, "{}", Called),
    ("properties_list", r#"{"properties":[1,2]}"#, "{}", Called),
    (
        "negative",
        r#"{"properties":{"a":{"minLength":-1}}}"#,
        r#"{"a":"x"}"#,
        Called,
    ),
    (
        "huge_number",
        r#"{"properties":{"a":{"maximum":1e400}}}"#,
        r#"{"a":1}"#,
        Answered,
    ),
    (
        "empty_enum",
        r#"{"properties":{"a":{"enum":[]}}}"#,
        r#"{"a":1}"#,
        Answered,
    ),
    (
        "false_property",
        r#"{"properties":{"a":false}}"#,
        r#"{"a":1}"#,
        Refused,
    ),
    ("never", r#"{"type":"object","not":{}}"#, "{}", Answered),
    ("false", "false", "{}", Answered),
    ("true", "true", r#"{"a":1}"#, Answered),
    ("null", "null", r#"{"a":1}"#, Answered),
    ("list", "[]", r#"{"a":1}"#, Answered),
    ("text", "\"x\"", r#"{"a":1}"#, Answered),
    (
        "twice",
        r#"{"type":"object","type":"array"}"#,
        "{}",
        Answered,
    ),
    (
        "proto",
        r#"{"properties":{"__proto__":{"type":"string"},"$ref":{"type":"string"},"":{}}}"#,
        r#"{"__proto__":"x","$ref":"y","":1}"#,
        Called,
    ),
    (
        "surrogate",
        r#"{"properties":{"\ud800":{"type":"string"}}}"#,
        "{}",
        Answered,
    ),
];

/// Returns the same table for schemas that are too large to be written out.
fn large_schemas() -> Vec<(&'static str, String, &'static str, Then)> {
    let nested = |open: &str, shut: &str| open.repeat(LEVELS) + "{}" + &shut.repeat(LEVELS);
    let many = |row: fn(usize) -> String| (0..LEVELS).map(row).collect::<Vec<_>>().join(",");
    let deep_properties = nested(r#"{"properties":{"a":"#, "}}");
    let deep_items = nested(r#"{"items":"#, "}");
    let deep_all = nested(r#"{"allOf":["#, "]}");
    let enumerated = many(|number| format!(r#""value {number}""#));
    let wide = many(|number| format!(r#""p{number}":{{"type":"string"}}"#));
    let redos = "\"^(a+)+$\"";
    vec![
        ("deep_properties", deep_properties, "{}", Answered),
        ("deep_items", deep_items, "{}", Answered),
        ("deep_all", deep_all, "{}", Answered),
        (
            "redos",
            format!(r#"{{"properties":{{"a":{{"pattern":{redos}}}}}}}"#),
            r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#,
            Refused,
        ),
        (
            "redos_names",
            format!(r#"{{"patternProperties":{{{redos}:{{"type":"string"}}}}}}"#),
            r#"{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!":1}"#,
            Called,
        ),
        (
            "huge_enum",
            format!(r#"{{"properties":{{"a":{{"enum":[{enumerated}]}}}}}}"#),
            r#"{"a":"value 9999"}"#,
            Called,
        ),
        (
            "wide",
            format!(r#"{{"properties":{{{wide}}}}}"#),
            r#"{"p9999":"x"}"#,
            Called,
        ),
    ]
}

fn schemas() -> Vec<(&'static str, String, &'static str, Then)> {
    let written =
        SCHEMAS.map(|(name, schema, arguments, then)| (name, schema.to_owned(), arguments, then));
    written.into_iter().chain(large_schemas()).collect()
}

/// Whole definitions that are odd apart from their schema, or invalid JSON.
const DEFINITIONS: [&str; 9] = [
    r#"{"name":"surrogate_name_\ud800","inputSchema":{"type":"object"}}"#,
    r#"{"name":"lone","description":"half a pair: \udc00 here","inputSchema":{"type":"object"}}"#,
    r#"{"name":"nul","description":"a\u0000b","inputSchema":{"type":"object"}}"#,
    r#"{"name":"","inputSchema":{"type":"object"}}"#,
    r#"{"name":"..","inputSchema":{"type":"object"}}"#,
    r#"{"name":"../../etc/passwd","inputSchema":{"type":"object"}}"#,
    r#"{"name":"schemaless"}"#,
    r#"{"name":"named","name":"twice","inputSchema":{"type":"object"}}"#,
    r#"{"name":"odd_members","title":5,"annotations":[],"outputSchema":7,"icons":"x","_meta":[1],"inputSchema":{"type":"object"}}"#,
];

fn listing(url: &str) -> String {
    let mut tools = String::from(r#"{"name":"echo","inputSchema":{"type":"object"}}"#);
    for (name, schema, ..) in schemas() {
        let schema = schema.replace("URL", url);
        write!(
            tools,
            r#",{{"name":"{name}","description":"Act {name}.","inputSchema":{schema}}}"#
        )
        .unwrap();
    }
    for definition in DEFINITIONS {
        write!(tools, ",{definition}").unwrap();
    }
    format!(r#"{{"tools":[{tools}]}}"#)
}

/// Creates a server that lists all of them and returns the arguments of each call.
async fn hostile(url: &str) -> House {
    let list = listing(url);
    let mut server = fake("bad").tool("echo", Step::Echo);
    for (name, ..) in schemas() {
        server = server.tool(name, Step::Echo);
    }
    let server = server.script(|script| script.on_list = Some(vec![Step::RawResult(list)]));
    let house = house([server, fake("good").tool("echo", Step::Echo)]);
    house.cli(["reindex"]).await;
    house
}

async fn echoes(client: &Client, tool: &str) {
    let answer = client.execute(tool, json!({ "a": 1 })).await.good();
    assert_eq!(answer, r#"{"a":1}"#, "{tool}");
}

#[journey(alone = "fifty servers take long")]
async fn hostile_definitions_cost_only_themselves_and_nobody_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let house = hostile(&url).await;
    let client = house.client().await;
    let mut wrong = Vec::new();
    for (name, _, arguments, then) in schemas() {
        let tool = format!("bad/{name}");
        // Any response within the limits is accepted.
        drop(client.describe(&tool).await.text());
        let input: Value = serde_json::from_str(arguments).unwrap();
        let reply = client.execute(&tool, input).await;
        let text = reply.text();
        let was = match reply.is_error() {
            false if text == arguments => Called,
            true if text.starts_with("error invalid_input") => Refused,
            _ => Answered,
        };
        if then != Answered && was != then {
            wrong.push(format!("{name}: {then:?} expected: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for tool in ["bad/echo", "good/echo"] {
        echoes(&client, tool).await;
    }
    client.search("act deep properties").await.good();
    client.search("half a pair").await.good();
    tokio::select! {
        biased;
        asked = listener.accept() => panic!("a schema was requested: {asked:?}"),
        () = std::future::ready(()) => {}
    }
    house.stops_clean().await;
}
