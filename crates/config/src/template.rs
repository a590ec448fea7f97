//! Texts with `${VAR}` in them, in the type of `fleet`.

use std::collections::BTreeMap;

use fleet::{Template, TemplateError};

use super::mistake::Fault;

/// Parses a text that was already checked to be a template.
pub(super) fn read_template(text: &str) -> Result<Template, Fault> {
    Template::parse(text).map_err(|error: TemplateError| Fault::bare(error.to_string()))
}

/// Templates by name, in the order of their names.
pub(super) fn read_pairs(
    written: &BTreeMap<String, String>,
) -> Result<Vec<(String, Template)>, Fault> {
    let pair = |(name, text): (&String, &String)| Ok((name.clone(), read_template(text)?));
    written.iter().map(pair).collect()
}
