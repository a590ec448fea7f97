//! The response to `tools/list`: the same bytes for any set of servers.

use std::sync::LazyLock;

use excerpt::tokens::{count, estimate};
use jsonrpc::Fields;
use serde_json::value::RawValue;

use crate::app_use::FRAME;

/// The name of the tool that finds tools.
pub const SEARCH: &str = "search_tools";
/// The name of the tool that describes a tool in full.
pub const DESCRIBE: &str = "describe_tool";
/// The name of the tool that calls a tool.
pub const EXECUTE: &str = "execute_dynamic_tool";

/// The three tools, literally (interface, section 3).
pub const TOOLS: &str = concat!(
    r#"[{"name":"search_tools","#,
    r#""description":"Find tools on the connected servers. Query by action in English, e.g. \"create github issue\". Hits read name(arguments) - purpose; when the arguments are clear, call execute_dynamic_tool next.","#,
    r#""inputSchema":{"type":"object","properties":{"#,
    r#""query":{"type":"string"},"#,
    r#""category":{"type":"string","description":"category or server name"},"#,
    r#""max_results":{"type":"integer","default":5}},"required":["query"]},"#,
    r#""annotations":{"readOnlyHint":true,"openWorldHint":false},"#,
    r#""_meta":{"anthropic/alwaysLoad":true}},"#,
    r#"{"name":"describe_tool","#,
    r#""description":"Full input schema, notes and example of one tool, when its signature is not enough.","#,
    r#""inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"#,
    r#""annotations":{"readOnlyHint":true,"openWorldHint":false},"#,
    r#""_meta":{"anthropic/alwaysLoad":true}},"#,
    r#"{"name":"execute_dynamic_tool","#,
    r#""description":"Call a tool by the name search_tools gave. Long results are cut and say how to read on.","#,
    r#""inputSchema":{"type":"object","properties":{"#,
    r#""tool_name":{"type":"string"},"#,
    r#""tool_input":{"type":"object","description":"the tool's arguments","additionalProperties":true}},"#,
    r#""required":["tool_name","tool_input"]},"#,
    r#""annotations":{"readOnlyHint":false,"openWorldHint":true},"#,
    r#""_meta":{"anthropic/alwaysLoad":true}}]"#,
);

/// The same three for a client that shows apps: the last one is shown by our page.
pub(crate) static TOOLS_WITH_APPS: LazyLock<String> = LazyLock::new(|| {
    let open = TOOLS
        .strip_suffix("}}]")
        .expect("the list ends with a `_meta`");
    format!(r#"{open},"ui":{{"resourceUri":"{FRAME}"}}}}}}]"#)
});

/// Tokens of the definitions; a test counts them.
pub(crate) const OUR_TOKENS: usize = 220;

/// Counts the tokens of our own three definitions.
pub fn count_ours() -> usize {
    let tools: Vec<&RawValue> = serde_json::from_str(TOOLS).expect("a list of three");
    tools.iter().map(|tool| count_definition(tool.get())).sum()
}

/// Counts the tokens of one tool's definition as sent to a model: its name, description and input
/// schema. Clients do not show a model the rest (annotations, `_meta`, output schema).
pub fn count_definition(json: &str) -> usize {
    count(&visible_part(json))
}

/// Estimates the same tokens.
pub fn estimate_definition(json: &str) -> usize {
    estimate(&visible_part(json))
}

fn visible_part(json: &str) -> String {
    let Some(fields) = Fields::of(json) else {
        return json.to_owned();
    };
    let members = ["name", "description", "inputSchema"].into_iter();
    let members = members.filter_map(|key| {
        let value = tool::minified(fields.get(key)?.get());
        Some(format!("\"{key}\":{value}"))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_is_all_that_clients_with_apps_get_besides() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let mut with_apps = read(&super::TOOLS_WITH_APPS);
        let meta = with_apps[2]["_meta"].as_object_mut().unwrap();
        let ui = meta.remove("ui").unwrap();
        assert_eq!(ui, serde_json::json!({"resourceUri": "ui://proxy/frame"}));
        assert_eq!(with_apps, read(super::TOOLS));
    }

    #[test]
    fn our_definitions_cost_what_is_written_down() {
        assert_eq!(super::count_ours(), super::OUR_TOKENS);
    }
}
