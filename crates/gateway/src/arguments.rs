//! Checks a call's arguments against the schema of its tool, which is untrusted.

use std::{future::Future, sync::Arc, time::Duration};

use fleet::Ran;
use jsonrpc::Json;
use registry::Entry;
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tool::Violation;

use crate::{
    envelope::{INPUT_ALIASES, Input, json_of, sole_object},
    error::ToolError,
};

/// The number of concurrent checks off the event loop. Each is limited in time, and in memory to
/// about a hundred megabytes.
const CHECKS_MAX: usize = 2;
static CHECKS: Semaphore = Semaphore::const_new(CHECKS_MAX);

/// Returns the arguments to send: byte for byte as they came unless something in them had to be
/// repaired.
///
/// A small check runs at once: to hand it to another thread would take longer. Every other check
/// runs off the event loop, and the call waits for it no longer than its `limit`.
pub(super) async fn check_arguments(
    entry: &Arc<Entry>,
    input: Input,
    limit: Option<Duration>,
) -> Result<Json, ToolError> {
    let map = input.to_map();
    let verdict = if is_quick(entry, &map) {
        verdict(entry, &map)
    } else {
        let checking = beside_the_loop(Arc::clone(entry), map);
        within(limit, entry, checking).await?
    };
    match verdict {
        Ok(None) => Ok(input.into_json()),
        Ok(Some(mended)) => Ok(json_of(&mended)),
        Err(violations) => Err(invalid(entry, violations)),
    }
}

type CheckResult = Result<Option<Map<String, Value>>, Vec<Violation>>;

async fn beside_the_loop(
    entry: Arc<Entry>,
    map: Map<String, Value>,
) -> Result<CheckResult, ToolError> {
    let turn = CHECKS.acquire().await;
    let checking = spawn_blocking(move || {
        // Held until the thread is done, also if no caller waits for it any more.
        let _turn = turn;
        verdict(&entry, &map)
    });
    checking
        .await
        .map_err(|error| ToolError::Internal(error.to_string()))
}

async fn within<T>(
    limit: Option<Duration>,
    entry: &Entry,
    checking: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let Some(limit) = limit else {
        return checking.await;
    };
    let late = |_| ToolError::Timeout {
        tool: entry.at.clone(),
        limit,
        ran: Ran::No,
        held_up: None,
    };
    timeout(limit, checking).await.map_err(late)?
}

/// Returns true if the check is known to finish before another thread could start it.
fn is_quick(entry: &Entry, map: &Map<String, Value>) -> bool {
    let Some(checker) = entry.ready_checker() else {
        return false;
    };
    checker.is_quick(map) && sole_object(map).is_none_or(|inner| checker.is_quick(&inner))
}

fn verdict(entry: &Entry, map: &Map<String, Value>) -> CheckResult {
    let violations = match entry.checker().check(map) {
        Err(violations) => violations,
        fine => return fine,
    };
    let mended = take_off_wrapper(entry, map).or_else(|| put_in_wrapper(entry, map));
    mended.map(Some).ok_or(violations)
}

/// Unwraps `{"arguments": {...}}` if the tool has no such argument and accepts the inner object.
fn take_off_wrapper(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let inner = sole_object(map)?;
    match entry.checker().check(&inner) {
        Ok(None) => Some(inner),
        Ok(Some(coerced)) => Some(coerced),
        Err(_) => None,
    }
}

/// Wraps arguments for a tool whose one parameter has the name that an envelope uses for all
/// arguments (`params`): the wrapper was left out, or the envelope parser removed it.
fn put_in_wrapper(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let parameters = tool::parameters(&entry.tool.input_schema());
    let [parameter] = parameters.as_slice() else {
        return None;
    };
    if !INPUT_ALIASES.contains(&parameter.name.as_str()) || map.contains_key(&parameter.name) {
        return None;
    }
    let whole = Value::Object(map.clone());
    let outer = Map::from_iter([(parameter.name.clone(), whole)]);
    match entry.checker().check(&outer) {
        Ok(mended) => Some(mended.unwrap_or(outer)),
        Err(_) => None,
    }
}

fn invalid(entry: &Entry, violations: Vec<Violation>) -> ToolError {
    ToolError::InvalidInput {
        tool: entry.at.to_string(),
        violations,
        signature: entry.signature().to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use super::*;

    fn entry(schema: &Value) -> Arc<Entry> {
        let definition = serde_json::json!({"name": "t", "inputSchema": schema});
        let tool = tool::Tool::parse(&definition.to_string()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let options = registry::Options {
            built_in: vec![tool.into()],
            ..registry::Options::default()
        };
        let registry =
            registry::Registry::open_with(folder.path(), registry::Rules::default(), options);
        let generation = registry.unwrap().generation().unwrap();
        Arc::clone(generation.find("proxy/t").unwrap())
    }

    #[tokio::test]
    async fn an_argument_named_like_an_envelope_may_be_left_off() {
        let params = serde_json::json!({"type": "object", "required": ["id"],
            "properties": {"id": {"type": "integer"}}});
        let entry = entry(
            &serde_json::json!({"type": "object", "required": ["params"],
            "properties": {"params": params}}),
        );
        let send = async |arguments: Value| {
            let input = Input::Built(arguments.as_object().unwrap().clone());
            check_arguments(&entry, input, None).await
        };
        let passed = send(serde_json::json!({"id": "7"})).await.unwrap();
        assert_eq!(passed.as_str(), r#"{"params":{"id":7}}"#);
        let error = send(serde_json::json!({"ident": 7})).await.unwrap_err();
        assert_eq!(error.code(), "invalid_input");
    }

    /// A call that nobody polls beyond its first step, while every turn beside the event loop is
    /// taken: what is done then was done at once.
    async fn is_done_at_once(entry: &Arc<Entry>, arguments: &Value) -> bool {
        let _turns = CHECKS
            .acquire_many(u32::try_from(CHECKS_MAX).unwrap())
            .await;
        let input = Input::Built(arguments.as_object().unwrap().clone());
        let mut checking = std::pin::pin!(check_arguments(entry, input, None));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        checking.as_mut().poll(&mut context).is_ready()
    }

    #[tokio::test]
    async fn only_a_small_check_that_is_ready_is_made_on_the_event_loop() {
        let entry =
            entry(&serde_json::json!({"properties": {"a": {"items": {"type": "integer"}}}}));
        let small = serde_json::json!({"a": [1, 2]});
        assert!(
            !is_done_at_once(&entry, &small).await,
            "its schema is not compiled yet"
        );
        entry.checker();
        assert!(is_done_at_once(&entry, &small).await);
        let large = serde_json::json!({"a": vec![1; 10_000]});
        assert!(!is_done_at_once(&entry, &large).await);
        let wrapped = serde_json::json!({"arguments": large});
        assert!(!is_done_at_once(&entry, &wrapped).await);
    }

    #[tokio::test]
    async fn a_check_that_waits_for_its_turn_ends_with_the_limit_of_its_call() {
        let entry = entry(&serde_json::json!({"type": "object"}));
        let turns = CHECKS
            .acquire_many(u32::try_from(CHECKS_MAX).unwrap())
            .await
            .unwrap();
        let input = Input::Built(Map::new());
        let late = check_arguments(&entry, input, Some(Duration::ZERO))
            .await
            .unwrap_err();
        assert_eq!(late.code(), "timeout");
        drop(turns);
        let input = Input::Built(Map::new());
        assert_eq!(
            check_arguments(&entry, input, None).await.unwrap().as_str(),
            "{}"
        );
    }
}
