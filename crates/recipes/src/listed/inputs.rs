//! The arguments, variables and headers of a listed server: texts whose parts the user gives.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::recipe::{Parameter, Variable};

/// The longest text that is kept, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// An argument, a variable, a header, or a part of one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawInput {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) value_hint: Option<String>,
    pub(super) description: Option<String>,
    pub(super) value: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) format: Option<String>,
    pub(super) is_required: bool,
    pub(super) is_secret: bool,
    pub(super) variables: BTreeMap<String, RawInput>,
}

/// A text of others on one line, shortened.
pub(super) fn line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(TEXT_CHARS_MAX).collect()
}

/// Escapes a text, so that the configuration fills nothing in.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The parameters and variables of a way, while its texts are read.
#[derive(Default)]
pub(super) struct Inputs {
    /// The server's name in front of the names of secrets.
    pub(super) prefix: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) variables: Vec<Variable>,
    pub(super) env: BTreeMap<String, String>,
}

/// A name for a parameter or variable: `--log-level` is `LOG_LEVEL`.
pub(super) fn upper(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('_');
    let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase());
    if starts_well {
        name.to_owned()
    } else {
        format!("VALUE_{name}")
    }
}

impl RawInput {
    pub(super) fn default(&self) -> Option<String> {
        match self.default.as_ref()? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    pub(super) fn what(&self) -> String {
        line(self.description.as_deref().unwrap_or_default())
    }

    pub(super) fn is_on(&self) -> bool {
        self.value.clone().or_else(|| self.default()).as_deref() == Some("true")
    }
}

impl Inputs {
    /// The text of a value that the user gives: `{NAME}`, or `${NAME}` for a secret.
    pub(super) fn given(&mut self, name: &str, input: &RawInput) -> String {
        if input.is_secret {
            let name = format!("{}_{}", self.prefix, upper(name));
            self.variable(&name, input, true);
            return format!("${{{name}}}");
        }
        let mut name = upper(name);
        let known = |it: &Parameter, name: &str| it.name == name && it.what != input.what();
        while self.parameters.iter().any(|it| known(it, &name)) {
            name.push_str("_2");
        }
        if !self.parameters.iter().any(|it| it.name == name) {
            self.parameters.push(Parameter {
                name: name.clone(),
                what: input.what(),
                default: input.default().map(|it| literal(&it)),
                args: Vec::new(),
            });
        }
        format!("{{{name}}}")
    }

    pub(super) fn variable(&mut self, name: &str, input: &RawInput, is_required: bool) {
        if !self.variables.iter().any(|it| it.name == name) {
            self.variables.push(Variable {
                name: name.to_owned(),
                required: is_required,
                secret: input.is_secret,
                what: input.what(),
                origin: None,
            });
        }
    }

    /// A text with `{name}` in it for each of its variables; other braces stay.
    pub(super) fn filled(&mut self, text: &str, variables: &BTreeMap<String, RawInput>) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_name(rest) {
            made.push_str(&literal(before));
            match variables.get(name) {
                Some(RawInput {
                    value: Some(value), ..
                }) => made.push_str(&literal(value)),
                Some(input) => made.push_str(&self.given(name, input)),
                None => made.push_str(&format!("{{{name}}}")),
            }
            rest = after;
        }
        made + &literal(rest)
    }

    /// The words of arguments that are always given. Others become parameters with words of their own.
    pub(super) fn words(&mut self, list: &[RawInput]) -> Vec<String> {
        let mut words = Vec::new();
        for input in list {
            let is_named = input.kind.as_deref() == Some("named");
            let flag = input
                .name
                .as_ref()
                .filter(|_| is_named)
                .map(|it| literal(it));
            if input.format.as_deref() == Some("boolean") && is_named {
                words.extend(flag.filter(|_| input.is_on()));
                continue;
            }
            let name = input.value_hint.as_ref().or(input.name.as_ref());
            let name = name.map_or("value", String::as_str);
            let is_given = input.is_required || input.default().is_some() && !input.is_secret;
            let can_be_given = is_named && input.variables.is_empty() || input.value_hint.is_some();
            if let Some(value) = &input.value {
                let value = self.filled(value, &input.variables);
                words.extend(flag);
                words.push(value);
            } else if is_given {
                let value = self.given(name, input);
                words.extend(flag);
                words.push(value);
            } else if can_be_given && !input.is_secret {
                let text = self.given(name, input);
                let parameter = self
                    .parameters
                    .iter_mut()
                    .find(|it| format!("{{{}}}", it.name) == text);
                if let Some(parameter) = parameter {
                    parameter.args = flag.into_iter().chain([text]).collect();
                }
            }
        }
        words
    }

    pub(super) fn environment(&mut self, list: &[RawInput]) -> Result<(), String> {
        for input in list {
            let name = input.name.as_deref().unwrap_or_default();
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty()
                || !name.chars().all(is_of_name)
                || name.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(format!("`{name}` is no name of a variable"));
            }
            if let Some(value) = &input.value {
                let value = self.filled(value, &input.variables);
                self.env.insert(name.to_owned(), value);
            } else if input.default().is_some() && !input.is_secret {
                let value = self.given(name, input);
                self.env.insert(name.to_owned(), value);
            } else {
                self.variable(name, input, input.is_required);
            }
        }
        Ok(())
    }

    /// The words of `docker run` before the image. `-e NAME={secret}` becomes `-e NAME`, so that no
    /// secret is in a command line.
    pub(super) fn docker_words(&mut self, list: &[RawInput], image: &str) -> Vec<String> {
        let mut words = Vec::new();
        let without_tag = image.rsplit_once(':').map_or(image, |(before, _)| before);
        for input in list {
            let is_env = matches!(input.name.as_deref(), Some("-e" | "--env"));
            let pair = input.value.as_deref().and_then(|it| it.split_once('='));
            if let Some((name, value)) = pair.filter(|_| is_env) {
                words.extend(["-e".to_owned(), literal(name)]);
                let secret = value.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
                let secret = secret
                    .and_then(|it| input.variables.get(it))
                    .filter(|it| it.is_secret);
                match secret {
                    Some(secret) => self.variable(name, secret, true),
                    None => {
                        let value = self.filled(value, &input.variables);
                        self.env.insert(name.to_owned(), value);
                    }
                }
                continue;
            }
            let own = self.words(std::slice::from_ref(input));
            let is_ours =
                |it: &String| ["run", "-i", "--rm", image, without_tag].contains(&it.as_str());
            words.extend(own.into_iter().filter(|it| !is_ours(it)));
        }
        let names = self
            .env
            .keys()
            .chain(self.variables.iter().map(|it| &it.name));
        let missing: BTreeSet<String> = names.filter(|it| !words.contains(it)).cloned().collect();
        words.extend(missing.into_iter().flat_map(|name| ["-e".to_owned(), name]));
        words
    }
}

/// The text before the first name in braces, the name, and the text after it.
pub(super) fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('{')?;
    let close = open + text[open..].find('}')?;
    Some((&text[..open], &text[open + 1..close], &text[close + 1..]))
}
