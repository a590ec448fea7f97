//! What tool definitions cost a model that has them loaded up front.

use excerpt::tokens::{count, estimate};
use jsonrpc::Fields;
use serde_json::value::RawValue;

use super::TOOLS;

/// What one tool's definition costs a model: its name, description and input schema. Clients do
/// not show a model the rest (annotations, `_meta`, output schema).
pub fn of_definition(json: &str) -> usize {
    count(&shown(json))
}

/// The same without loading the tokenizer.
pub fn estimate_of_definition(json: &str) -> usize {
    estimate(&shown(json))
}

fn shown(json: &str) -> String {
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

/// What our own three definitions cost.
pub fn of_ours() -> usize {
    let tools: Vec<&RawValue> = serde_json::from_str(TOOLS).expect("a list of three");
    tools.iter().map(|tool| of_definition(tool.get())).sum()
}
