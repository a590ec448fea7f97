//! A table of jq expressions over a kept result: values are returned, mistakes are reported, and no
//! file or environment variable is visible.

use journey::journey;
use journeys::fake::Step;
use serde_json::{Value, json};

use crate::{
    handle,
    results::long_results::{read, served},
};

/// An expression and its values.
const VALUES: [(&str, &str); 89] = [
    (".total", "600"),
    (".items | length", "600"),
    (".items[0].id", "0"),
    (".items[-1].id", "599"),
    ("[.items[].id] | add", "179700"),
    ("[.items[:3][].id]", "[0,1,2]"),
    (".items[5:7] | map(.id)", "[5,6]"),
    (".items | map(select(.open)) | length", "200"),
    (
        "[.items[] | select(.id % 100 == 0) | .id]",
        "[0,100,200,300,400,500]",
    ),
    (".items | first | .id", "0"),
    (".items | last | .id", "599"),
    ("[limit(3; .items[].id)]", "[0,1,2]"),
    (".items | map(.id) | max", "599"),
    (".items | map(.id) | min", "0"),
    (".items | max_by(.id).id", "599"),
    (".items | min_by(.id).id", "0"),
    (".items | group_by(.open) | map(length)", "[400,200]"),
    (".items | unique_by(.open) | length", "2"),
    (".items | sort_by(-.id)[0].id", "599"),
    (".items | any(.open)", "true"),
    (".items | all(.open)", "false"),
    ("keys", r#"["items","total"]"#),
    (r#"has("items")"#, "true"),
    ("type", r#""object""#),
    (".items | type", r#""array""#),
    (".nothing", "null"),
    (".nothing // 7", "7"),
    (".nothing?", "null"),
    ("[.[]?] | length", "2"),
    (".items[600]", "null"),
    ("[paths] | length", "1802"),
    ("[.items[0] | to_entries[].key]", r#"["id","open"]"#),
    (
        ".items[0] | with_entries(.value |= tostring)",
        r#"{"id":"0","open":"true"}"#,
    ),
    (".items[0] | del(.open)", r#"{"id":0}"#),
    (".total |= . + 1 | .total", "601"),
    (".total += 1 | .total", "601"),
    ("[.items[].id] | index(7)", "7"),
    ("[range(5)]", "[0,1,2,3,4]"),
    ("[range(0; 10; 3)]", "[0,3,6,9]"),
    ("reduce range(5) as $x (0; . + $x)", "10"),
    ("[foreach range(3) as $x (0; . + $x)]", "[0,1,3]"),
    ("def f(x): x * 2; f(21)", "42"),
    ("def f: if . > 0 then . - 1 | f else . end; 100 | f", "0"),
    ("label $out | 1, break $out", "1"),
    (r#"try error("x") catch ."#, r#""x""#),
    ("[.items[0][]]", "[0,true]"),
    ("empty", ""),
    ("1, 2", "1,2"),
    ("[1, [2, [3]]] | flatten", "[1,2,3]"),
    (r#""a,b" | split(",")"#, r#"["a","b"]"#),
    (r#"[1, 2] | map(tostring) | join("-")"#, r#""1-2""#),
    (r#""abc" | test("B"; "i")"#, "true"),
    (r#""abc" | sub("b"; "x")"#, r#""axc""#),
    (r#""abcb" | gsub("b"; "x")"#, r#""axcx""#),
    (r#"["a1b2" | scan("[0-9]")]"#, r#"["1","2"]"#),
    (r#""abc" | ascii_upcase"#, r#""ABC""#),
    (r#"" a " | trim"#, r#""a""#),
    (r#""abc" | ltrimstr("a")"#, r#""bc""#),
    (r#""abc" | startswith("ab")"#, "true"),
    (r#""abc"[1:]"#, r#""bc""#),
    (r#""abc" | length"#, "3"),
    (r#""x" * 3"#, r#""xxx""#),
    (r#""a\(1 + 1)b""#, r#""a2b""#),
    (r#""aGk=" | @base64d"#, r#""hi""#),
    (r#""hi" | @base64"#, r#""aGk=""#),
    (r#""<a>" | @html"#, r#""&lt;a&gt;""#),
    (r#""a b" | @uri"#, r#""a%20b""#),
    (r#""it's" | @sh"#, r#""'it'\\''s'""#),
    ("[1] | tojson", r#""[1]""#),
    (r#""[1]" | fromjson"#, "[1]"),
    (r#""{" | try fromjson catch "no""#, r#""no""#),
    ("0 | todate", r#""1970-01-01T00:00:00Z""#),
    ("1e1000 | . > 1", "true"),
    ("nan | isnan", "true"),
    ("infinite | isinfinite", "true"),
    ("[3, 1, 2] | sort", "[1,2,3]"),
    ("[1, 1, 2] | unique", "[1,2]"),
    ("[[1, 2], [3, 4]] | transpose", "[[1,3],[2,4]]"),
    (r#"{"a": 1} * {"b": 2}"#, r#"{"a":1,"b":2}"#),
    ("[1, 2, 3] - [2]", "[1,3]"),
    ("7 % 3", "1"),
    (r#"[splits("a")]? // 1"#, "1"),
    (r#""\u0000" | length"#, "1"),
    ("[.items[] | .id] | bsearch(7)", "7"),
    ("env", "{}"),
    ("env.PATH", "null"),
    ("\"\u{1b}[31m\" | length", "5"),
    ("[range(1e5)] | length", "100000"),
    ("[limit(5; recurse)] | length", "5"),
];

/// Mistakes, and expressions that would reach outside of the process in another jq.
const REFUSED: [&str; 24] = [
    "$ENV",
    "$ENV.HOME",
    "input",
    r#"include "x"; 1"#,
    r#"import "x" as x; 1"#,
    r#"import "/etc/passwd" as $x; $x"#,
    r#"include "/etc/passwd"; 1"#,
    r#"@file "/etc/passwd""#,
    r#"system("id")"#,
    r#"exec("id")"#,
    r#"open("/etc/passwd")"#,
    r#"read("/etc/passwd")"#,
    ".items[",
    "|",
    "(",
    "nofunction",
    "$nothing",
    ".items | .id",
    ".total.x",
    r#"error("why")"#,
    r#""\x""#,
    "1 as $x",
    r#""a" | test("(")"#,
    r#""a" | tonumber"#,
];

/// Expressions with or without a value, which must reveal nothing of the machine.
const HARMLESS: [&str; 19] = [
    r#""\ud83d\ude00" | length"#,
    "input_line_number? // 0",
    "[inputs]",
    "input_filename",
    "get_search_list",
    "halt",
    "halt_error",
    "debug | 1",
    "stderr | 1",
    "$__prog_args",
    "modulemeta",
    "now | type",
    "[limit(-1; 1)]",
    "{(1): 2}",
    r#".["a", 1]"#,
    "[.[] as [$a] | $a]",
    "{} | keys[0] | . + 1",
    "1 / 0",
    r#"[1, "a"] | @csv"#,
];

/// The number of expressions per request: each request starts a process.
const AT_ONCE: usize = 15;

fn document() -> Value {
    let item = |id: usize| json!({ "id": id, "open": id.is_multiple_of(3) });
    json!({ "total": 600, "items": (0..600).map(item).collect::<Vec<_>>() })
}

/// Returns true if the text has content of the machine: that of `/etc/passwd` or of the
/// environment.
fn tells_of_the_machine(answer: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    answer.contains("root:") || !path.is_empty() && answer.contains(&path)
}

#[journey(alone = "expressions do not depend on the daemon")]
async fn a_hundred_expressions_answer_what_they_should_and_see_nothing() {
    let (house, client) = served([("list", Step::Text(document().to_string()))]).await;
    let text = client.execute("big/list", json!({})).await.good();
    let handle = handle(&text);
    let ask = async |expression: &str| {
        let input = json!({ "handle": handle, "select": expression });
        let reply = read(&client, input).await;
        (reply.is_error(), reply.text())
    };
    let mut wrong = Vec::new();
    for rows in VALUES.chunks(AT_ONCE) {
        let asked = rows.iter().map(|(expression, _)| format!("[{expression}]"));
        let asked = format!("[{}]", asked.collect::<Vec<_>>().join(","));
        let (_, answer) = ask(&asked).await;
        let values: Vec<Value> = serde_json::from_str(&answer).unwrap_or_default();
        for (at, (expression, expected)) in rows.iter().enumerate() {
            let expected: Value = serde_json::from_str(&format!("[{expected}]")).unwrap();
            let found = values.get(at).unwrap_or(&Value::Null);
            if *found != expected {
                wrong.push(format!(
                    "{expression}: {found}, not {expected}; {answer:.300}"
                ));
            }
        }
    }
    for expression in REFUSED {
        let (is_error, answer) = ask(expression).await;
        if !is_error || !answer.starts_with("error ") || tells_of_the_machine(&answer) {
            wrong.push(format!("{expression}: {answer:?}, not an error"));
        }
    }
    for expression in HARMLESS {
        let (_, answer) = ask(expression).await;
        if tells_of_the_machine(&answer) {
            wrong.push(format!("{expression}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    house.stops_clean().await;
}
