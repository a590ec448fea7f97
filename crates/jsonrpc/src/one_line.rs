//! Messages on one line: raw line breaks are replaced where bytes come in, and refused where they go out.
//!
//! A peer reads messages line by line. JSON allows line breaks between its tokens, so a message that was
//! received with some and sent with them would be several lines: fragments, or whole messages that its
//! author chose (decision 0043).

use bytes::{Bytes, BytesMut};

use crate::{frame, head::answered_id};

/// Replaces raw line breaks: by spaces between JSON tokens, and by tabs in strings, where both are invalid,
/// so that a text that is no JSON stays none. Copies only a text with line breaks that is shared.
pub fn one_line(bytes: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &bytes).is_none() {
        return bytes;
    }
    let mut line = BytesMut::from(bytes);
    replace_breaks(&mut line);
    line.freeze()
}

/// Does the same in place, for a text from its beginning on.
pub fn replace_breaks(text: &mut [u8]) {
    if memchr::memchr2(b'\n', b'\r', text).is_none() {
        return;
    }
    let (mut is_in_string, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            b'\n' | b'\r' if is_in_string => *byte = b'\t',
            b'\n' | b'\r' => *byte = b' ',
            b'"' if !is_escaped => is_in_string = !is_in_string,
            _ => {}
        }
        is_escaped = is_in_string && *byte == b'\\' && !is_escaped;
    }
}

/// The decision about a message that is about to be written.
pub(crate) enum Outgoing {
    /// Its only raw line break, if there is one, is its last byte.
    OneLine,
    /// A response of several lines, which this error response replaces.
    Replaced(Bytes),
    /// Another message of several lines, which must not be written.
    Refused,
}

/// Checks a message, given in parts, before it is written, and logs a refusal without the message's text.
pub(crate) fn check_outgoing(parts: &[Bytes]) -> Outgoing {
    let bytes: usize = parts.iter().map(Bytes::len).sum();
    let mut before = 0;
    let is_one_line = parts.iter().all(|part| {
        let first = memchr::memchr2(b'\n', b'\r', part).map(|at| before + at + 1);
        before += part.len();
        first.is_none_or(|end| end == bytes)
    });
    if is_one_line {
        return Outgoing::OneLine;
    }
    let message = parts.concat();
    let id =
        answered_id(&message).filter(|id| memchr::memchr2(b'\n', b'\r', id.as_bytes()).is_none());
    tracing::error!(
        bytes,
        id,
        "a message of several lines was not sent; this is a mistake of the proxy"
    );
    let Some(id) = id else {
        return Outgoing::Refused;
    };
    let why =
        "the proxy built this response as several lines, so it was not sent; please report this";
    Outgoing::Replaced(frame::error(id, frame::INTERNAL_ERROR, why))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Json, Line, LineReader, Message, events::EventReader, quote};

    /// Writes a value with these gaps around its tokens, cyclically.
    fn write_with_gaps(
        value: &Value,
        gaps: &mut impl Iterator<Item = &'static str>,
        to: &mut String,
    ) {
        to.push_str(gaps.next().unwrap());
        match value {
            Value::Object(members) => {
                let mut before = '{';
                for (key, value) in members {
                    to.push(before);
                    to.push_str(gaps.next().unwrap());
                    to.push_str(&quote(key));
                    to.push_str(gaps.next().unwrap());
                    to.push(':');
                    write_with_gaps(value, gaps, to);
                    before = ',';
                }
                to.push_str(if members.is_empty() { "{" } else { "" });
                to.push_str(gaps.next().unwrap());
                to.push('}');
            }
            Value::Array(items) => {
                let mut before = '[';
                for item in items {
                    to.push(before);
                    write_with_gaps(item, gaps, to);
                    before = ',';
                }
                to.push_str(if items.is_empty() { "[" } else { "" });
                to.push_str(gaps.next().unwrap());
                to.push(']');
            }
            other => to.push_str(&other.to_string()),
        }
        to.push_str(gaps.next().unwrap());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = "[a{}\\[\\]:,\"\\\\\n\r\té]{0,6}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c\n\"]{0,3}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The messages of every kind with a value in them.
    fn any_message() -> impl Strategy<Value = Value> {
        (any_value(), 0..5).prop_map(|(value, kind)| match kind {
            0 => json!({"jsonrpc": "2.0", "id": 7, "result": value}),
            1 => json!({"jsonrpc": "2.0", "id": "a\nb", "error": {"code": 1, "message": "m", "data": value}}),
            2 => json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": value}}),
            3 => json!({"jsonrpc": "2.0", "id": 8, "method": "elicitation/create", "params": {"x": value}}),
            _ => json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": [value]}),
        })
    }

    /// Reads a message from one line, and writes it again from its parts as each sink does.
    #[track_caller]
    fn pass(line: &Bytes, expected: &Value) {
        let message = Message::parse(line).unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!(serde_json::from_slice::<Value>(line).unwrap(), *expected);
        let part = |key: &str| expected.get(key).cloned().unwrap_or_default();
        let parts = [
            (message.params, "params"),
            (message.result, "result"),
            (message.error, "error"),
        ];
        for (raw, key) in parts {
            let Some(raw) = raw else { continue };
            for json in [Json::part_of(line, raw), Json::from(raw.to_owned())] {
                let written = frame::result("1", [json.bytes()]);
                assert!(matches!(check_outgoing(&written), Outgoing::OneLine));
                let written: Value = serde_json::from_slice(&written.concat()).unwrap();
                assert_eq!(written["result"], part(key));
            }
            let written = vec![frame::notification("x", raw.get())];
            assert!(matches!(check_outgoing(&written), Outgoing::OneLine));
        }
    }

    proptest! {
        #[test]
        fn a_message_with_line_breaks_at_any_legal_place_is_one_line(
            message in any_message(),
            gaps in prop::collection::vec(prop::sample::select(&["", "\n", "\r", "\r\n", " "][..]), 1..20),
        ) {
            let mut text = String::new();
            write_with_gaps(&message, &mut gaps.iter().copied().cycle(), &mut text);
            // A body over HTTP.
            pass(&one_line(Bytes::from(text.clone())), &message);
            // Text that one of our own parts built.
            let built = Json::from(serde_json::value::RawValue::from_string(text.trim().to_owned()).unwrap());
            pass(&built.bytes(), &message);
            // An event of several data lines.
            let lines = text.split(['\n', '\r']).map(|line| format!("data: {line}\n"));
            let stream = lines.collect::<String>() + "\n";
            let mut reader = EventReader::new(usize::MAX, Arc::new(|_| usize::MAX));
            reader.take(stream.as_bytes()).unwrap();
            pass(&reader.next_event().unwrap().data.unwrap(), &message);
            // A line of a child, in which only carriage returns are left.
            let line = text.replace('\n', "\r").trim().to_owned() + "\n";
            let mut lines = LineReader::new(std::io::Cursor::new(line));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(lines.next()).unwrap();
            let Some(Line::Whole(line)) = read else { panic!("{read:?}") };
            pass(&line, &message);
        }
    }

    #[test]
    fn a_text_without_line_breaks_is_not_copied() {
        let text = Bytes::from_static(br#"{"a":"\n"}"#);
        assert_eq!(one_line(text.clone()).as_ptr(), text.as_ptr());
        let flat = one_line(Bytes::from_static(b"{\r\n\"a\":\n1}\r"));
        assert_eq!(flat, "{  \"a\": 1} ");
    }

    #[test]
    fn a_string_with_a_raw_line_break_stays_invalid() {
        for text in ["{\"a\":\"x\ny\"}", "{\n\"\\\"\":\"\\\\\\\"\r\ny\"}"] {
            let flat = one_line(Bytes::from(text));
            assert!(serde_json::from_slice::<serde_json::Value>(&flat).is_err());
        }
    }

    #[track_caller]
    fn check(parts: &[&'static str], expected: Option<&str>) {
        let parts: Vec<Bytes> = parts
            .iter()
            .map(|part| Bytes::from_static(part.as_bytes()))
            .collect();
        match (check_outgoing(&parts), expected) {
            (Outgoing::OneLine, None) | (Outgoing::Refused, Some("")) => {}
            (Outgoing::Replaced(line), Some(id)) => {
                let text = str::from_utf8(&line).unwrap();
                assert!(text.starts_with(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"#
                )));
                assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
            }
            _ => panic!("{parts:?}"),
        }
    }

    #[test]
    fn only_the_last_byte_of_a_message_may_be_a_line_break() {
        check(&[r#"{"id":1,"result":"#, "{}", "}\n"], None);
        check(&["{}", "\n"], None);
        check(&["{}"], None);
        check(&[r#"{"id":1,"result":"#, "[1,\n2]", "}\n"], Some("1"));
        check(
            &[r#"{"id":"a","result":"#, "[1,\r2]", "}\n"],
            Some(r#""a""#),
        );
        check(&["{\"result\":[1,\n2],\"id\":7}\n"], Some("7"));
        check(&[r#"{"id":1,"result":{}}"#, "\r\n"], Some("1"));
        check(&["{\"id\":1,\"method\":\"x\",\"params\":{\n}}\n"], Some(""));
        check(&["{\"method\":\"x\"}\n", "{\"method\":\"y\"}\n"], Some(""));
    }
}
