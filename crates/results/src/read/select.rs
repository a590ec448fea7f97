//! The values that a jq expression selects in a kept result.

mod slip;

use std::io::{self, Write};

use excerpt::TextKind;
use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{self, Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};

use super::limits::{ANSWER_BYTES_MAX, too_long};
use crate::store::KeptResult;

/// Returns the values, one per line. The error is for the author of the expression.
pub(super) fn read(filter: &str, kept: &mut KeptResult) -> Result<String, String> {
    let mut has_json = false;
    let mut output = Output(Vec::new());
    for place in 0..kept.head.texts.len() {
        if matches!(
            kept.head.texts[place].kind,
            TextKind::Json | TextKind::JsonLines
        ) {
            has_json = true;
            let text = kept.text(place).map_err(|error| error.to_string())?;
            run(filter, &text, &mut output)?;
        }
    }
    if !has_json {
        return Err("the result is not JSON; use part, grep or offset".to_owned());
    }
    String::from_utf8(output.0).map_err(|_| "its output is not UTF-8".to_owned())
}

/// The answer so far, limited to the longest answer.
struct Output(Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::other(too_long()));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs an expression over each value of a text.
fn run(filter: &str, text: &str, output: &mut impl Write) -> Result<(), String> {
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let funs = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let program = File {
        code: filter,
        path: (),
    };
    let modules = Loader::new(defs).load(&arena, program);
    let modules = modules.map_err(|errors| explain_unread(&errors))?;
    let filter = Compiler::default().with_funs(funs).compile(modules);
    let filter = filter.map_err(|errors| {
        let unknown = errors.iter().flat_map(|(_, errors)| errors);
        let unknown = unknown.map(|(name, what)| format!("unknown {} `{name}`", what.as_str()));
        unknown.collect::<Vec<_>>().join(", ")
    })?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    for value in read::parse_many(text.as_bytes()) {
        let value = value.map_err(|error| error.to_string())?;
        for found in filter.id.run((context.clone(), value)).map(unwrap_valr) {
            let found = found.map_err(|error| slip::explain(&error.to_string()))?;
            let line = match &found {
                // As `jq -r` does: a text is for reading.
                Val::TStr(text) => String::from_utf8_lossy(text).into_owned(),
                other => other.to_string(),
            };
            writeln!(output, "{line}").map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Describes the part of an expression that cannot be parsed, and its place.
fn explain_unread(errors: &load::Errors<&str, ()>) -> String {
    let mut shown = Vec::new();
    for (_, error) in errors {
        match error {
            load::Error::Io(errors) => {
                shown.extend(errors.iter().map(|(path, why)| format!("{path}: {why}")));
            }
            load::Error::Lex(errors) => {
                let near = errors
                    .iter()
                    .map(|(expected, at)| near(expected.as_str(), at));
                shown.extend(near);
            }
            load::Error::Parse(errors) => {
                let near = errors
                    .iter()
                    .map(|(expected, at)| near(expected.as_str(), at));
                shown.extend(near);
            }
        }
    }
    format!("invalid jq expression: {}", shown.join(", "))
}

/// The longest piece of an unreadable expression that is repeated, in characters.
const NEAR_CHARS_MAX: usize = 30;

fn near(expected: &str, at: &str) -> String {
    let at = printable::first_chars(at, NEAR_CHARS_MAX);
    if at.is_empty() {
        return format!("expected {expected} at its end");
    }
    format!("expected {expected} at `{at}`")
}

#[cfg(test)]
mod tests {
    use super::run;

    #[track_caller]
    fn check(filter: &str, text: &str, expected: Result<&str, &str>) {
        let mut output = Vec::new();
        let done = run(filter, text, &mut output);
        let output = String::from_utf8(output).expect("JSON is UTF-8");
        assert_eq!(
            done.map(|()| output),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn an_expression_answers_a_line_a_value() {
        let items = r#"{"items":[{"id":1,"t":"a b"},{"id":2,"t":"c"}]}"#;
        check(".items[].id", items, Ok("1\n2\n"));
        check(".items[0].t", items, Ok("a b\n"));
        check("[.items[] | {id}]", items, Ok("[{\"id\":1},{\"id\":2}]\n"));
        check(".x", "{\"x\":1}\n{\"x\":2}\n", Ok("1\n2\n"));
        check(
            ".name",
            "[{\"name\":1}]",
            Err(
                "cannot index array with \"name\": for every item `.[].name`, for the first \
                 `.[0].name`",
            ),
        );
        check("nonsense", "{}", Err("unknown filter `nonsense`"));
        check(
            ".[",
            "{}",
            Err("invalid jq expression: expected closing bracket at its end"),
        );
    }
}
