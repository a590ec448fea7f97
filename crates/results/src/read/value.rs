//! The value at a JSON pointer in a kept result.

use excerpt::Kind;
use jsonrpc::Fields;
use serde_json::value::RawValue;

use crate::store::Kept;

/// The text of the value, byte for byte; a string without its quotes and escapes.
pub(super) fn read(pointer: &str, kept: &mut Kept) -> Result<String, String> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("it begins with a slash: \"/{pointer}\""));
    }
    let mut why = "the result is no JSON; use part, grep or offset".to_owned();
    for place in 0..kept.head.texts.len() {
        let kind = kept.head.texts[place].kind;
        if !matches!(kind, Kind::Json | Kind::JsonLines) {
            continue;
        }
        let text = kept.text(place).map_err(|error| error.to_string())?;
        match find_value(&text, kind, pointer) {
            Ok(found) => {
                let string = serde_json::from_str::<String>(found).ok();
                return Ok(string.unwrap_or_else(|| found.to_owned()));
            }
            Err(missing) => why = missing,
        }
    }
    Err(why)
}

fn find_value<'a>(text: &'a str, kind: Kind, pointer: &str) -> Result<&'a str, String> {
    let mut value = text.trim();
    let mut passed = String::new();
    let mut steps = pointer.split('/').skip(1);
    if kind == Kind::JsonLines
        && let Some(step) = steps.next()
    {
        // Lines of JSON are read as one array.
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let line = step.parse().ok().and_then(|nth| lines.nth(nth));
        value = line
            .ok_or_else(|| format!("there is no line {step}, counted from 0"))?
            .trim();
        passed = format!("/{step}");
    }
    for step in steps {
        let step = step.replace("~1", "/").replace("~0", "~");
        value = find_inner(value, &step).map_err(|there| {
            let at = if passed.is_empty() {
                "the whole"
            } else {
                &passed
            };
            format!("{at} has no \"{step}\"; {there}")
        })?;
        passed.push('/');
        passed.push_str(&step);
    }
    Ok(value)
}

/// The member or item, or what there is in its place.
fn find_inner<'a>(value: &'a str, step: &str) -> Result<&'a str, String> {
    if let Some(fields) = Fields::of(value) {
        let found = fields.get(step).map(RawValue::get);
        return found.ok_or_else(|| {
            let keys: Vec<&str> = fields
                .0
                .iter()
                .map(|(key, _)| key.as_ref())
                .take(20)
                .collect();
            format!("its keys are {}", keys.join(", "))
        });
    }
    let items: Vec<&RawValue> =
        serde_json::from_str(value).map_err(|_| "it is neither object nor array".to_owned())?;
    let place: Option<usize> = step.parse().ok();
    let found = place
        .and_then(|place| items.get(place))
        .map(|item| item.get());
    found.ok_or_else(|| format!("it is an array of {} items", items.len()))
}

#[cfg(test)]
mod tests {
    use excerpt::Kind;

    use super::find_value;

    #[track_caller]
    fn check(text: &str, kind: Kind, pointer: &str, expected: Result<&str, &str>) {
        assert_eq!(
            find_value(text, kind, pointer),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn a_pointer_finds_its_value_as_it_was_written() {
        let text = r#" {"a/b": [1.0, {"~": null}], "c": 1e3} "#;
        check(text, Kind::Json, "/a~1b/0", Ok("1.0"));
        check(text, Kind::Json, "/a~1b/1/~0", Ok("null"));
        check(text, Kind::Json, "", Ok(text.trim()));
        check(
            text,
            Kind::Json,
            "/d",
            Err("the whole has no \"d\"; its keys are a/b, c"),
        );
        check(
            text,
            Kind::Json,
            "/a~1b/7",
            Err("/a/b has no \"7\"; it is an array of 2 items"),
        );
        check("{\"x\":1}\n{\"x\":2}\n", Kind::JsonLines, "/1/x", Ok("2"));
    }
}
