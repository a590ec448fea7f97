//! The words of a command: text, and placeholders for the arguments of a call.

use serde_json::{Map, Value};

use crate::Template;

/// One word of a command, or the text of its stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandWord(Vec<WordPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum WordPart {
    Text(Template),
    Value(Placeholder),
}

/// `{name}`, `{name?}`, `{name...}`, or one of them with a `-` before the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placeholder {
    pub(super) name: String,
    /// Without a value, its word is left out.
    pub(super) is_optional: bool,
    /// It becomes a word for each element of a list.
    pub(super) is_list: bool,
    /// Its value may begin with `-`.
    may_be_option: bool,
}

impl CommandWord {
    /// Parses a word. Braces around anything but a name are literal.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('{') {
            plain.push_str(&rest[..at]);
            let inner = rest[at + 1..].split_once('}');
            let read = inner.and_then(|(inner, after)| Some((Placeholder::parse(inner)?, after)));
            // `${NAME}` is a variable.
            if let Some((placeholder, after)) = read.filter(|_| !plain.ends_with('$')) {
                parts.extend(read_text(&std::mem::take(&mut plain))?);
                parts.push(WordPart::Value(placeholder));
                rest = after;
            } else {
                plain.push('{');
                rest = &rest[at + 1..];
            }
        }
        parts.extend(read_text(&format!("{plain}{rest}"))?);
        let word = Self(parts);
        if word.0.len() > 1 && word.placeholders().any(|it| it.is_list) {
            return Err(format!(
                "`{text}`: a list, `{{name...}}`, must be a word by itself"
            ));
        }
        Ok(word)
    }

    pub(super) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|part| match part {
            WordPart::Value(placeholder) => Some(placeholder),
            WordPart::Text(_) => None,
        })
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &Template> {
        self.0.iter().filter_map(|part| match part {
            WordPart::Text(text) => Some(text),
            WordPart::Value(_) => None,
        })
    }

    /// Returns the text, if there are no placeholders.
    pub(super) fn into_text(self) -> Option<Template> {
        match <[WordPart; 1]>::try_from(self.0) {
            Ok([WordPart::Text(text)]) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_dashes(&self) -> bool {
        matches!(self.0.as_slice(), [WordPart::Text(it)] if it.plain().as_deref() == Some("--"))
    }

    /// Returns the words of one call: none if a value is left out, several for a list. `is_safe`: the
    /// program reads no option here.
    pub(super) fn fill(
        &self,
        properties: &Value,
        arguments: &Map<String, Value>,
        mut is_safe: bool,
    ) -> Result<Vec<Template>, String> {
        let mut word = Template::literal("");
        for part in &self.0 {
            let it = match part {
                WordPart::Text(text) => {
                    // A variable may be empty.
                    is_safe |= text.expand(|_| Some(String::new())) != Ok(String::new());
                    word.append(text.clone());
                    continue;
                }
                WordPart::Value(it) => it,
            };
            let given = arguments.get(&it.name).filter(|value| !value.is_null());
            let property = &properties[&it.name];
            match given.or_else(|| property.get("default")) {
                Some(Value::Array(items)) if it.is_list => {
                    let items = items.iter();
                    return items.map(|item| it.fill(property, item, is_safe)).collect();
                }
                Some(value) => {
                    word.append(it.fill(property, value, is_safe)?);
                    is_safe |= value != "";
                }
                None if it.is_optional => return Ok(Vec::new()),
                None => return Err(format!("`{}` is missing", it.name)),
            }
        }
        Ok(vec![word])
    }
}

/// Returns the part for a text, unless it is empty.
fn read_text(text: &str) -> Result<Option<WordPart>, String> {
    let read = Template::parse(text).map_err(|error| error.to_string())?;
    Ok((!text.is_empty()).then_some(WordPart::Text(read)))
}

impl Placeholder {
    /// Parses the text between the braces.
    fn parse(inner: &str) -> Option<Self> {
        let bare = inner.strip_prefix('-').unwrap_or(inner);
        let list = bare.strip_suffix("...");
        let name = list.or(bare.strip_suffix('?')).unwrap_or(bare);
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (begins_well && name.chars().all(is_letter)).then(|| Self {
            name: name.to_owned(),
            is_optional: name != bare,
            is_list: list.is_some(),
            may_be_option: bare != inner,
        })
    }

    /// Returns the text of a value. Refuses one that the program would read as an option, unless the
    /// configuration has it or allows any.
    fn fill(&self, property: &Value, value: &Value, is_safe: bool) -> Result<Template, String> {
        let choices = [&property["enum"], &property["items"]["enum"]];
        let mut choices = choices.into_iter().filter_map(Value::as_array);
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if is_safe
            || self.may_be_option
            || !text.starts_with('-')
            || choices.any(|it| it.contains(value))
        {
            return Ok(Template::literal(&text));
        }
        Err(format!(
            "`{}` begins with `-`, which the program would read as an option",
            self.name
        ))
    }
}
