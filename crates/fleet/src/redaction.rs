//! Redaction in everything that a server sends: results, errors, progress, log messages and stderr.

use std::{borrow::Cow, sync::Arc};

use jsonrpc::Json;
use printable::{Redaction, has_card_number};
use serde_json::value::RawValue;

use crate::{LogSink, ProgressSink, Request};

/// A result of up to this many bytes is read on the event loop: it takes some 20 microseconds.
const INLINE_BYTES_MAX: usize = 16 * 1024;

/// Redacts the result of a call; a large one off the event loop.
pub(crate) async fn redact_result(redaction: Arc<Redaction>, result: Json) -> Json {
    if result.len() <= INLINE_BYTES_MAX {
        return redact_json(&redaction, result);
    }
    let redacting = tokio::task::spawn_blocking(move || redact_json(&redaction, result));
    // Nothing is passed on unread.
    let failed = || Json::of_built(r#"{"content":[],"isError":true}"#.to_owned());
    redacting.await.unwrap_or_else(|_| failed())
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
    let mut redacted = String::new();
    let (mut kept, mut at) = (0, 0);
    let bytes = json.as_bytes();
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => end_of_string(bytes, at),
            b'0'..=b'9' => end_of_digits(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        if let Some(new) = redact_token(redaction, &json[at..end]) {
            redacted.push_str(&json[kept..at]);
            redacted.push_str(&new);
            kept = end;
        }
        at = end;
    }
    (kept > 0).then(|| redacted + &json[kept..])
}

/// Returns what replaces a string or the digits of a number.
fn redact_token(redaction: &Redaction, token: &str) -> Option<String> {
    let text: Cow<'_, str> = if token.starts_with('"') {
        let inner = token.get(1..token.len() - 1)?;
        if inner.contains('\\') {
            Cow::Owned(serde_json::from_str(token).ok()?)
        } else {
            Cow::Borrowed(inner)
        }
    } else {
        Cow::Borrowed(has_card_number(token).then_some(token)?)
    };
    match redaction.text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(serde_json::Value::from(text).to_string()),
    }
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

    proptest! {
        #[test]
        fn json_stays_json(text in "\\PC{0,40}", number in any::<u64>()) {
            let value = json!({ text.clone(): [text, number, {"ghp_0123456789abcdef": null}] });
            let redacted = redact(&[("x", "[a-m]+")], &value.to_string());
            prop_assert!(serde_json::from_str::<Value>(redacted.as_str()).is_ok());
        }
    }
}
