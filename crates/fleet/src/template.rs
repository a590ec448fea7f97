//! Text with `${VAR}`, `${VAR:-default}` and references to secrets in it.

use std::fmt;

use secrets::{Reference, ReferenceError};

/// A configured text whose variables and secrets are filled in when a server starts.
///
/// `${secret:NAME}`, `${file:PATH}` and `${command:WORDS}` are [`Reference`]s. `$$` stands for one `$`; a `$` that opens no `${` stands for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable {
        name: String,
        default: Option<String>,
    },
    Reference {
        /// As it is written between `${` and `}`.
        text: String,
        reference: Reference,
    },
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A variable was begun and not ended.
    #[error("`${{` without a closing `}}`")]
    Unclosed,
    /// A variable has this for its name.
    #[error("`{0}` is no name of a variable")]
    Name(String),
    /// A reference to a secret is malformed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// A variable that a template needs and the environment lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} `{0}` is not set", noun = noun_of(.0))]
pub struct Unset(pub String);

/// A name of a variable holds no `:`, what a reference is asked for by always does.
fn noun_of(name: &str) -> &'static str {
    if name.contains(':') {
        "secret"
    } else {
        "environment variable"
    }
}

/// As it could be written in the configuration.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(&text.replace('$', "$$"))?,
                Part::Variable {
                    name,
                    default: None,
                } => write!(f, "${{{name}}}")?,
                Part::Variable {
                    name,
                    default: Some(default),
                } => write!(f, "${{{name}:-{default}}}")?,
                Part::Reference { text, .. } => write!(f, "${{{text}}}")?,
            }
        }
        Ok(())
    }
}

impl Template {
    /// Reads a text as it is configured. No variable is looked up yet.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                plain.push('$');
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let end = after.find('}').ok_or(TemplateError::Unclosed)?;
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(variable(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                plain.push('$');
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self { parts })
    }

    /// A text that is what it is, `$` included.
    pub(crate) fn literal(text: &str) -> Self {
        Self {
            parts: vec![Part::Text(text.to_owned())],
        }
    }

    /// The text with its variables filled in. An empty variable takes the default, as in a shell.
    /// A reference is asked for by its whole text, such as `secret:NAME`.
    pub fn expand(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, Unset> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Variable { name, default } => {
                    text.push_str(&value(name, default.as_deref(), &lookup)?);
                }
                Part::Reference { text: name, .. } => {
                    text.push_str(&value(name, None, &lookup)?);
                }
            }
        }
        Ok(text)
    }

    /// The text, if it takes nothing from elsewhere.
    pub fn plain(&self) -> Option<String> {
        match self.names().next() {
            None => self.expand(|_| None).ok(),
            Some(_) => None,
        }
    }

    /// The names of the variables this text needs, for messages and checks.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.needs().map(|(name, _)| name)
    }

    /// The same, and whether each is required: it has no default.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, default } => Some((name.as_str(), default.is_none())),
            Part::Text(_) | Part::Reference { .. } => None,
        })
    }

    /// The secrets it stands for: the text by which [`Template::expand`] asks for each, and what it
    /// means.
    pub fn references(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Reference { text, reference } => Some((text.as_str(), reference)),
            Part::Text(_) | Part::Variable { .. } => None,
        })
    }

    /// Everything that is filled in: the names of variables and the texts of references.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let references = self.references().map(|(text, _)| text);
        self.variables().chain(references)
    }
}

fn variable(inner: &str) -> Result<Part, TemplateError> {
    if let Some(reference) = Reference::parse(inner) {
        let text = inner.to_owned();
        let reference = reference?;
        return Ok(Part::Reference { text, reference });
    }
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(TemplateError::Name(cut_to_name(name)));
    }
    let name = name.to_owned();
    Ok(Part::Variable { name, default })
}

/// The beginning of a text that could be one of a name: the text may be a piece of a password.
fn cut_to_name(text: &str) -> String {
    let is_other = |c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c);
    match text.find(is_other) {
        Some(at) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn value(
    name: &str,
    default: Option<&str>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, Unset> {
    let set = lookup(name).filter(|value| !value.is_empty() || default.is_none());
    set.or_else(|| default.map(str::to_owned))
        .ok_or_else(|| Unset(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Template, TemplateError, Unset};

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Unset>) {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let template = Template::parse(text).expect("the case is well formed");
        assert_eq!(template.expand(lookup), expected.map(str::to_owned));
    }

    #[test]
    fn variables_are_filled_in() {
        check("${HOME}/notes", Ok("/home/ada/notes"));
        check("a${NOPE:-b}c${NOPE:-}", Ok("abc"));
        check("${EMPTY:-fallback}", Ok("fallback"));
        check("[${EMPTY}]", Ok("[]"));
        check("$HOME costs $5, $${HOME}", Ok("$HOME costs $5, ${HOME}"));
        check("${TOKEN}", Err(Unset("TOKEN".to_owned())));
    }

    #[test]
    fn references_are_filled_in_by_their_text_and_are_no_variables() {
        let template = Template::parse("Bearer ${secret:linear}${X:-}").unwrap();
        assert_eq!(template.variables().collect::<Vec<_>>(), ["X"]);
        let texts: Vec<&str> = template.references().map(|(text, _)| text).collect();
        assert_eq!(texts, ["secret:linear"]);
        let lookup = |name: &str| (name == "secret:linear").then(|| "hunter2".to_owned());
        assert_eq!(template.expand(lookup), Ok("Bearer hunter2".to_owned()));
        let unset = Unset("secret:linear".to_owned());
        assert_eq!(template.expand(|_| None), Err(unset));
        assert!(matches!(
            Template::parse("${file:relative}"),
            Err(TemplateError::Reference(_))
        ));
    }

    #[test]
    fn a_malformed_variable_is_refused() {
        assert_eq!(Template::parse("${HOME"), Err(TemplateError::Unclosed));
        assert_eq!(
            Template::parse("${1x}"),
            Err(TemplateError::Name("1x".to_owned()))
        );
        assert_eq!(
            Template::parse("pa${ss/w:ord}"),
            Err(TemplateError::Name("ss…".to_owned()))
        );
        assert_eq!(
            Template::parse("${}"),
            Err(TemplateError::Name(String::new()))
        );
    }
}
