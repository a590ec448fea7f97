//! Checks a call's arguments against the schema of its tool, which is untrusted.

use std::{sync::Arc, time::Duration};

use fleet::Ran;
use jsonrpc::Json;
use registry::Entry;
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, task::spawn_blocking, time};
use tool::{Digest, Violation, is_same_member_name};

use crate::{
    built_in::is_answered_here,
    envelope::{INPUT_ALIASES, Input, as_object, json_of, sole_object},
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
/// runs off the event loop, and the call waits for it no longer than its timeout.
pub(super) async fn check_arguments(
    entry: &Arc<Entry>,
    input: Input,
    timeout: Option<Duration>,
) -> Result<Json, ToolError> {
    let input = if is_answered_here(entry) {
        input.without_lone_surrogates()
    } else {
        input
    };
    let map = read(entry, &input)?;
    let verdict = if is_quick(entry, &map) {
        verdict(entry, &map)
    } else {
        let checking = beside_the_loop(Arc::clone(entry), map);
        // A tool of ours has no timeout.
        let limit = timeout.unwrap_or(Duration::MAX);
        let late = |_| ToolError::Timeout {
            tool: entry.at.clone(),
            limit,
            ran: Ran::No,
            held_up: None,
        };
        time::timeout(limit, checking).await.map_err(late)??
    };
    match verdict {
        Ok(None) => Ok(complete(entry, input)),
        Ok(Some(mended)) => Ok(json_of(&mended)),
        Err(violations) => Err(invalid(entry, violations)),
    }
}

/// Returns the arguments. Text that cannot be read passes as nothing, and its server decides; but not to a
/// tool whose arguments the configuration sets, because nobody knows if the text sets them too. The same is
/// true of a member that is there twice: servers read the first, the last, or both as one.
fn read(entry: &Entry, input: &Input) -> Result<Map<String, Value>, ToolError> {
    if entry.argument_settings.is_empty() {
        return Ok(input.to_map());
    }
    let unreadable = |why: &str| {
        let message =
            format!("the arguments cannot be read ({why}); the configuration sets some of them");
        let path = String::new();
        invalid(entry, vec![Violation { path, message }])
    };
    if let Input::AsSent(raw) = input
        && Digest::of_unique(raw.get()).is_err()
    {
        return Err(unreadable("an object has a member twice"));
    }
    input.read().map_err(|why| unreadable(&why.to_string()))
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
    checking.await.map_err(ToolError::internal)
}

/// Returns true if the check is known to finish before another thread could start it.
fn is_quick(entry: &Entry, map: &Map<String, Value>) -> bool {
    let Some(checker) = entry.ready_checker() else {
        return false;
    };
    checker.is_quick(map) && sole_object(map).is_none_or(|inner| checker.is_quick(&inner))
}

/// Adds the arguments that the configuration sets, in front of those that came.
fn complete(entry: &Entry, input: Input) -> Json {
    if entry.argument_settings.is_empty() {
        return input.into_json();
    }
    let map = input.to_map();
    let added = entry.argument_settings.complete(&map);
    match input {
        _ if added.is_empty() => input.into_json(),
        Input::AsSent(raw) if !map.is_empty() => {
            let (_, members) = raw.get().split_once('{').expect("it is an object");
            let added = json_of(&added);
            let (added, _) = added.as_str().rsplit_once('}').expect("it is an object");
            Json::of_built(format!("{added},{members}"))
        }
        _ => json_of(&with_settings(entry, map)),
    }
}

/// Checks the arguments together with those that the configuration sets. A `null` for an argument with a default
/// leaves it out, unless the schema admits `null`.
fn check(entry: &Entry, map: &Map<String, Value>) -> CheckResult {
    if entry.argument_settings.is_empty() {
        return entry.checker().check(map);
    }
    let refused = refuse(entry, map, WRAPPERS_MAX);
    if !refused.is_empty() {
        return Err(refused);
    }
    let mut whole = map.clone();
    whole.extend(entry.argument_settings.complete(map));
    let checked = entry.checker().check(&whole);
    if let Some(map) = entry.argument_settings.without_refused_nulls(map, &checked) {
        let mended = check(entry, &map)?;
        return Ok(Some(mended.unwrap_or_else(|| with_settings(entry, map))));
    }
    checked.map_err(|mut violations| {
        entry.argument_settings.explain(map, &mut violations);
        violations
    })
}

/// The most wrappers around arguments in which those of the configuration are looked for: one that is taken off
/// holds at most the one that the tool has.
const WRAPPERS_MAX: usize = 3;

/// Returns a violation for each argument that only the configuration sets. No form of a call sets these,
/// neither by itself nor in a wrapper that may be taken off or that the tool itself has.
fn refuse(entry: &Entry, map: &Map<String, Value>, wrappers: usize) -> Vec<Violation> {
    let mut refused = entry.argument_settings.refuse(map);
    if wrappers == 0 {
        return refused;
    }
    let may_wrap = |name: &String| {
        let mut aliases = INPUT_ALIASES.iter();
        aliases.any(|alias| is_same_member_name(alias, name))
    };
    let wrapper = map.keys().any(may_wrap).then(|| wrapper(entry)).flatten();
    let is_wrapper = |name: &String| {
        let wrapper = wrapper.as_ref();
        wrapper.is_some_and(|wrapper| is_same_member_name(wrapper, name))
    };
    let sole = find_wrapped(entry, map);
    let inner = map
        .iter()
        .filter(|(name, _)| is_wrapper(name))
        .filter_map(|(_, value)| as_object(value))
        .chain(sole);
    refused.extend(inner.flat_map(|object| refuse(entry, &object, wrappers - 1)));
    refused
}

fn verdict(entry: &Entry, map: &Map<String, Value>) -> CheckResult {
    let violations = match check(entry, map) {
        Err(violations) => violations,
        fine => return fine,
    };
    let mended = take_off_wrapper(entry, map).or_else(|| put_in_wrapper(entry, map));
    mended.map(Some).ok_or(violations)
}

/// Returns the object in `{"arguments": {...}}` if the tool has no such argument.
fn find_wrapped(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let inner = sole_object(map)?;
    let parameters = tool::parameters(&entry.input_schema());
    let is_own = parameters.iter().any(|it| map.contains_key(&it.name));
    (!is_own).then_some(inner)
}

/// Unwraps `{"arguments": {...}}` if the tool accepts the inner object.
fn take_off_wrapper(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let inner = find_wrapped(entry, map)?;
    let coerced = check(entry, &inner).ok()?;
    Some(coerced.unwrap_or_else(|| with_settings(entry, inner)))
}

/// Wraps arguments for a tool whose one parameter has the name that an envelope uses for all
/// arguments (`params`): the wrapper was left out, or the envelope parser removed it.
fn put_in_wrapper(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let name = wrapper(entry).filter(|name| !map.contains_key(name))?;
    let outer = Map::from_iter([(name, Value::Object(map.clone()))]);
    let mended = check(entry, &outer).ok()?;
    Some(mended.unwrap_or_else(|| with_settings(entry, outer)))
}

/// Returns the name of the tool's one parameter, if an envelope uses the name for all arguments.
fn wrapper(entry: &Entry) -> Option<String> {
    let mut parameters = tool::parameters(&entry.input_schema()).into_iter();
    let sole = parameters.next().filter(|_| parameters.next().is_none())?;
    INPUT_ALIASES
        .contains(&sole.name.as_str())
        .then_some(sole.name)
}

fn with_settings(entry: &Entry, mut map: Map<String, Value>) -> Map<String, Value> {
    map.extend(entry.argument_settings.complete(&map));
    map
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
    use std::collections::BTreeMap;

    use super::*;

    /// The same tool on a server whose arguments the configuration sets.
    fn entry_with(presets: &Value, schema: &Value) -> Arc<Entry> {
        let mut entry = Arc::into_inner(entry(schema)).unwrap();
        let read = |(name, it): (&String, &Value)| {
            (name.clone(), tool::ArgumentSetting::read(it).unwrap())
        };
        let of_server = presets.as_object().unwrap().iter().map(read).collect();
        entry.argument_settings =
            tool::ArgumentSettings::new(&of_server, &BTreeMap::new(), &schema.to_string());
        // The configuration sets no arguments of our own tools.
        entry.at.server = "s".parse().unwrap();
        Arc::new(entry)
    }

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

    #[tokio::test]
    async fn arguments_of_the_configuration_are_part_of_every_form_of_a_call() {
        let schema = serde_json::json!({"type": "object", "required": ["owner", "repo"],
            "properties": {"owner": {"type": "string"}, "repo": {"type": "string"},
                "limit": {"type": "integer"}, "debug": {"type": "boolean"}}});
        let presets = serde_json::json!({"owner": {"fixed": "acme"}, "limit": {"default": 20},
            "debug": {"hidden": true}});
        let entry = entry_with(&presets, &schema);
        let send = async |arguments: &str| {
            let raw = serde_json::value::RawValue::from_string(arguments.to_owned()).unwrap();
            let sent = check_arguments(&entry, Input::AsSent(raw), None).await;
            sent.map(|it| it.as_str().to_owned())
        };
        let check = async |arguments: &str, expected: &str| {
            assert_eq!(send(arguments).await.unwrap(), expected);
        };
        check(
            r#"{ "repo": "x\u002fy" }"#,
            r#"{"limit":20,"owner":"acme", "repo": "x\u002fy" }"#,
        )
        .await;
        check(
            r#"{"limit":1e0,"repo":"x"}"#,
            r#"{"owner":"acme","limit":1e0,"repo":"x"}"#,
        )
        .await;
        check(
            r#"{"repo":"x","limit":"7"}"#,
            r#"{"repo":"x","limit":7,"owner":"acme"}"#,
        )
        .await;
        check(
            r#"{"arguments":{"repo":"x"}}"#,
            r#"{"repo":"x","limit":20,"owner":"acme"}"#,
        )
        .await;
        for refused in [
            r#"{"owner":"acme","repo":"x"}"#,
            r#"{"own\u0065r":"evil","repo":"x"}"#,
            r#"{"repo":"x","owner":null}"#,
            r#"{"arguments":{"repo":"x","owner":"evil"}}"#,
            r#"{"repo":"x","debug":false}"#,
            r#"{"Owner":"evil","repo":"x"}"#,
            r#"{"OWNER":"evil","repo":"x"}"#,
            r#"{"repo":"x","\u004fwner":"evil"}"#,
            r#"{"repo":"x","Debug":true}"#,
            r#"{"arguments":{"repo":"x","Owner":"evil"}}"#,
            r#"{"arguments":"{\"repo\":\"x\",\"Owner\":\"evil\"}"}"#,
            r#"{"args":{"arguments":{"repo":"x","Owner":"evil"}}}"#,
            r#"{"repo":"x","Owner":"evil","limit":"\ud83d"}"#,
            r#"{"repo":"\ud83d"}"#,
            r#"{"repo":"x","repo":"y"}"#,
            r#"{"arguments":{"repo":"x","Owner":"evil"},"arguments":{"repo":"x"}}"#,
            r#"{"input":{"repo":"x"},"input":{"repo":"y"}}"#,
        ] {
            assert!(send(refused).await.is_err(), "{refused}");
        }
        check(
            r#"{"repo":"x","Limit":5}"#,
            r#"{"owner":"acme","repo":"x","Limit":5}"#,
        )
        .await;
        let says = async |arguments: &str, says: &str| {
            let error = send(arguments).await.unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        };
        let owner = "owner: the configuration sets this argument; leave it out";
        says(r#"{"owner":"x"}"#, owner).await;
        let spelled =
            "Owner: the configuration sets this argument, in any spelling of `owner`; leave it out";
        says(r#"{"Owner":"x"}"#, spelled).await;
        assert_eq!(entry.signature(), "(repo: string, limit?: integer=20)");
    }

    #[tokio::test]
    async fn a_null_that_the_schema_refuses_leaves_a_default_of_the_configuration_in_effect() {
        let schema = serde_json::json!({"type": "object", "additionalProperties": false, "required": ["unit"], "properties": {
            "limit": {"type": "integer"}, "unit": {"type": "string"},
            "until": {"type": ["string", "null"]}, "q": {"type": "string"}}});
        let presets = serde_json::json!({"limit": {"default": 20}, "unit": {"default": "m"},
            "until": {"default": "now"}});
        let entry = entry_with(&presets, &schema);
        let all = serde_json::json!({"limit": 20, "unit": "m", "until": "now"});
        for (arguments, expected) in [
            (serde_json::json!({"limit": null}), all.clone()),
            (serde_json::json!({"unit": null}), all.clone()),
            (
                serde_json::json!({"limit": null, "unit": null, "q": null}),
                all.clone(),
            ),
            (
                serde_json::json!({"arguments": {"limit": null, "unit": null}}),
                all,
            ),
            (
                serde_json::json!({"limit": "5", "unit": null, "until": null}),
                serde_json::json!({"limit": 5, "unit": "m", "until": null}),
            ),
        ] {
            let raw = serde_json::value::RawValue::from_string(arguments.to_string()).unwrap();
            for input in [
                Input::Built(arguments.as_object().unwrap().clone()),
                Input::AsSent(raw),
            ] {
                let sent = check_arguments(&entry, input, None).await.unwrap();
                let read: Value = serde_json::from_str(sent.as_str()).unwrap();
                assert_eq!(read, expected, "{arguments}");
            }
        }
    }

    #[tokio::test]
    async fn an_argument_of_the_configuration_is_refused_in_the_wrapper_of_a_tool() {
        let inner = serde_json::json!({"type": "object", "properties": {"owner": {}, "repo": {}}});
        let schema = serde_json::json!({"type": "object", "required": ["params"],
            "properties": {"params": inner}});
        let entry = entry_with(&serde_json::json!({"owner": {"fixed": "acme"}}), &schema);
        let send = async |arguments: Value| {
            let input = Input::Built(arguments.as_object().unwrap().clone());
            check_arguments(&entry, input, None).await
        };
        assert!(
            send(serde_json::json!({"params": {"repo": "x"}}))
                .await
                .is_ok()
        );
        assert!(send(serde_json::json!({"repo": "x"})).await.is_ok());
        for refused in [
            serde_json::json!({"params": {"repo": "x", "Owner": "evil"}}),
            serde_json::json!({"params": {"owner": "evil"}, "more": 1}),
            serde_json::json!({"params": "{\"owner\": \"evil\"}", "more": 1}),
            serde_json::json!({"params": {}, "Params": {"owner": "evil"}}),
            serde_json::json!({"repo": "x", "OWNER": "evil"}),
            serde_json::json!({"arguments": {"params": {"Owner": "evil"}}}),
        ] {
            let error = send(refused.clone()).await.unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("the configuration does not allow"),
                "{refused}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn an_argument_named_like_a_wrapper_is_no_wrapper() {
        let schema = serde_json::json!({"type": "object", "required": ["input"], "properties": {
            "input": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "owner": {"type": "string"}, "limit": {"type": "integer"}}});
        let fixed = entry_with(&serde_json::json!({"owner": {"fixed": "acme"}}), &schema);
        for (entry, arguments, expected) in [
            // A member of its value has the name of an argument that the configuration sets.
            (
                &fixed,
                r#"{"input":{"owner":"x"}}"#,
                Ok(r#"{"owner":"acme","input":{"owner":"x"}}"#),
            ),
            (&fixed, r#"{"args":{"owner":"x"}}"#, Err("owner")),
            (
                &fixed,
                r#"{"args":{"input":{},"inp\u0075t":{}}}"#,
                Err("member twice"),
            ),
            // Its value is invalid, and all arguments of the tool would be valid in its place.
            (
                &entry(&schema),
                r#"{"input":{"n":"x","limit":1}}"#,
                Err("input.n"),
            ),
            (
                &entry(&schema),
                r#"{"args":{"input":{"n":1},"limit":1}}"#,
                Ok(r#"{"input":{"n":1},"limit":1}"#),
            ),
        ] {
            let raw = serde_json::value::RawValue::from_string(arguments.to_owned()).unwrap();
            let sent = check_arguments(entry, Input::AsSent(raw), None).await;
            match (sent, expected) {
                (Ok(sent), Ok(expected)) => assert_eq!(sent.as_str(), expected),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{error}");
                }
                (sent, _) => panic!("{arguments}: {sent:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_wrong_value_of_the_configuration_is_told_with_its_key() {
        let schema = serde_json::json!({"properties": {"limit": {"type": "integer"}}});
        let entry = entry_with(&serde_json::json!({"limit": {"fixed": "many"}}), &schema);
        let input = Input::Built(Map::new());
        let error = check_arguments(&entry, input, None).await.unwrap_err();
        let says = "(the configuration sets it: `arguments.limit`)";
        assert!(error.to_string().contains(says), "{error}");
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
