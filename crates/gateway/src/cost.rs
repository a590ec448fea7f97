//! The cost of tool definitions for a model that has them loaded up front.

use excerpt::tokens::{count, estimate};
use jsonrpc::Fields;

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
