//! The forms in which programs print a value that they were given.

use base64::{
    Engine as _,
    engine::{GeneralPurpose, general_purpose},
};

/// The value itself, and what it looks like as JSON, in hexadecimal and in base64.
pub(crate) fn of(value: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(value).to_string();
    let mut forms = vec![
        value.to_owned(),
        quoted[1..quoted.len() - 1].to_owned(),
        hex::encode_upper(value),
        hex::encode(value),
    ];
    for engine in [
        &general_purpose::STANDARD_NO_PAD,
        &general_purpose::URL_SAFE_NO_PAD,
    ] {
        forms.extend((0..3).map(|before| base64_within(value, before, engine)));
    }
    forms
}

/// The text that is sure to be in the base64 of any text in which so many bytes (of three) come
/// before the value: a character holds six bits, so those at both ends hold bits of the neighbours
/// as well.
fn base64_within(value: &str, before: usize, engine: &GeneralPurpose) -> String {
    let mut bytes = vec![0; before];
    bytes.extend(value.as_bytes());
    let encoded = engine.encode(&bytes);
    let (begin, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded[begin..end].to_owned()
}

/// The number of bytes of the text that are the value, encoded as in an address: any byte of it may
/// be `%XX`, a space may be `+`.
pub(crate) fn find_encoded(text: &[u8], value: &[u8]) -> Option<usize> {
    let mut rest = text;
    for byte in value {
        let taken = match rest {
            [b'%', high, low, ..] if hex_byte(*high, *low) == Some(*byte) => 3,
            [first, ..] if first == byte || (*first == b'+' && *byte == b' ') => 1,
            _ => return None,
        };
        rest = &rest[taken..];
    }
    Some(text.len() - rest.len())
}

/// The value whose encoding for an address this is.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let encoded = match tail {
            [high, low, ..] if *first == b'%' => hex_byte(*high, *low),
            _ => None,
        };
        bytes.push(encoded.unwrap_or(*first));
        rest = if encoded.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn an_encoded_value_is_read() {
        for (text, value) in [
            ("p%40ss%2Fw", "p@ss/w"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
        ] {
            assert_eq!(decode(text), value);
        }
    }
}
