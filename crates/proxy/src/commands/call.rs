//! `proxy call`: a tool's arguments as a person writes them.

use std::{io::Read as _, sync::Arc};

use anyhow::Context as _;
use gateway::{CallContext, EXECUTE, Gateway};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::reply::print_reply;
use crate::{
    cli::{Call, Global},
    exit::Exit,
    report,
};

pub(super) async fn call(
    gateway: &Arc<Gateway>,
    global: &Global,
    call: Call,
) -> anyhow::Result<Exit> {
    let input = match read_arguments(&call.arguments) {
        Ok(input) => input,
        Err(error) => {
            report::fail(&error);
            return Ok(Exit::Usage);
        }
    };
    let arguments = to_raw_value(&Arguments {
        tool_name: &call.name,
        tool_input: input,
        raw: call.raw,
        dry_run: call.dry_run,
        timeout_ms: call.timeout_ms,
        max_tokens: call.max_tokens,
    })?;
    let reply = gateway
        .call_tool(EXECUTE, Some(&arguments), CallContext::default())
        .await;
    let reply = reply.context("one of our own tools is missing")?;
    if global.json {
        report::print_data(reply.json().as_str());
        return Ok(if reply.is_error() {
            Exit::Nothing
        } else {
            Exit::Success
        });
    }
    Ok(print_reply(&reply))
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
fn read_arguments(given: &[String]) -> anyhow::Result<Box<RawValue>> {
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
