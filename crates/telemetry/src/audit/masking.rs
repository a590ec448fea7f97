//! Masking of secrets in the recorded arguments of a call.

use std::borrow::Cow;

use printable::{HIDDEN, mask_prose, names_secret_argument};
use serde_json::{Map, Value};

/// Masks the value of every member whose name indicates a secret, and every text that contains one.
pub(super) fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => mask_members(members),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => {
            if let Cow::Owned(masked) = mask_prose(text) {
                *text = masked;
            }
        }
        _ => {}
    }
}

fn mask_members(members: &mut Map<String, Value>) {
    let named = std::mem::take(members).into_iter();
    members.extend(named.map(|(name, mut value)| {
        if names_secret_argument(&name) {
            value = Value::from(HIDDEN);
        } else {
            mask(&mut value);
        }
        (mask_prose(&name).into_owned(), value)
    }));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::mask;

    #[test]
    fn members_are_masked_by_their_names_at_any_depth() {
        let mut value = json!({"path": "/a", "api_key": "x", "deep": [{"Auth-Token": "t", "auth": 7}],
            "author": "ada", "tokens": ["t"], "issueKey": "A-1", "ghp_0123456789abcdef0123": true, "list": ["Bearer 0123456789"]});
        mask(&mut value);
        let expected: Value = json!({"path": "/a", "api_key": "***",
            "deep": [{"Auth-Token": "***", "auth": "***"}], "author": "ada",
            "tokens": "***", "issueKey": "A-1", "***": true,
            "list": ["Bearer ***"]});
        assert_eq!(value, expected);
    }
}
