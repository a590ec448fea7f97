//! References to secrets in the texts of the configuration.

use std::path::{Path, PathBuf};

use crate::name::{NameError, SecretName};

/// The text between `${` and `}` if it is not a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `secret:NAME`: a stored secret.
    Secret(SecretName),
    /// `caller:secret:NAME`: a secret that is stored for the caller.
    CallerSecret(SecretName),
    /// `file:PATH`: the text of a file.
    File(PathBuf),
    /// `command:WORDS`: the output of a program.
    Command(Vec<String>),
}

/// The reason why a text is not a valid reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The name of the secret is invalid.
    #[error("`${{secret:...}}`: {0}")]
    Name(#[from] NameError),
    /// The path is relative.
    #[error("`${{file:...}}` takes an absolute path, or one that begins with `~/`")]
    Path,
    /// There is no program, or a quote is not closed.
    #[error("`${{command:...}}` takes a program and its arguments, with closed quotes")]
    Command,
}

impl Reference {
    /// Reads the text between `${` and `}`. Returns `None` if it is the name of a variable.
    pub fn parse(text: &str) -> Option<Result<Self, ReferenceError>> {
        let (kind, rest) = text.split_once(':')?;
        let rest = rest.trim();
        match kind {
            "secret" => Some(rest.parse().map(Self::Secret).map_err(Into::into)),
            "caller" => {
                let name = rest.strip_prefix("secret:")?.trim();
                Some(name.parse().map(Self::CallerSecret).map_err(Into::into))
            }
            "file" => {
                // A path of Windows begins with its disk.
                let is_whole = rest.starts_with('/') || Path::new(rest).is_absolute();
                let file = (is_whole || rest.starts_with("~/")).then(|| PathBuf::from(rest));
                Some(file.map(Self::File).ok_or(ReferenceError::Path))
            }
            "command" => {
                let words = shell_words::split(rest).ok();
                let words = words.filter(|words| !words.is_empty());
                Some(words.map(Self::Command).ok_or(ReferenceError::Command))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reference, ReferenceError};
    use crate::SecretName;

    #[test]
    fn a_command_is_split_into_words_as_a_shell_splits_it_and_expands_nothing() {
        let check = |line: &str, words: &[&str]| {
            let words = words.iter().map(ToString::to_string).collect();
            let read = Reference::parse(&format!("command:{line}"));
            assert_eq!(read, Some(Ok(Reference::Command(words))), "{line}");
        };
        check(
            "op read op://vault/item/field",
            &["op", "read", "op://vault/item/field"],
        );
        check("  pass   show  'my key' ", &["pass", "show", "my key"]);
        check(
            r#"a "b \" c" d\ e '' $X;ls|cat '#1'"#,
            &["a", "b \" c", "d e", "", "$X;ls|cat", "#1"],
        );
        for line in ["", "pass 'show"] {
            let read = Reference::parse(&format!("command:{line}"));
            assert_eq!(read, Some(Err(ReferenceError::Command)), "{line}");
        }
    }

    #[test]
    fn references_are_told_from_variables() {
        let parse = |text| Reference::parse(text);
        assert_eq!(parse("HOME"), None);
        assert_eq!(parse("HOME:-/root"), None);
        let name: SecretName = "linear".parse().unwrap();
        assert_eq!(parse("caller:authorization"), None);
        let of_caller = parse("caller:secret:linear");
        assert_eq!(
            of_caller,
            Some(Ok(Reference::CallerSecret(SecretName::clone(&name))))
        );
        assert_eq!(parse("secret:linear"), Some(Ok(Reference::Secret(name))));
        assert_eq!(
            parse("file:~/key"),
            Some(Ok(Reference::File("~/key".into())))
        );
        assert_eq!(parse("file:key"), Some(Err(ReferenceError::Path)));
        let words = vec!["op".to_owned(), "read".to_owned()];
        assert_eq!(
            parse("command: op read"),
            Some(Ok(Reference::Command(words)))
        );
        assert_eq!(parse("command:"), Some(Err(ReferenceError::Command)));
        assert!(matches!(
            parse("secret:a b"),
            Some(Err(ReferenceError::Name(_)))
        ));
    }
}
