//! Texts with parameters, `{NAME}`, and variables, `${VAR}`.

use std::collections::BTreeMap;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart<'a> {
    /// Literal text.
    Text(&'a str),
    /// `{NAME}`.
    Parameter(&'a str),
    /// `${VAR}`: the configuration keeps it as it is.
    Variable(&'a str),
}

/// Splits a text into its parts. Braces around anything that is not a name are literal.
pub(crate) fn pieces(text: &str) -> Vec<TemplatePart<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, name, after)) = next_name(rest) {
        match before.strip_suffix('$') {
            Some(before) => {
                pieces.extend([TemplatePart::Text(before), TemplatePart::Variable(name)]);
            }
            None => pieces.extend([TemplatePart::Text(before), TemplatePart::Parameter(name)]),
        }
        rest = after;
    }
    pieces.push(TemplatePart::Text(rest));
    pieces
}

/// Returns the text before the first name in braces, the name, and the text after it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let inside = &text[open + 1..];
        let length = inside.find(|c: char| !is_of_name(c)).unwrap_or(0);
        if length > 0 && inside[length..].starts_with('}') {
            let after = &inside[length + 1..];
            return Some((&text[..open], &inside[..length], after));
        }
        from = open + 1;
    }
    None
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Replaces parameters by their values. A parameter without a value is left unchanged.
pub(crate) fn fill(text: &str, values: &BTreeMap<&str, &str>) -> String {
    let pieces = pieces(text).into_iter().map(|piece| match piece {
        TemplatePart::Text(text) => text.to_owned(),
        TemplatePart::Variable(name) => format!("${{{name}}}"),
        TemplatePart::Parameter(name) => match values.get(name) {
            Some(value) => (*value).to_owned(),
            None => format!("{{{name}}}"),
        },
    });
    pieces.collect()
}

/// Returns the names of the variables in a text.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        TemplatePart::Variable(name) => Some(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let values = BTreeMap::from([("DIR", "/a"), ("ORG", "acme")]);
        assert_eq!(fill(text, &values), expected);
    }

    #[test]
    fn parameters_are_filled_in_and_variables_stay() {
        check("{DIR}/README.md", "/a/README.md");
        check("https://x/{ORG}?d={DIR}", "https://x/acme?d=/a");
        check("Bearer ${ORG}", "Bearer ${ORG}");
        check("{UNKNOWN} {} {a b} ${", "{UNKNOWN} {} {a b} ${");
        check("{{DIR}}", "{/a}");
        check("ä{DIR", "ä{DIR");
    }

    #[test]
    fn the_variables_of_a_text_are_named() {
        assert_eq!(
            variables("a ${X_1} {Y} ${Z}").collect::<Vec<_>>(),
            ["X_1", "Z"]
        );
    }
}
