//! SHA-256 over JSON in canonical form.

use std::{borrow::Cow, fmt, ops::Range};

use serde::{
    Deserializer as _,
    de::{IgnoredAny, Visitor},
};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a text; of JSON, in canonical form: keys sorted, strings without unnecessary escapes, no
/// white space. Numbers are compared as text, so `1`, `1.0` and integers over 64 bits differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A member that an object has twice. Parsers disagree on which of the two counts, so the text is
/// ambiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateMember(pub String);

impl Digest {
    /// Returns the digest of a JSON text, or that of its bytes if it is not JSON.
    pub fn of_json(json: &str) -> Self {
        match canonical(json) {
            Some(canonical) => Self::of_bytes(&canonical.bytes),
            None => Self::of_bytes(json.as_bytes()),
        }
    }

    /// Returns the digest of a JSON text; fails if any object in it has a member twice.
    pub fn of_unique(json: &str) -> Result<Self, DuplicateMember> {
        let Some(canonical) = canonical(json) else {
            return Ok(Self::of_bytes(json.as_bytes()));
        };
        match canonical.duplicate {
            Some(member) => Err(DuplicateMember(member)),
            None => Ok(Self::of_bytes(&canonical.bytes)),
        }
    }

    /// Returns the digest of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the first `digits` hexadecimal digits, for names without security purpose.
    pub fn short(&self, digits: usize) -> String {
        let mut text = self.to_string();
        text.truncate(digits);
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

/// Containers nested deeper than this are replaced by their digests: each level may copy its content, and
/// a definition may have a hundred thousand levels.
const LEVELS_COPIED: usize = 32;

/// A JSON text in canonical form, which is only hashed.
struct Canonical {
    bytes: Vec<u8>,
    /// The first duplicate member.
    duplicate: Option<String>,
}

/// An object or array whose end has not been read yet.
struct Open<'j> {
    is_object: bool,
    /// The place of its first bracket in the canonical text.
    begin: usize,
    /// The members of an object, which lie in the canonical text with commas between them.
    members: Vec<Member<'j>>,
    /// True if the value of the last member comes next.
    has_key: bool,
}

/// A key, and the place of `"key":value` in the canonical text.
type Member<'j> = (Cow<'j, [u8]>, Range<usize>);

/// Returns `None` if the text is not JSON.
fn canonical(json: &str) -> Option<Canonical> {
    // The scan below relies on a valid text.
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut bytes = Vec::with_capacity(json.len());
    let mut duplicate = None;
    let mut at = 0;
    loop {
        let byte = *json.as_bytes().get(at)?;
        let token = at..end_of_token(json.as_bytes(), at);
        at = token.end;
        if b" \t\n\r,:".contains(&byte) {
            continue;
        }
        if let Some(parent) = open.last_mut()
            && !matches!(byte, b'}' | b']')
            && !parent.has_key
        {
            if bytes.len() > parent.begin + 1 {
                bytes.push(b',');
            }
            if parent.is_object {
                let key = unescape(&json[token])?;
                let place = bytes.len();
                quote(&key, &mut bytes);
                bytes.push(b':');
                parent.members.push((key, place..place));
                parent.has_key = true;
                continue;
            }
        }
        match byte {
            b'{' | b'[' => {
                open.push(Open {
                    is_object: byte == b'{',
                    begin: bytes.len(),
                    members: Vec::new(),
                    has_key: false,
                });
                bytes.push(byte);
                continue;
            }
            b'}' | b']' => open.pop()?.close(open.len(), &mut bytes, &mut duplicate),
            b'"' => quote(&unescape(&json[token])?, &mut bytes),
            _ => bytes.extend_from_slice(&json.as_bytes()[token]),
        }
        let Some(parent) = open.last_mut() else {
            return Some(Canonical { bytes, duplicate });
        };
        if let Some((_, place)) = parent.members.last_mut() {
            place.end = bytes.len();
        }
        parent.has_key = false;
    }
}

impl Open<'_> {
    /// Ends the container, which is `depth` levels below the outermost value.
    fn close(mut self, depth: usize, bytes: &mut Vec<u8>, duplicate: &mut Option<String>) {
        if !self.members.is_sorted_by(|a, b| a.0 < b.0) {
            self.members.sort_by(|a, b| a.0.cmp(&b.0));
            let mut pairs = self.members.windows(2);
            if duplicate.is_none()
                && let Some(pair) = pairs.find(|pair| pair[0].0 == pair[1].0)
            {
                *duplicate = Some(String::from_utf8_lossy(&pair[0].0).into_owned());
            }
            let unsorted = bytes.split_off(self.begin);
            for (nth, (_, place)) in self.members.iter().enumerate() {
                bytes.push(if nth == 0 { b'{' } else { b',' });
                let place = place.start - self.begin..place.end - self.begin;
                bytes.extend_from_slice(&unsorted[place]);
            }
        }
        bytes.push(if self.is_object { b'}' } else { b']' });
        if depth >= LEVELS_COPIED {
            let digest = Digest::of_bytes(&bytes[self.begin..]);
            bytes.truncate(self.begin);
            bytes.extend_from_slice(format!("#{digest}").as_bytes());
        }
    }
}

/// Returns the end of the token of valid JSON that begins at `at`. White space counts as a token.
pub(crate) fn end_of_token(json: &[u8], at: usize) -> usize {
    let rest = &json[at + 1..];
    let inside = match json[at] {
        b'"' => {
            let mut is_escaped = false;
            let end = rest.iter().position(|byte| {
                let is_end = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(rest.len(), |end| end + 1)
        }
        b'-' | b'0'..=b'9' | b'a'..=b'z' => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            rest.iter()
                .position(|byte| !is_part(byte))
                .unwrap_or(rest.len())
        }
        _ => 0,
    };
    at + 1 + inside
}

/// Returns the bytes of a string literal. JSON may escape lone surrogates, which a `str` cannot contain.
fn unescape(literal: &str) -> Option<Cow<'_, [u8]>> {
    if !literal.contains('\\') {
        return Some(Cow::Borrowed(&literal.as_bytes()[1..literal.len() - 1]));
    }
    let mut deserializer = serde_json::Deserializer::from_str(literal);
    let bytes = deserializer.deserialize_bytes(Bytes).ok()?;
    Some(Cow::Owned(bytes))
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

/// Writes a string in quotes, with the escapes that JSON requires, as `serde_json` writes them.
fn quote(text: &[u8], to: &mut Vec<u8>) {
    to.push(b'"');
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    let mut rest = text;
    while let Some(plain) = rest.iter().position(|byte| !is_plain(byte)) {
        to.extend_from_slice(&rest[..plain]);
        match rest[plain] {
            byte @ (b'"' | b'\\') => to.extend_from_slice(&[b'\\', byte]),
            b'\n' => to.extend_from_slice(b"\\n"),
            b'\r' => to.extend_from_slice(b"\\r"),
            b'\t' => to.extend_from_slice(b"\\t"),
            0x08 => to.extend_from_slice(b"\\b"),
            0x0c => to.extend_from_slice(b"\\f"),
            byte => to.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[plain + 1..];
    }
    to.extend_from_slice(rest);
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_white_space_do_not_count() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(Digest::of_json(a) == Digest::of_json(b), same, "{a} {b}");
        };
        check(
            r#"{"a":1,"b":{"c":2,"d":3}}"#,
            r#"{ "b": {"d":3, "c":2}, "a":1 }"#,
            true,
        );
        check(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false);
        check(r#"{"a":[1, 2]}"#, r#"{"a":[12]}"#, false);
        check(r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#, false);
        check(r#"{"a":"1"}"#, r#"{"a":1}"#, false);
        check(r#"{"a":"\u00e9\/"}"#, "{\"a\":\"é/\"}", true);
        check(r#"{"\u0061":1}"#, r#"{"a":1}"#, true);
        check(r#"{"a":"\ud800"}"#, r#"{"a":"\uD800"}"#, true);
        check(r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#, false);
        check(r#"{"a":"b\",c"}"#, r#"{"a":"b","c":1}"#, false);
        check("no json", "no  json", false);
    }

    #[test]
    fn numbers_count_as_they_are_written() {
        let all = [
            "1",
            "1.0",
            "1e0",
            "10000000000000000001",
            "10000000000000000002",
            "10000000000000000000000000000000001",
            "10000000000000000000000000000000002",
            "0.1",
            "0.10000000000000000001",
            "-0",
            "0",
        ];
        let digests = all.map(|number| Digest::of_json(&format!(r#"{{"default": {number} }}"#)));
        let unique: std::collections::HashSet<_> = digests.iter().collect();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn a_member_that_is_there_twice_is_found_at_any_depth() {
        let check = |json: &str, expected: Option<&str>| {
            let found = Digest::of_unique(json).err().map(|it| it.0);
            assert_eq!(found.as_deref(), expected, "{json}");
        };
        check(r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#, None);
        check(r#"{"a":1,"b":2,"a":1}"#, Some("a"));
        check(r#"{"a":{"b":[{"x":1,"y":2,"x":3}]}}"#, Some("x"));
        check(
            r#"{"description":1,"d\u0065scription":2}"#,
            Some("description"),
        );
        check(r#"{"é":1,"\u00e9":2}"#, Some("é"));
        check(r#"{"\"":1,"\u0022":2}"#, Some("\""));
        check(r#"{"":1,"":2}"#, Some(""));
        check(
            r#"{"\ud800x":1,"\uD800x":2}"#,
            Some("\u{fffd}\u{fffd}\u{fffd}x"),
        );
        check(r#"{"a":1,"A":2}"#, None);
        let deep = |inside: &str| {
            format!(
                "{}{inside}{}",
                r#"{"a":["#.repeat(50_000),
                "]}".repeat(50_000)
            )
        };
        check(&deep(r#"{"b":1}"#), None);
        check(&deep(r#"{"b":1,"b":1}"#), Some("b"));
        assert_ne!(Digest::of_json(&deep("1")), Digest::of_json(&deep("2")));
        assert_eq!(Digest::of_json(&deep("1")), Digest::of_json(&deep(" 1 ")));
    }

    #[test]
    fn a_digest_stays_what_it_is() {
        let digest = Digest::of_json("{}");
        let sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest.to_string(), sha256);
        assert_eq!(digest.short(8), sha256[..8]);
        let plain = r#"{"a":"x\n\t\"\\\u0001é","b":[true,null,-1.5]}"#;
        let nested = r#"{"a":{"c":{},"d":["x",{"e":[],"f":"\""}]},"b":[{"a":1,"z":[[1,2],3]},{}]}"#;
        let mixed = r#"{"b":[{"z":[[1,2],3],"a":1},{}],"a":{"d":["x",{"f":"\"","e":[]}],"c":{}}}"#;
        assert_eq!(Digest::of_json(mixed), Digest::of_bytes(nested.as_bytes()));
        let spaced = r#" {"b": [true , null, -1.5], "a": "x\u000a\t\u0022\\\u0001\u00e9"} "#;
        assert_eq!(Digest::of_json(spaced), Digest::of_bytes(plain.as_bytes()));
    }
}
