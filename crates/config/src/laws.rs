//! Properties of parsing a file, for any bytes: used in tests, and as targets for a fuzzer.

use crate::{
    Environment, MistakePlace, Overrides, file,
    keys::{KEYS, KeySpec},
    read_layers,
};

/// Values of every kind, valid and invalid.
const VALUES: [&str; 25] = [
    "1",
    "0",
    "-1",
    "1e9",
    "true",
    "\"\"",
    "\"a\"",
    "\"${X}\"",
    "\"${\"",
    "\"~/a\"",
    "\"on-call\"",
    "\"https://h\"",
    "[\"a\"]",
    "[]",
    "{ a = \"${X}\" }",
    "{ a = ",
    "{ a = { b = [inf] } }",
    "[1]",
    "2026-01-02",
    "99999999999999999999999999999999999999999999",
    "0xff",
    "\"$A\"",
    "x",
    "\"",
    "",
];

/// Lines that are almost a configuration: each pair of bytes selects a key of ours, a value, and one
/// bracket or two around the name of its table.
fn almost_configuration(choices: &[u8]) -> String {
    let mut text = String::new();
    for pair in choices.chunks_exact(2) {
        let (key, value) = (usize::from(pair[0]), usize::from(pair[1]));
        let key = &KEYS[key % KEYS.len()];
        let table = Some(key.table()).filter(|table| !table.is_empty());
        let header = table.map_or(String::new(), |table| match value {
            ..128 => format!("[{table}]\n"),
            _ => format!("[[{table}]]\n"),
        });
        let header = header.replace("NAME", "a").replace("TOOL", "t");
        let line = format!(
            "{} = {}\n",
            KeySpec::name(key),
            VALUES[value % VALUES.len()]
        );
        text.push_str(&(header + &line));
    }
    text
}

/// A text is a configuration, or has at least one mistake; each mistake has the right place in the
/// file, they are in the order of the file, and all are printed under its name. `input`: the first byte
/// selects either choices or a text.
///
/// # Panics
///
/// If this does not hold.
pub fn a_text_is_a_configuration_or_has_mistakes(input: &[u8]) {
    let text = match input.split_first() {
        Some((first, choices)) if first % 2 == 0 => almost_configuration(choices),
        _ => String::from_utf8_lossy(input).into_owned(),
    };
    let env = Environment::from_iter([("HOME", "/home/ada")]);
    let overrides = Overrides {
        config: Some("/c/config.toml".into()),
        ..Overrides::default()
    };
    let file = file::find(&overrides, &env).expect("a whole path is found anywhere");
    let Err(mistakes) = read_layers(&file, &text, &overrides, &env) else {
        return;
    };
    assert!(!mistakes.is_empty(), "{text:?}");
    let mut before = (0, 0);
    for mistake in &mistakes {
        if let MistakePlace::Line { line, column } = mistake.place {
            assert!(
                line <= text.lines().count().max(1),
                "{mistake:?} in {text:?}"
            );
            assert!((line, column) >= before, "{mistakes:?}");
            before = (line, column);
        }
    }
    let error = crate::ConfigError {
        file: file.shown,
        mistakes,
    };
    assert!(error.to_string().starts_with("/c/config.toml:"), "{error}");
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn a_text_is_a_configuration_or_has_mistakes(input in vec(any::<u8>(), 0..60)) {
            super::a_text_is_a_configuration_or_has_mistakes(&input);
        }
    }
}
