//! Reads the id of the answered request from the head of a line.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    fields::{quote, unquote},
    surrogates::without_lone_surrogates,
};

/// Returns the id of the request that `line` answers, as the peer wrote it; `None` if the line is
/// not a response.
///
/// Parsing stops after the id and a `result` or `error`, so a long response whose id comes first is
/// not parsed to its end, and the head of a discarded line is enough.
pub fn answered_id(line: &[u8]) -> Option<&str> {
    let mut head = LineHead::default();
    let mut text = serde_json::Deserializer::from_slice(line);
    // The parser reports an early stop as an error; the fields that it read before are used.
    let _ = text.deserialize_map(&mut head);
    head.id.filter(|_| head.is_answer)
}

/// The most digits of a small number, which most ids are.
const DIGITS_MAX: usize = 18;

/// The largest power of ten that is written as zeros in a canonical id.
const ZEROS_MAX: i64 = 40;

/// Returns the canonical form of an id or a progress token: equal for two texts exactly if they are the same
/// string or the same number, at any precision (`1`, `1.0`, `10e-1`). Returns `None` if the text is neither.
///
/// It is a key inside the program. A response carries the id as the peer spelled it.
pub fn canonical_id(id: &str) -> Option<String> {
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && (1..=DIGITS_MAX).contains(&id.len()) && (id == "0" || !id.starts_with('0')) {
        return Some(id.to_owned());
    }
    let json = serde_json::from_str::<&RawValue>(id).ok()?.get();
    if json.starts_with('"') {
        // An answer carries half a surrogate pair as U+FFFD, and is found by that.
        let text = without_lone_surrogates(json);
        return unquote(&text).map(|text| quote(&text));
    }
    is_number_text(json).then(|| canonical_number(json).unwrap_or_else(|| json.to_owned()))
}

fn is_number_text(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Returns the digits without zeros at either end, and the power of ten. `None` if the exponent has more
/// digits than any number that can be meant.
fn canonical_number(number: &str) -> Option<String> {
    let (sign, number) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let padded = [whole, fraction].concat();
    let trimmed = padded.trim_end_matches('0');
    let digits = trimmed.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let dropped = i64::try_from(padded.len() - trimmed.len()).ok()?;
    let behind_point = i64::try_from(fraction.len()).ok()?;
    let written: i64 = exponent.parse().ok()?;
    let exponent = written.checked_add(dropped - behind_point)?;
    Some(match usize::try_from(exponent) {
        Ok(zeros) if exponent <= ZEROS_MAX => format!("{sign}{digits}{}", "0".repeat(zeros)),
        _ => format!("{sign}{digits}e{exponent}"),
    })
}

#[derive(Default)]
struct LineHead<'a> {
    id: Option<&'a str>,
    is_answer: bool,
}

impl<'de> Visitor<'de> for &mut LineHead<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct BorrowedKey<'k>(#[serde(borrow)] Cow<'k, str>);
        while let Some(BorrowedKey(key)) = members.next_key::<BorrowedKey<'de>>()? {
            match &*key {
                "id" => self.id = Some(members.next_value::<&RawValue>()?.get()),
                "method" => {
                    self.is_answer = false;
                    return Ok(());
                }
                "result" | "error" => {
                    self.is_answer = true;
                    if self.id.is_some() {
                        return Ok(());
                    }
                    members.next_value::<IgnoredAny>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{answered_id, canonical_id};

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(answered_id(line.as_bytes()), expected, "{line}");
    }

    #[test]
    fn an_answer_is_known_whatever_the_order_of_its_members() {
        check(r#"{"jsonrpc":"2.0","id":12,"result":{"id":1"#, Some("12"));
        check(
            r#"{"jsonrpc":"2.0","id":"a\",b","error":{}}"#,
            Some(r#""a\",b""#),
        );
        check(
            r#" { "id" : 7 , "result" : {}, "jsonrpc":"2.0"}"#,
            Some("7"),
        );
        check(r#"{"result":{"id":1},"id":8,"jsonrpc":"2.0"}"#, Some("8"));
        check(
            r#"{"error":{"code":1},"jsonrpc":"2.0","id":null}"#,
            Some("null"),
        );
    }

    #[test]
    fn what_is_no_answer_has_no_id() {
        check(r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"x","params":{"id":1}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":3}"#, None);
        check(r#"[{"id":3,"result":{}}]"#, None);
        check("", None);
    }

    #[test]
    fn ids_are_equal_in_every_spelling() {
        for spellings in [
            &[r#""\u0061""#, r#""a""#, r#" "a" "#][..],
            &[r#""\ud83d""#, r#""\ufffd""#, r#""\uDE00""#],
            &["7", " 7 ", "7.0", "70e-1", "0.7E+1", "7e0", "7.000"],
            &["0", "0.0", "-0", "-0.0", "0e5", "-0E-9"],
            &["120", "1.2e2", "12E1", "120.0"],
            &["1000", "1e3", "1E3", "1e+3"],
            &["1.5", "15e-1", "1.50"],
            &["-1", "-1.0", "-10e-1"],
            &[
                "9007199254740993",
                "9007199254740993.0",
                "9007199254740993e0",
            ],
            &["18446744073709551617123", "18446744073709551617123.0"],
            &["1e400", "10e399", "1E+400"],
        ] {
            for spelling in spellings {
                let (first, other) = (canonical_id(spellings[0]), canonical_id(spelling));
                assert!(
                    first.is_some() && first == other,
                    "{spelling}: {first:?} {other:?}"
                );
            }
        }
        assert_eq!(canonical_id("1e3").as_deref(), Some("1000"));
        assert_eq!(canonical_id("-0.0").as_deref(), Some("0"));
    }

    #[test]
    fn different_ids_have_different_forms_and_other_values_none() {
        let ids = [
            "1",
            "-1",
            "10",
            "1.1",
            "0.1",
            "1e41",
            "1e42",
            "1e-3",
            r#""1""#,
            r#""""#,
            "9007199254740992",
            "9007199254740993",
            r#""\ufffd""#,
            "1e99999999999999999999",
        ];
        let forms: std::collections::BTreeSet<_> = ids.iter().map(|id| canonical_id(id)).collect();
        assert_eq!(forms.len(), ids.len(), "{forms:?}");
        assert!(!forms.contains(&None));
        for other in [
            "012", "", "null", "true", "[]", "{}", "[1]", "1 2", "+1", ".5", "NaN",
        ] {
            assert_eq!(canonical_id(other), None, "{other}");
        }
    }
}
