//! `proxy call`: a tool's arguments as a person writes them.

use std::io::Read as _;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::cli::Call;

/// The arguments of `execute_dynamic_tool` for a call as it was typed.
pub(super) fn read_call(call: &Call) -> anyhow::Result<Box<RawValue>> {
    Ok(to_raw_value(&Arguments {
        tool_name: &call.name,
        tool_input: read_arguments(&call.arguments)?,
        raw: call.raw,
        dry_run: call.dry_run,
        timeout_ms: call.timeout_ms,
        max_tokens: call.max_tokens,
    })?)
}

/// The arguments of `execute_dynamic_tool`.
#[derive(Serialize)]
struct Arguments<'a> {
    tool_name: &'a str,
    tool_input: Box<RawValue>,
    raw: bool,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

/// The arguments of `call`: one JSON object (its text is kept as it is), or pairs.
pub(super) fn read_arguments(given: &[String]) -> anyhow::Result<Box<RawValue>> {
    let text = match given {
        [one] if one == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read stdin")?;
            text
        }
        [one] if one.trim_start().starts_with('{') => one.clone(),
        pairs => return Ok(to_raw_value(&read_pairs(pairs)?)?),
    };
    let _: Map<String, Value> =
        serde_json::from_str(&text).context("the arguments are no JSON object")?;
    Ok(RawValue::from_string(text)?)
}

fn read_pairs(pairs: &[String]) -> anyhow::Result<Map<String, Value>> {
    let pair = |pair: &String| {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("`{pair}` is neither KEY=VALUE nor a JSON object"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((key.to_owned(), value))
    };
    pairs.iter().map(pair).collect()
}
