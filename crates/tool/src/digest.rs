//! A short, stable fingerprint of a JSON text.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256 over JSON in canonical form (keys sorted, no white space), so that two servers that
/// send the same definition in another order have the same digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a JSON text; of the bytes themselves where they are no JSON.
    pub fn of_json(json: &str) -> Self {
        match serde_json::from_str::<Value>(json) {
            Ok(value) => Self::of_bytes(canonical(&value).as_bytes()),
            Err(_) => Self::of_bytes(json.as_bytes()),
        }
    }

    /// The digest of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first `digits` hexadecimal digits, for names of files and for people.
    pub fn short(&self, digits: usize) -> String {
        let mut text = self.to_string();
        text.truncate(digits);
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let body: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", body.join(","))
        }
        Value::Array(items) => {
            let body: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", body.join(","))
        }
        scalar => scalar.to_string(),
    }
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
        check(r#"{"a":"1"}"#, r#"{"a":1}"#, false);
        check(r#"{"a":"\u00e9"}"#, "{\"a\":\"é\"}", true);
        check("no json", "no  json", false);
    }

    #[test]
    fn a_digest_stays_what_it_is() {
        let digest = Digest::of_json("{}");
        let sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest.to_string(), sha256);
        assert_eq!(digest.short(8), sha256[..8]);
    }
}
