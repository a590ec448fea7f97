//! A server that asks in rounds (from 2026-07-28 on) and stores its state only in the client.

use serde_json::{Map, Value, json};

use super::{
    META_CAPABILITIES,
    answers::{FakeRequest, error},
};

/// Returns the requests of one round: method and `params`.
pub(super) fn requests(round: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let requests = round.as_object().into_iter().flatten();
    requests.map(|(_, it)| (it["method"].as_str().unwrap_or_default(), &it["params"]))
}

/// Returns the answer of such a server: the next round, or the result. Fails if the client's state
/// is invalid, or if the client declared no capability for any request of the round.
pub(super) fn answer(
    rounds: &[Value],
    result: &Value,
    request: &FakeRequest,
) -> Result<Value, Value> {
    let (state, responses) = (
        &request.params["requestState"],
        &request.params["inputResponses"],
    );
    let round = match state.as_str() {
        None => 0,
        Some(state) => find_round(state, rounds.len())?,
    };
    let declared = &request.params["_meta"][META_CAPABILITIES];
    let asked = askable(&rounds[round], declared);
    if asked.is_empty() {
        return Err(refuse(&rounds[round]));
    }
    let is_answered = asked.keys().all(|key| responses[key].is_object());
    let next = round + usize::from(is_answered);
    if next == rounds.len() {
        return Ok(result.clone());
    }
    let requests = askable(&rounds[next], declared);
    let state = format!("round {next}");
    Ok(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state }))
}

fn find_round(state: &str, count: usize) -> Result<usize, Value> {
    let number = state.strip_prefix("round ").and_then(|it| it.parse().ok());
    let known = number.filter(|round| *round < count);
    known.ok_or_else(|| error(-32602, "requestState: none of mine"))
}

/// Returns the requests for which the client has declared a capability.
fn askable(round: &Value, declared: &Value) -> Map<String, Value> {
    let requests = round.as_object().into_iter().flatten();
    let can = requests.filter(|(_, it)| declared[capability(it)].is_object());
    can.map(|(key, it)| (key.clone(), it.clone())).collect()
}

fn capability(request: &Value) -> &'static str {
    match request["method"].as_str().unwrap_or_default() {
        "elicitation/create" => "elicitation",
        "sampling/createMessage" => "sampling",
        _ => "roots",
    }
}

fn refuse(round: &Value) -> Value {
    let requests = round.as_object().into_iter().flatten();
    let missing: Map<String, Value> = requests
        .map(|(_, it)| (capability(it).to_owned(), json!({})))
        .collect();
    let mut error = error(-32021, "the client declares too little");
    error["data"] = json!({ "requiredCapabilities": missing });
    error
}
