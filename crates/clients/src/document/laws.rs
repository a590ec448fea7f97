//! For any text of these shapes: adding an entry leaves every comment, removing it again leaves the other
//! values, and removing an entry leaves the others.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Format, Slot, edit, prune, read};

/// Generates a JSON text with blanks and comments at every possible place.
fn jsonc() -> impl Strategy<Value = String> {
    let gap = prop_oneof![
        4 => Just(String::new()),
        4 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\n\n\t".to_owned()),
        1 => Just(" // a, b }\n".to_owned()),
        1 => Just(" /* { \n */ ".to_owned()),
        1 => Just("\n".to_owned()),
    ];
    let leaf = prop_oneof![
        Just("1.50".to_owned()),
        Just("null".to_owned()),
        Just("\"a,}\\\"//é\"".to_owned()),
        Just("[1, {\"x\": []}]".to_owned()),
    ];
    let object = |inner: BoxedStrategy<String>| {
        let member = ("[a-f]{1,3}", gap.clone(), gap.clone(), inner, gap.clone());
        let members = proptest::collection::vec(member, 0..4);
        (members, gap.clone(), any::<bool>(), 0..3usize).prop_map(
            |(members, end, comma, holder)| {
                let mut text = "{".to_owned();
                let count = members.len();
                for (at, (key, before, behind, value, last)) in members.into_iter().enumerate() {
                    // One of them may be at the key of the servers.
                    let key = if at == holder {
                        "servers".to_owned()
                    } else {
                        format!("{key}{at}")
                    };
                    let comma = if at + 1 < count || comma { "," } else { "" };
                    text += &format!("{before}\"{key}\"{behind}:{behind}{value}{last}{comma}");
                }
                text + &end + "}"
            },
        )
    };
    let inner = object(leaf.boxed()).boxed();
    let file = (object(inner), gap).prop_map(|(object, end)| format!("{object}{end}"));
    file.prop_map(|text| text)
}

fn toml() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\n".to_owned()),
        Just("# a = [\n".to_owned()),
        "[a-f]{2}".prop_map(|key| format!("[servers.{key}]\ncommand = \"x\" # y\n")),
        "[a-f]{2}".prop_map(|key| format!("[servers.{key}.env]\n# z\n\"A b\" = '1'\n")),
        "[a-f]{2}".prop_map(|key| format!("[[{key}]]\nlist = [\n  1, # ]\n  2,\n]\n")),
        "[a-f]{2}".prop_map(|key| format!("[other.{key}]\ntext = \"\"\"\n[servers.no]\n\"\"\"\n")),
    ];
    let head = prop_oneof![
        2 => Just(""),
        1 => Just("a = 1\n"),
        1 => Just("servers.zz = { command = \"y\", env = {} }\n"),
        1 => Just("servers = { zz = { command = \"y\" } }\n"),
    ];
    (head, proptest::collection::vec(part, 0..6), any::<bool>()).prop_map(|(head, parts, open)| {
        let text = format!("{head}{}", parts.concat());
        if open {
            text.trim_end_matches('\n').to_owned()
        } else {
            text
        }
    })
}

/// Returns the number of comments of each kind that the generated texts have.
fn comments(text: &str) -> [usize; 5] {
    ["// a, b }", "/* {", "# a = [", "# y", "# z"].map(|comment| text.matches(comment).count())
}

/// Parses a text that is valid in its format and has at most one table of servers.
fn fits(text: &str, format: Format) -> Option<Value> {
    let whole = read(text, format).ok()?;
    let servers = whole.get("servers").unwrap_or(&Value::Null);
    (servers.is_null() || servers.is_object()).then_some(whole)
}

fn check(text: &str, format: Format) -> Result<(), TestCaseError> {
    for text in [
        text.to_owned(),
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
    ] {
        let Some(whole) = fits(&text, format) else {
            return Ok(());
        };
        let slot = Slot {
            key: &["servers".to_owned()],
            list: false,
        };
        let entry = json!({"command": "/bin/proxy x", "args": ["serve"], "env": {"A": "1"}});
        let fail = |error| TestCaseError::fail(format!("{error} in {text:?}"));
        let added = edit(&text, format, slot, "proxy", Some(&entry)).map_err(fail)?;
        prop_assert_eq!(comments(&added), comments(&text), "{:?} {:?}", text, added);
        let removed = edit(&added, format, slot, "proxy", None).map_err(fail)?;
        let mut values = [read(&removed, format).unwrap(), whole.clone()];
        for value in &mut values {
            prune(value, slot.key);
        }
        prop_assert_eq!(&values[0], &values[1], "{:?}", added);
        let others = whole.get("servers").and_then(Value::as_object);
        for name in others.into_iter().flat_map(|members| members.keys()) {
            let removed = edit(&text, format, slot, name, None).map_err(fail)?;
            let rest = read(&removed, format).unwrap();
            let rest = rest
                .get("servers")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            let kept = others.unwrap().iter().filter(|(key, _)| *key != name);
            let kept: serde_json::Map<_, _> = kept
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            prop_assert_eq!(rest, kept);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_rest_of_jsonc_stays(text in jsonc()) {
        check(&text, Format::Json)?;
    }

    #[test]
    fn the_rest_of_toml_stays(text in toml()) {
        check(&text, Format::Toml)?;
    }
}
