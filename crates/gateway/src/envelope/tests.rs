use serde_json::{Value, value::RawValue};

use super::{ExecuteRequest, Input, Repair, ToolError};

fn parse(arguments: &str) -> Result<ExecuteRequest, ToolError> {
    let raw = RawValue::from_string(arguments.to_owned()).expect("the case is JSON");
    ExecuteRequest::parse(Some(&raw))
}

#[track_caller]
fn check(arguments: &str, input: &str, repairs: &[Repair]) {
    let request = parse(arguments).expect("the request can be repaired");
    assert_eq!(request.tool_name, "a/b");
    assert_eq!(request.repairs, repairs);
    let expected: Value = serde_json::from_str(input).expect("the case is JSON");
    assert_eq!(Value::from(request.input.to_map()), expected);
}

#[test]
fn a_plain_call_keeps_its_bytes() {
    let request = parse(r#"{"tool_name":"a/b","tool_input":{"n": 1.0, "n2":1e400}}"#);
    let json = request
        .expect("the request needs no repair")
        .input
        .into_json();
    assert_eq!(json.as_str(), r#"{"n": 1.0, "n2":1e400}"#);
}

#[test]
fn half_a_surrogate_pair_stays_in_plain_arguments_and_is_replaced_in_mended_ones() {
    let plain = parse(r#"{"tool_name":"a/b","tool_input":{"t":"\ud83d"}}"#).expect("it is read");
    let Input::AsSent(sent) = &plain.input else {
        panic!("nothing is to be mended: {:?}", plain.repairs);
    };
    assert_eq!(sent.get(), r#"{"t":"\ud83d"}"#);
    let own = plain.input.without_lone_surrogates().into_json();
    assert_eq!(own.as_str(), r#"{"t":"\ufffd"}"#);
    check(
        r#"{"tool_name":"a/b","tool_input":"{\"t\":\"\\ud83d\"}"}"#,
        r#"{"t":"\ufffd"}"#,
        &[Repair::InputParsed],
    );
    check(
        r#"{"name":"a/b","tool_input":{"t":"\ud83d"}}"#,
        r#"{"t":"\ufffd"}"#,
        &[Repair::Alias],
    );
}

#[test]
fn every_way_models_get_it_wrong_is_mended() {
    use Repair::*;
    check(r#"{"tool_name":"a/b"}"#, "{}", &[AbsentInput]);
    check(
        r#"{"tool_name":"a/b","tool_input":null}"#,
        "{}",
        &[AbsentInput],
    );
    check(
        r#"{"tool_name":"a/b","tool_input":"{\"x\":1}"}"#,
        r#"{"x":1}"#,
        &[InputParsed],
    );
    check(
        r#""{\"tool_name\":\"a/b\",\"tool_input\":{\"x\":1}}""#,
        r#"{"x":1}"#,
        &[WholeParsed],
    );
    check(
        r#"{"tool_name":"a/b","x":1,"y":"z"}"#,
        r#"{"x":1,"y":"z"}"#,
        &[Flattened],
    );
    check(
        r#"{"tool_name":"a/b","tool_input":{},"x":1}"#,
        r#"{"x":1}"#,
        &[Flattened],
    );
    check(
        r#"{"tool_input":{"tool_name":"a/b","x":1}}"#,
        r#"{"x":1}"#,
        &[NameHoisted],
    );
    check(
        r#"{"name":"a/b","arguments":{"x":1}}"#,
        r#"{"x":1}"#,
        &[Alias, Alias],
    );
    check(
        r#"{"tool":"a/b","args":"{\"x\":1}"}"#,
        r#"{"x":1}"#,
        &[Alias, Alias],
    );
    check(
        r#"{"tool_name":"a/b","input":"text"}"#,
        r#"{"input":"text"}"#,
        &[Flattened],
    );
    check(
        r#"{"tool_name":"a/b","name":"x"}"#,
        r#"{"name":"x"}"#,
        &[Flattened],
    );
    let nested = r#"{"tool_name":"a/b","tool_input":{"tool_name":"A/B","tool_input":{"x":1}}}"#;
    check(nested, r#"{"x":1}"#, &[Unwrapped]);
    let nested = r#"{"execute_dynamic_tool":{"tool_name":"a/b","tool_input":{"x":1}}}"#;
    check(nested, r#"{"x":1}"#, &[Unwrapped]);
    let nested = r#"{"tool_input":{"tool_name":"a/b","tool_input":{"x":1}}}"#;
    check(nested, r#"{"x":1}"#, &[NameHoisted, Unwrapped]);
    let params = r#"{"tool_name":"a/b","params":{"x":1}}"#;
    check(params, r#"{"x":1}"#, &[Alias]);
}

#[test]
fn our_own_tool_called_through_itself_is_unwrapped() {
    use Repair::*;
    let inner = r#"{"tool_name":"a/b","tool_input":{"x":1}}"#;
    for name in [
        "execute_dynamic_tool",
        "mcp__proxy__execute_dynamic_tool",
        "proxy/execute-dynamic-tool",
    ] {
        let once = format!(r#"{{"tool_name":"{name}","tool_input":{inner}}}"#);
        check(&once, r#"{"x":1}"#, &[Unwrapped]);
        let twice = format!(r#"{{"name":"{name}","arguments":{once},"raw":true}}"#);
        check(&twice, r#"{"x":1}"#, &[Unwrapped, Unwrapped]);
        assert!(
            parse(&twice)
                .expect("the request can be repaired")
                .options
                .raw
        );
    }
    let not_ours = format!(r#"{{"tool_name":"other/execute_dynamic_tool","tool_input":{inner}}}"#);
    let request = parse(&not_ours).expect("well formed");
    assert_eq!(request.tool_name, "other/execute_dynamic_tool");
}

#[test]
fn server_and_tool_may_stand_apart() {
    use Repair::*;
    check(
        r#"{"server":"a","tool":"b","arguments":{"x":1}}"#,
        r#"{"x":1}"#,
        &[Alias, Alias, NamesJoined],
    );
    check(
        r#"{"server":"a","tool":"b","x":1}"#,
        r#"{"x":1}"#,
        &[Alias, NamesJoined, Flattened],
    );
    check(
        r#"{"server_name":"a","tool_name":"b","tool_input":{"x":1}}"#,
        r#"{"x":1}"#,
        &[NamesJoined],
    );
    check(
        r#"{"server":"a","tool_name":"a/b","tool_input":{"x":1}}"#,
        r#"{"x":1}"#,
        &[],
    );
    // Here `server` may be an argument.
    let argument = parse(r#"{"tool_name":"b","server":"a","x":1}"#).expect("well formed");
    assert_eq!(argument.tool_name, "b");
    assert_eq!(argument.input.to_map().len(), 2);
}

#[test]
fn an_argument_that_only_looks_nested_is_left_alone() {
    let other = r#"{"tool_name":"a/b","tool_input":{"tool_name":"c/d","tool_input":{"x":1}}}"#;
    check(other, r#"{"tool_name":"c/d","tool_input":{"x":1}}"#, &[]);
}

#[test]
fn options_are_read_and_never_reach_the_tool() {
    let request = parse(
        r#"{"tool_name":"a/b","tool_input":{},"timeout_ms":"250","raw":true,"max_tokens":9,"dry_run":"true"}"#,
    )
    .expect("well formed");
    let options = request.options;
    assert_eq!(options.timeout_ms, Some(250));
    assert_eq!(options.max_tokens, Some(9));
    assert!(options.raw && options.dry_run);
}

#[test]
fn options_among_the_arguments_are_ours_and_never_reach_the_tool() {
    let request = parse(
        r#"{"tool_name":"a/b","tool_input":{"x":1,"proxy/dry_run":true,"proxy\/timeout_ms":5}}"#,
    )
    .expect("well formed");
    assert!(request.options.dry_run);
    assert_eq!(request.options.timeout_ms, Some(5));
    assert_eq!(
        Value::from(request.input.to_map()),
        serde_json::json!({"x": 1})
    );
    assert_eq!(request.repairs, [Repair::OptionsInside]);
    let flat = parse(r#"{"tool_name":"a/b","x":1,"proxy/raw":"true"}"#).expect("well formed");
    assert!(flat.options.raw);
    let large = r#"{"n":123456789012345678901234,"path":"proxy/raw","in":{"proxy/raw":1}}"#;
    let request = parse(&format!(r#"{{"tool_name":"a/b","tool_input":{large}}}"#));
    let input = request
        .expect("the request has no options")
        .input
        .into_json();
    assert_eq!(input.as_str(), large);
}

#[test]
fn what_cannot_be_read_is_named_and_never_taken_for_nothing() {
    let cases = [
        (
            r#"{"tool_name":"a/b","tool_input":"not json"}"#,
            "tool_input",
        ),
        (r#"{"tool_name":"a/b","tool_input":""}"#, "tool_input"),
        (r#"{"tool_name":"a/b","tool_input":[1]}"#, "tool_input"),
        (r#"{"tool_name":7,"tool_input":{}}"#, "tool_name"),
        (r#"{"tool_input":{"x":1}}"#, "tool_name"),
        (r#"{"tool_name":"a/b","timeout_ms":-1}"#, "timeout_ms"),
        (
            r#"{"tool_name":"a/b","tool_input":{"proxy/dryrun":true}}"#,
            "tool_input.proxy/dryrun: no such option",
        ),
        (
            r#"{"tool_name":"a/b","tool_input":{"proxy/raw":"perhaps"}}"#,
            "tool_input.proxy/raw: expected boolean",
        ),
        ("[]", "expected an object"),
        (r#""nonsense""#, "expected an object"),
    ];
    for (arguments, named) in cases {
        let error = parse(arguments).expect_err(arguments).to_string();
        assert!(error.starts_with("error invalid_input: "), "{error}");
        assert!(error.contains(named), "{arguments}: {error}");
    }
}
