//! Texts with `${VAR}` in them, in the type of `fleet`.

use std::collections::BTreeMap;

use fleet::Template;

use super::mistake::Fault;

/// Parses a text that was already checked to be a template.
pub(super) fn read_template(text: &str) -> Result<Template, Fault> {
    Template::parse(text).map_err(|error| Fault::bare(error.to_string()))
}

pub(super) fn read_optional(text: Option<&String>) -> Result<Option<Template>, Fault> {
    text.map(|text| read_template(text)).transpose()
}

/// Reads the text of a key that is used as it is written: no variable is filled in.
pub(super) fn read_plain(key: &str, text: Option<&String>) -> Result<Option<String>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let plain = read_template(text)?.plain();
    let what = || format!("`{key}` cannot contain variables");
    plain
        .map(Some)
        .ok_or_else(|| Fault::new(what(), "write it without `${`"))
}

/// Templates by name, in the order of their names.
pub(super) fn read_pairs(
    written: &BTreeMap<String, String>,
) -> Result<Vec<(String, Template)>, Fault> {
    let pair = |(name, text): (&String, &String)| Ok((name.clone(), read_template(text)?));
    written.iter().map(pair).collect()
}
