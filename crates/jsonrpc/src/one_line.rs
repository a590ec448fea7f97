//! Messages on one line: raw line breaks are replaced where bytes come in, and refused where they go out.
//!
//! A peer reads messages line by line. JSON allows line breaks between its tokens, so a message that was
//! received with some and sent with them would be several lines: fragments, or whole messages that its
//! author chose (decision 0043).

use bytes::{Bytes, BytesMut};

use crate::{frame, head::answered_id};

/// Replaces each raw line break by a tab. Between JSON tokens both are white space; in a string both are
/// invalid, so a text that is no JSON stays none. Copies only a text with line breaks that is shared.
pub fn one_line(bytes: Bytes) -> Bytes {
    let Some(first) = memchr::memchr2(b'\n', b'\r', &bytes) else {
        return bytes;
    };
    let mut line = BytesMut::from(bytes);
    replace_breaks(&mut line[first..]);
    line.freeze()
}

pub(crate) fn replace_breaks(bytes: &mut [u8]) {
    for byte in bytes {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b'\t';
        }
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
    let id = answered_id(&message).filter(|id| memchr::memchr2(b'\n', b'\r', id.as_bytes()).is_none());
    tracing::error!(
        bytes,
        id,
        "a message of several lines was not sent; this is a mistake of the proxy"
    );
    let Some(id) = id else {
        return Outgoing::Refused;
    };
    let why = "the proxy built this response as several lines, so it was not sent; please report this";
    Outgoing::Replaced(frame::error(id, frame::INTERNAL_ERROR, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_line_breaks_is_not_copied() {
        let text = Bytes::from_static(br#"{"a":"\n"}"#);
        assert_eq!(one_line(text.clone()).as_ptr(), text.as_ptr());
        let flat = one_line(Bytes::from_static(b"{\r\n\"a\":\n1}\r"));
        assert_eq!(flat, "{\t\t\"a\":\t1}\t");
    }

    #[test]
    fn a_string_with_a_raw_line_break_stays_invalid() {
        for text in ["{\"a\":\"x\ny\"}", "{\"a\":\"x\r\ny\"}"] {
            let flat = one_line(Bytes::from(text));
            assert!(serde_json::from_slice::<serde_json::Value>(&flat).is_err());
        }
    }

    #[track_caller]
    fn check(parts: &[&'static str], expected: Option<&str>) {
        let parts: Vec<Bytes> = parts.iter().map(|it| Bytes::from_static(it.as_bytes())).collect();
        match (check_outgoing(&parts), expected) {
            (Outgoing::OneLine, None) => {}
            (Outgoing::Replaced(line), Some(id)) => {
                let text = str::from_utf8(&line).unwrap();
                assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"#)));
                assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
            }
            (Outgoing::Refused, Some("")) => {}
            _ => panic!("{parts:?}"),
        }
    }

    #[test]
    fn only_the_last_byte_of_a_message_may_be_a_line_break() {
        check(&[r#"{"id":1,"result":"#, "{}", "}\n"], None);
        check(&["{}", "\n"], None);
        check(&["{}"], None);
        check(&[r#"{"id":1,"result":"#, "[1,\n2]", "}\n"], Some("1"));
        check(&[r#"{"id":"a","result":"#, "[1,\r2]", "}\n"], Some(r#""a""#));
        check(&["{\"result\":[1,\n2],\"id\":7}\n"], Some("7"));
        check(&[r#"{"id":1,"result":{}}"#, "\r\n"], Some("1"));
        check(&["{\"id\":1,\"method\":\"x\",\"params\":{\n}}\n"], Some(""));
        check(&["{\"method\":\"x\"}\n", "{\"method\":\"y\"}\n"], Some(""));
    }
}
