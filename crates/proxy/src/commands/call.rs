//! `proxy call`: a tool's arguments as a person writes them.

use std::{io::Read as _, sync::Arc};

use anyhow::Context as _;
use gateway::{CallContext, EXECUTE, Gateway};
use serde_json::{Map, Value, value::RawValue};

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
    let mut members = vec![
        format!("\"tool_name\":{}", Value::from(call.name.as_str())),
        format!("\"tool_input\":{input}"),
        format!("\"raw\":{}", call.raw),
        format!("\"dry_run\":{}", call.dry_run),
    ];
    members.extend(call.timeout_ms.map(|ms| format!("\"timeout_ms\":{ms}")));
    members.extend(
        call.max_tokens
            .map(|count| format!("\"max_tokens\":{count}")),
    );
    let arguments = RawValue::from_string(format!("{{{}}}", members.join(",")))?;
    let reply = gateway
        .call_tool(EXECUTE, Some(&arguments), CallContext::default())
        .await;
    let reply = reply.context("one of our own tools is missing")?;
    if global.json {
        report::data(reply.json().as_str());
        return Ok(if reply.is_error() {
            Exit::Nothing
        } else {
            Exit::Success
        });
    }
    Ok(print_reply(&reply))
}

/// The arguments of `call`: one JSON object (its text is kept as it is), or pairs.
fn read_arguments(given: &[String]) -> anyhow::Result<String> {
    let text = match given {
        [] => return Ok("{}".to_owned()),
        [one] if one == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read stdin")?;
            text
        }
        [one] if one.trim_start().starts_with('{') => one.clone(),
        pairs => return Ok(Value::Object(read_pairs(pairs)?).to_string()),
    };
    let _: Map<String, Value> =
        serde_json::from_str(&text).context("the arguments are no JSON object")?;
    Ok(text)
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
