//! Our own tools, asked as a client asks them; what they answer is printed.

use anyhow::Context as _;
use gateway::{CallContext, Gateway};
use serde_json::{Value, value::RawValue};

use crate::{exit::Exit, report};

pub(super) async fn ask_tool(
    gateway: &Gateway,
    name: &str,
    arguments: &Value,
) -> anyhow::Result<gateway::Reply> {
    let arguments = RawValue::from_string(arguments.to_string())?;
    let reply = gateway
        .call_tool(name, Some(&arguments), CallContext::default())
        .await;
    reply.context("one of our own tools is missing")
}

/// Success goes to stdout; an error is for people.
pub(super) fn print_reply(reply: &gateway::Reply) -> Exit {
    if reply.is_error() {
        report::say(&reply.printable());
        return Exit::Nothing;
    }
    report::print_data(&reply.printable());
    Exit::Success
}
