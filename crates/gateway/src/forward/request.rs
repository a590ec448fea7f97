//! A request that concerns no tool: its method, and its `params` member by member.

use std::borrow::Cow;

use jsonrpc::{Json, quote, text_of};
use serde_json::value::RawValue;

use super::error::ForwardError;

/// A method that is answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    ListPrompts,
    GetPrompt,
    ListResources,
    ListTemplates,
    ReadResource,
    Complete,
    ListSkills,
    GetSkill,
}

impl Method {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "prompts/list" => Self::ListPrompts,
            "prompts/get" => Self::GetPrompt,
            "resources/list" => Self::ListResources,
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource,
            "completion/complete" => Self::Complete,
            "skills/list" => Self::ListSkills,
            "skills/get" => Self::GetSkill,
            _ => return None,
        })
    }
}

/// The `params` of such a request without its `_meta`, each member as it came.
pub(crate) use fleet::Params;

/// A member that has to be a text.
pub(crate) fn text(params: &Params, key: &str) -> Result<String, ForwardError> {
    let value = member(params, key);
    let raw: Option<&RawValue> = value.and_then(|it| serde_json::from_str(it.as_str()).ok());
    let text = raw.and_then(text_of).filter(|text| !text.is_empty());
    let missing =
        || ForwardError::params(format!("Invalid params: `{key}` is missing; it is a text"));
    text.map(Cow::into_owned).ok_or_else(missing)
}

pub(super) fn member<'p>(params: &'p Params, key: &str) -> Option<&'p Json> {
    let found = params.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

/// The members of a request, with one of them replaced.
pub(super) fn replaced(params: &Params, key: &'static str, value: Json) -> Params {
    let others = params.iter().filter(|(name, _)| name != key).cloned();
    std::iter::once((Cow::Borrowed(key), value))
        .chain(others)
        .collect()
}

pub(crate) fn json_text(text: &str) -> Json {
    Json::of_built(quote(text))
}
