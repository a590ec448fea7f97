//! The prompts, resources and completions of a fake server.

use serde_json::{Value, json};

use super::{
    answers::{FakeRequest, error, has_resources},
    script::{FakeItem, Script},
};

/// Returns the prompt or resource that a request names.
pub(super) fn find<'s>(
    script: &'s Script,
    request: &FakeRequest,
    revealed: bool,
) -> Option<&'s FakeItem> {
    let asked = |key: &str| request.params[key].as_str().unwrap_or_default();
    let shown = |item: &&FakeItem| revealed || !item.hidden;
    match request.method.as_str() {
        "prompts/get" => {
            let mut prompts = script.prompts.iter().filter(shown);
            prompts.find(|it| it.name() == asked("name"))
        }
        "resources/read" => {
            let uri = asked("uri");
            let mut resources = script.resources.iter().filter(shown);
            let mut templates = script.templates.iter().filter(shown);
            let resource = resources.find(|it| it.text("uri") == uri);
            resource
                .or_else(|| templates.find(|it| variable(it.text("uriTemplate"), uri).is_some()))
        }
        _ => None,
    }
}

/// Returns the name and value of the template's variable, if the URI matches the template.
fn variable<'t>(template: &'t str, uri: &'t str) -> Option<(&'t str, &'t str)> {
    let (before, rest) = template.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    let value = uri.strip_prefix(before)?.strip_suffix(after)?;
    Some((name, value))
}

/// Responds to a request for which the script has no steps.
pub(super) fn answer(
    script: &Script,
    request: &FakeRequest,
    revealed: bool,
) -> Result<Value, Value> {
    let list = |items: &[FakeItem]| {
        let shown = items.iter().filter(|it| revealed || !it.hidden);
        shown.map(|it| it.definition.clone()).collect::<Value>()
    };
    let method = request.method.as_str();
    if let Some(task) = script
        .task
        .as_ref()
        .filter(|_| method.starts_with("tasks/"))
    {
        return task.answer(method, &request.params, request.is_modern());
    }
    match method {
        "prompts/list" if !script.prompts.is_empty() => {
            Ok(json!({ "prompts": list(&script.prompts) }))
        }
        "resources/list" if has_resources(script) => {
            Ok(json!({ "resources": list(&script.resources) }))
        }
        "resources/templates/list" if has_resources(script) => {
            Ok(json!({ "resourceTemplates": list(&script.templates) }))
        }
        "skills/list" if !script.skills.is_empty() => Ok(json!({ "skills": list(&script.skills) })),
        "skills/get" if !script.skills.is_empty() => {
            let mut skills = script.skills.iter();
            let skill = skills.find(|it| it.definition["uri"] == request.params["uri"]);
            let skill = skill.ok_or_else(|| error(-32602, "no such skill"))?;
            Ok(json!({ "skill": skill.definition }))
        }
        "resources/subscribe" | "resources/unsubscribe" if has_resources(script) => Ok(json!({})),
        "completion/complete" if !script.completions.is_empty() => Ok(complete(script, request)),
        "prompts/get" if !script.prompts.is_empty() => Err(error(-32602, "no such prompt")),
        "resources/read" if has_resources(script) => {
            let code = if request.is_modern() { -32602 } else { -32002 };
            let mut error = error(code, "no such resource");
            error["data"] = json!({ "uri": request.params["uri"] });
            Err(error)
        }
        _ => Err(error(-32601, &format!("no method {method}"))),
    }
}

fn complete(script: &Script, request: &FakeRequest) -> Value {
    let typed = request.params["argument"]["value"]
        .as_str()
        .unwrap_or_default();
    let values = script.completions.iter().filter(|it| it.starts_with(typed));
    let values: Vec<&String> = values.collect();
    json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })
}

/// Fills the arguments or the URI of the request into the texts of the result.
pub(super) fn fill(script: &Script, result: &Value, request: &FakeRequest) -> Value {
    let uri = request.params["uri"].as_str().unwrap_or_default();
    let templates = script.templates.iter();
    let of_template = templates.filter_map(|it| variable(it.text("uriTemplate"), uri));
    let arguments = request.params["arguments"]
        .as_object()
        .into_iter()
        .flatten();
    let arguments = arguments.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    let mut filled = result.to_string();
    for (name, value) in of_template.chain(arguments).chain([("uri", uri)]) {
        let value = Value::from(value).to_string();
        filled = filled.replace(&format!("${name}"), &value[1..value.len() - 1]);
    }
    serde_json::from_str(&filled).expect("the inserted values are escaped")
}

/// Returns the change notifications for lists with hidden items; the notification for tools is
/// always among them.
pub(super) fn changes(script: &Script) -> Vec<&'static str> {
    let hides = |items: &[FakeItem]| items.iter().any(|it| it.hidden);
    let all = [
        (true, "notifications/tools/list_changed"),
        (hides(&script.prompts), "notifications/prompts/list_changed"),
        (
            hides(&script.resources) || hides(&script.templates),
            "notifications/resources/list_changed",
        ),
    ];
    let changed = all.into_iter().filter(|(has_changed, _)| *has_changed);
    changed.map(|(_, method)| method).collect()
}
