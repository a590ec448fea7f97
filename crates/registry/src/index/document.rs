//! The text of a tool that is searched, and the weights of its parts.

use printable::first_chars;
use tantivy::tokenizer::{PreTokenizedString, Token};
use tool::Parameter;

use crate::entry::Entry;
use crate::limits::{
    DESCRIPTION_CHARS_INDEXED, ENUM_VALUES_INDEXED, PARAMETER_CHARS_INDEXED, PARAMETERS_INDEXED,
};
use crate::words;
use crate::words::ParsedQuery;

#[derive(Debug, Default)]
pub(super) struct ToolWords {
    pub(super) stems: Vec<String>,
    pub(super) exact: Vec<String>,
}

/// Returns one combined text that contains the name twice. Separate fields with added scores would
/// let a word that is rare in a short field outweigh all others.
pub(super) fn text(entry: &Entry) -> ToolWords {
    let mut text = ToolWords::default();
    text.add(entry.tool.name(), NAME_WEIGHT);
    text.add(entry.at.server.as_str(), 1);
    text.add(&entry.title().unwrap_or_default(), 1);
    let description = entry.description();
    text.add(first_chars(&description, DESCRIPTION_CHARS_INDEXED), 1);
    text.add(&entry.category, 1);
    for tag in &entry.tags {
        text.add(tag, 1);
    }
    for alias in &entry.aliases {
        text.add_exact(alias);
    }
    for added in [&entry.overlay.usage, &entry.overlay.notes] {
        text.add(added.as_deref().unwrap_or_default(), 1);
    }
    for request in &entry.requests {
        text.add_request(request);
    }
    let parameters = tool::parameters(&entry.input_schema());
    for parameter in parameters.iter().take(PARAMETERS_INDEXED) {
        text.add_parameter(parameter);
    }
    text
}

impl ToolWords {
    fn add(&mut self, part: &str, weight: usize) {
        for word in words::split(part) {
            if !word.is_joined {
                self.stems.extend(std::iter::repeat_n(word.stem, weight));
            }
            self.exact.push(word.exact);
        }
    }

    /// Adds the words of an example request, but not its values.
    fn add_request(&mut self, request: &str) {
        let ParsedQuery::Words(words) = ParsedQuery::of(request) else {
            return;
        };
        for word in words.words.into_iter().filter(|it| !it.is_value) {
            self.stems.push(word.stem);
            self.exact.push(word.exact);
        }
    }

    /// Adds words to the exact field only: they are found as written, and do not lengthen the text.
    fn add_exact(&mut self, part: &str) {
        let words = words::split(part).into_iter();
        self.exact.extend(words.map(|word| word.exact));
    }

    fn add_parameter(&mut self, parameter: &Parameter) {
        self.add(&parameter.name, 1);
        let description = first_chars(&parameter.description, PARAMETER_CHARS_INDEXED);
        self.add(description, 1);
        for value in parameter.enum_values.iter().take(ENUM_VALUES_INDEXED) {
            self.add(value, 1);
        }
    }
}

pub(super) fn tokens(words: Vec<String>) -> PreTokenizedString {
    let token = |(position, text)| Token {
        position,
        text,
        ..Token::default()
    };
    let tokens = words.into_iter().enumerate().map(token).collect();
    PreTokenizedString {
        text: String::new(),
        tokens,
    }
}

const NAME_WEIGHT: usize = 2;
