//! Templates: texts with `${VAR}`, `${VAR:-default}` and references to secrets.

use std::fmt;

use printable::find_references;
use secrets::{Reference, ReferenceError};
use tool::HttpCaller;

/// A configured text whose variables and secrets are filled in when a server starts.
///
/// `${secret:NAME}`, `${file:PATH}` and `${command:WORDS}` are [`Reference`]s. `$$` is one `$`; a `$`
/// without a following `{` is literal. A default is literal text and contains no `${`: other programs
/// read nested variables in different ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Variable {
        name: String,
        default: Option<String>,
    },
    Reference {
        /// The text between `${` and `}`.
        text: String,
        reference: Reference,
    },
}

/// The reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `${` is not closed.
    #[error("`${{` without a closing `}}`")]
    Unclosed,
    /// The name of a variable is invalid.
    #[error("`{0}` is no name of a variable")]
    Name(String),
    /// The default of a variable contains another one.
    #[error("the default of `{0}` contains `${{`")]
    Nested(String),
    /// A reference to a secret is malformed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// A variable that a template needs and the environment lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} `{0}` is not set", noun = noun_of(.0))]
pub struct Unset(pub String);

/// Returns the kind of a name: only references and values of a caller contain a `:`.
fn noun_of(name: &str) -> &'static str {
    if name.starts_with(HttpCaller::PREFIX) {
        "value of the caller"
    } else if name.contains(':') {
        "secret"
    } else {
        "environment variable"
    }
}

/// Writes the template as the configuration has it.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => f.write_str(&text.replace('$', "$$"))?,
                TemplatePart::Variable {
                    name,
                    default: None,
                } => write!(f, "${{{name}}}")?,
                TemplatePart::Variable {
                    name,
                    default: Some(default),
                } => write!(f, "${{{name}:-{default}}}")?,
                TemplatePart::Reference { text, .. } => write!(f, "${{{text}}}")?,
            }
        }
        Ok(())
    }
}

impl Template {
    /// Parses a configured text. Looks up no variable.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let plain = |text: &str| TemplatePart::Text(text.replace("$$", "$"));
        let (mut parts, mut at) = (Vec::new(), 0);
        for place in find_references(text).ok_or(TemplateError::Unclosed)? {
            parts.push(plain(&text[at..place.start]));
            parts.push(variable(&text[place.start + 2..place.end - 1])?);
            at = place.end;
        }
        parts.push(plain(&text[at..]));
        Ok(Self { parts })
    }

    /// Creates a template of a literal text, which may contain `$`.
    pub(crate) fn literal(text: &str) -> Self {
        Self {
            parts: vec![TemplatePart::Text(text.to_owned())],
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// Returns the text with its variables filled in. An empty variable gets the default, as in a shell. A
    /// reference is looked up by its whole text, such as `secret:NAME`.
    pub fn expand(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, Unset> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(plain) => text.push_str(plain),
                TemplatePart::Variable { name, default } => {
                    text.push_str(&value(name, default.as_deref(), &lookup)?);
                }
                TemplatePart::Reference { text: name, .. } => {
                    text.push_str(&value(name, None, &lookup)?);
                }
            }
        }
        Ok(text)
    }

    /// Returns the text, if it has no variables and references.
    pub fn plain(&self) -> Option<String> {
        match self.names().next() {
            None => self.expand(|_| None).ok(),
            Some(_) => None,
        }
    }

    /// Lists the names of the variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.needs().map(|(name, _)| name)
    }

    /// Lists the names of the variables; `true` for those that are required because they have no default.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable { name, default } => Some((name.as_str(), default.is_none())),
            TemplatePart::Text(_) | TemplatePart::Reference { .. } => None,
        })
    }

    /// Lists the references to secrets, each with the text by which [`Template::expand`] looks it up.
    pub fn references(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Reference { text, reference } => Some((text.as_str(), reference)),
            TemplatePart::Text(_) | TemplatePart::Variable { .. } => None,
        })
    }

    /// Lists the names of variables and the texts of references.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let references = self.references().map(|(text, _)| text);
        self.variables().chain(references)
    }
}

fn variable(inner: &str) -> Result<TemplatePart, TemplateError> {
    if let Some(reference) = Reference::parse(inner) {
        let text = inner.to_owned();
        let reference = reference?;
        return Ok(TemplatePart::Reference { text, reference });
    }
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    let header = name.strip_prefix(HttpCaller::PREFIX);
    let is_valid = header.map_or_else(|| is_variable(name), is_header);
    if !is_valid {
        return Err(TemplateError::Name(cut_to_name(name)));
    }
    if default
        .as_ref()
        .is_some_and(|default| default.contains("${"))
    {
        return Err(TemplateError::Nested(name.to_owned()));
    }
    // Names of headers have no case.
    let name = header.map_or_else(|| name.to_owned(), |_| name.to_ascii_lowercase());
    Ok(TemplatePart::Variable { name, default })
}

fn is_variable(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_header(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Returns the beginning of an invalid name up to the invalid character: the rest may be a part of a
/// password.
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
    fn values_of_a_caller_are_variables_whose_names_have_no_case() {
        let template = Template::parse("${caller:X-Tenant}${caller:team:-none}").unwrap();
        let names: Vec<(&str, bool)> = template.needs().collect();
        assert_eq!(names, [("caller:x-tenant", true), ("caller:team", false)]);
        let unset = template.expand(|_| None).unwrap_err();
        assert_eq!(
            unset.to_string(),
            "value of the caller `caller:x-tenant` is not set"
        );
        assert!(Template::parse("${caller:}").is_err());
        let of_caller = Template::parse("${caller:secret:key}").unwrap();
        assert_eq!(of_caller.references().count(), 1);
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
        for nested in [
            "${VAR:-${HOME}/x}",
            "a ${VAR:-b${secret:x}}",
            "${VAR:-$${HOME}}",
        ] {
            let expected = Err(TemplateError::Nested("VAR".to_owned()));
            assert_eq!(Template::parse(nested), expected, "{nested}");
        }
        assert_eq!(
            Template::parse("${}"),
            Err(TemplateError::Name(String::new()))
        );
    }
}
