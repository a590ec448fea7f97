//! Redaction in everything that a server sends: results, errors, progress, log messages and stderr; and the
//! masking of the server's own secrets in the lists that the proxy keeps.

use std::{borrow::Cow, sync::Arc};

use jsonrpc::Json;
use printable::{Redaction, Redactor, has_card_number};
use serde_json::value::RawValue;

use crate::{LogSink, ProgressSink, Request};

/// A result of up to this many bytes is read on the event loop: it takes some 20 microseconds.
const INLINE_BYTES_MAX: usize = 16 * 1024;

/// Members whose strings identify something that a client sends back as it was listed. In one of them a
/// known value stays: masked, it would name nothing.
const IDENTIFYING_MEMBERS: [&str; 14] = [
    "$id",
    "$ref",
    "const",
    "enum",
    "format",
    "mimeType",
    "name",
    "nextCursor",
    "pattern",
    "required",
    "type",
    "uri",
    "uriTemplate",
    "x-mcp-header",
];

/// Redacts the result of a call; a large one off the event loop.
pub(crate) async fn redact_result(redaction: Arc<Redaction>, result: Json) -> Json {
    let redacted = rewrite(result, move |json| redact_json(&redaction, json)).await;
    // Nothing is passed on unread.
    redacted.unwrap_or_else(|| Json::of_built(r#"{"content":[],"isError":true}"#.to_owned()))
}

/// Masks the server's secrets in a page of a list, except in identifying members; a large page off the event
/// loop. Returns `None` if that failed.
pub(crate) async fn mask_list(redactor: &Redactor, page: Json) -> Option<Json> {
    let redactor = redactor.clone();
    rewrite(page, move |json| mask_json(&redactor, json)).await
}

async fn rewrite(
    json: Json,
    rewriting: impl FnOnce(Json) -> Json + Send + 'static,
) -> Option<Json> {
    if json.len() <= INLINE_BYTES_MAX {
        return Some(rewriting(json));
    }
    tokio::task::spawn_blocking(move || rewriting(json))
        .await
        .ok()
}

/// Redacts every string of a JSON text, names of members included, and numbers. Everything else keeps its
/// bytes.
fn redact_json(redaction: &Redaction, json: Json) -> Json {
    if redaction.is_surely_clean(json.as_str()) {
        return json;
    }
    let redacted = redact_text(redaction, json.as_str());
    redacted.map_or(json, Json::of_built)
}

fn redact_text(redaction: &Redaction, json: &str) -> Option<String> {
    replace_tokens(json, |token, _| {
        let is_number = !token.starts_with('"');
        if is_number && !has_card_number(token) {
            return None;
        }
        match redaction.text(&text_of(token)?) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    })
}

/// Masks the values in every string of a JSON text, except for names of members and identifying members.
fn mask_json(redactor: &Redactor, json: Json) -> Json {
    let masked = replace_tokens(json.as_str(), |token, member| {
        let is_prose = member.is_some_and(|name| !IDENTIFYING_MEMBERS.contains(&name));
        let text = text_of(token).filter(|_| is_prose && token.starts_with('"'))?;
        let masked = redactor.apply(&text);
        (masked != text).then_some(masked)
    });
    masked.map_or(json, Json::of_built)
}

/// Replaces strings and digits of numbers of a JSON text by strings. `replacement` gets each with the name of
/// the member whose value holds it, and names of members without. Returns `None` if it replaces nothing.
fn replace_tokens(
    json: &str,
    replacement: impl Fn(&str, Option<&str>) -> Option<String>,
) -> Option<String> {
    let mut replaced = String::new();
    let (mut kept, mut at) = (0, 0);
    // The member whose value is read, and those around it.
    let (mut member, mut around) = ("", Vec::new());
    let bytes = json.as_bytes();
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => end_of_string(bytes, at),
            b'0'..=b'9' => end_of_digits(bytes, at),
            other => {
                match other {
                    b'{' | b'[' => around.push(member),
                    b'}' | b']' => member = around.pop().unwrap_or_default(),
                    _ => {}
                }
                at += 1;
                continue;
            }
        };
        let token = &json[at..end];
        let is_name = json[end..].trim_ascii_start().starts_with(':');
        if let Some(text) = replacement(token, (!is_name).then_some(member)) {
            replaced.push_str(&json[kept..at]);
            replaced.push_str(&serde_json::Value::from(text).to_string());
            kept = end;
        }
        if is_name {
            member = token.trim_matches('"');
        }
        at = end;
    }
    (kept > 0).then(|| replaced + &json[kept..])
}

/// Returns the text of a string, or the digits of a number.
fn text_of(token: &str) -> Option<Cow<'_, str>> {
    if !token.starts_with('"') {
        return Some(Cow::Borrowed(token));
    }
    let inner = token.get(1..token.len() - 1)?;
    if inner.contains('\\') {
        return serde_json::from_str(token).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// Returns the request with sinks that get redacted messages.
pub(crate) fn redact_messages(redaction: &Arc<Redaction>, mut request: Request) -> Request {
    let wrap = |client: ProgressSink| -> ProgressSink {
        let redaction = Arc::clone(redaction);
        Arc::new(move |params| {
            let redacted = redact_text(&redaction, params.get());
            match redacted.and_then(|text| RawValue::from_string(text).ok()) {
                Some(params) => client(&params),
                None => client(params),
            }
        })
    };
    request.progress = request.progress.map(wrap);
    request.log = request.log.map(|log| LogSink {
        send: wrap(log.send),
        ..log
    });
    request
}

/// Returns the end of the string that begins here, after its quote.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn end_of_digits(bytes: &[u8], begin: usize) -> usize {
    let digits = bytes[begin..].iter().take_while(|it| it.is_ascii_digit());
    begin + digits.count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn redact(own: &[(&str, &str)], json: &str) -> Json {
        let own = own.iter();
        let own = own.map(|(name, pattern)| ((*name).to_owned(), (*pattern).to_owned()));
        let redaction = Redaction::new(&own.collect::<BTreeMap<_, _>>()).unwrap();
        redact_json(&redaction, Json::of_built(json.to_owned()))
    }

    #[test]
    fn strings_names_and_numbers_of_json_are_redacted_and_the_rest_keeps_its_bytes() {
        let check = |own: &[(&str, &str)], json: &str, expected: &str| {
            let redacted = redact(own, json);
            assert_eq!(redacted.as_str(), expected);
        };
        check(
            &[],
            r#"{ "a\n":[1.50, "gh\u0070_0123456789abcdef"] , "n": 4111111111111111}"#,
            r#"{ "a\n":[1.50, "[redacted: github token]"] , "n": "[redacted: card number]"}"#,
        );
        check(
            &[],
            r#"{"npm_0123456789abcdef": "x\\"}"#,
            r#"{"[redacted: npm token]": "x\\"}"#,
        );
        check(
            &[("staff number", r"E-\d{6}"), ("name", "(?i)ada l[a-z]+")],
            r#"["E-123456 and \"Ada Lovelace\"", "E-12345"]"#,
            r#"["[redacted: staff number] and \"[redacted: name]\"", "E-12345"]"#,
        );
    }

    #[test]
    fn a_list_keeps_its_names_and_shows_no_secret() {
        let redactor = Redactor::new(["s3cr3t-value".to_owned()]);
        let lines = r#"{ "tools":[{"name":"get_s3cr3t-value","description":"with s3cr3t-value","n": 1.50,
            "inputSchema":{"properties":{"s3cr3t-value":{"enum":["s3cr3t-value"],"title":"s3cr3t\u002dvalue"}},
            "required":["s3cr3t-value"],"examples":[{"a":1},"s3cr3t-value"]}, "_meta":["s3cr3t-value"]}],
            "nextCursor":"s3cr3t-value"}"#;
        let page = lines.replace('\n', "");
        let masked = mask_json(&redactor, Json::of_built(page.clone()));
        let expected = page
            .replace("with s3cr3t-value", "with ***")
            .replace(r"s3cr3t\u002dvalue", "***")
            .replace(r#"{"a":1},"s3cr3t-value"]"#, r#"{"a":1},"***"]"#)
            .replace(r#""_meta":["s3cr3t-value"]"#, r#""_meta":["***"]"#);
        assert_eq!(masked.as_str(), expected);
    }

    proptest! {
        #[test]
        fn json_stays_json(text in "\\PC{0,40}", number in any::<u64>()) {
            let value = json!({ text.clone(): [text, number, {"ghp_0123456789abcdef": null}] });
            let redacted = redact(&[("x", "[a-m]+")], &value.to_string());
            prop_assert!(serde_json::from_str::<Value>(redacted.as_str()).is_ok());
        }
    }
}
