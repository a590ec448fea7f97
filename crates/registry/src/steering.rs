//! Signs that a definition was written to steer the model that reads it, and not to describe a tool.
//! A sign is no proof: it prompts a review by a person.

#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;

use printable::is_hidden;
use serde_json::Value;

use self::words::{SIGNS, Sign};

/// The shortest name of another server's tool that is no common word, in characters.
const NAME_CHARS_MIN: usize = 6;

/// The most of a sentence that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 160;

/// The number of consecutive blanks that move the text after them out of a person's sight.
const BLANKS_MAX: usize = 60;

/// Returns the signs that text of a definition is meant for the model alone, described for people.
/// `others` are the names of tools of other servers.
pub(crate) fn find_signs(definition: &Value, others: &HashSet<&str>) -> Vec<String> {
    let mut texts = Vec::new();
    collect_texts(definition, &mut texts);
    let mut signs = Vec::new();
    let is_unseen = |c: &char| is_hidden(*c) && !c.is_whitespace();
    let hidden = texts.iter().flat_map(|text| text.chars()).filter(is_unseen);
    let hidden = hidden.count();
    if hidden > 0 {
        let s = if hidden == 1 { "" } else { "s" };
        signs.push(format!("holds {hidden} hidden character{s}"));
    }
    let visible = texts
        .iter()
        .map(|text| text.chars().filter(|c| !is_unseen(c)).collect::<String>());
    let visible: Vec<String> = visible.collect();
    if visible.iter().any(|text| has_text_behind_blanks(text)) {
        signs.push("moves text out of sight, behind blanks".to_owned());
    }
    let mut known = HashSet::new();
    for text in &visible {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in sentences(&plain) {
            let found = SIGNS.iter().filter_map(|sign| sign.find(sentence));
            let mut found: Vec<_> = found.collect();
            found.retain(|(what, _)| known.insert(*what));
            let found = found.iter();
            signs.extend(found.map(|(what, shown)| format!("{what}: \"{shown}\"")));
        }
    }
    signs.extend(visible.iter().find_map(|text| name_of_other(text, others)));
    signs
}

impl Sign {
    /// Returns the description of the sign, and the words around it.
    fn find(&self, sentence: &str) -> Option<(&'static str, String)> {
        // ASCII case folding keeps byte positions.
        let lower = sentence.to_ascii_lowercase();
        let places = self.words.iter();
        let places = places.map(|any| any.iter().filter_map(|word| lower.find(word)).min());
        let places = places.collect::<Option<Vec<usize>>>()?;
        let first = places.into_iter().min().unwrap_or_default();
        let before = lower[..first].chars().count();
        let chars = sentence.chars().count();
        // The text after the sign is more informative than the text before it.
        let skipped = before
            .saturating_sub(SHOWN_CHARS_MAX / 4)
            .min(chars.saturating_sub(SHOWN_CHARS_MAX));
        let shown = sentence.chars().skip(skipped).take(SHOWN_CHARS_MAX);
        let shown: String = shown.collect();
        let start = if skipped > 0 { "…" } else { "" };
        let is_cut = skipped + SHOWN_CHARS_MAX < chars;
        let end = if is_cut { "…" } else { "" };
        Some((self.what, format!("{start}{}{end}", shown.trim())))
    }
}

fn sentences(plain: &str) -> impl Iterator<Item = &str> {
    plain.split_inclusive(". ").flat_map(|part| {
        part.split_inclusive("! ")
            .flat_map(|part| part.split_inclusive("? "))
            .flat_map(|part| part.split_inclusive("; "))
            .map(str::trim)
    })
}

/// Returns true if text follows so much white space, in a line or in empty lines, that no reader sees it.
fn has_text_behind_blanks(text: &str) -> bool {
    let mut blanks = text.trim().split(|c: char| !c.is_whitespace());
    blanks.any(|blanks| blanks.chars().count() > BLANKS_MAX)
}

fn name_of_other(text: &str, others: &HashSet<&str>) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut words = text.split(|c: char| !is_part(c));
    let is_foreign = |word: &&str| {
        word.len() >= NAME_CHARS_MIN && word.contains(['_', '-']) && others.contains(word)
    };
    let named = words.find(is_foreign)?;
    Some(format!("names a tool of another server: {named}"))
}

/// Every text of a definition that a model reads, names of members included.
fn collect_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                texts.push(name);
                collect_texts(value, texts);
            }
        }
        _ => {}
    }
}
