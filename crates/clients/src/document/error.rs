//! Syntax errors of a text, and reasons why an edit is refused.

/// A text that is not valid in its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The message of the parser.
    pub what: String,
}

impl From<tool::YamlError> for SyntaxError {
    fn from(tool::YamlError { line, what }: tool::YamlError) -> Self {
        Self { line, what }
    }
}

/// A reason why an entry cannot be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text cannot be parsed.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Another value is in the place of the servers.
    #[error("`{0}` contains no table of servers")]
    Occupied(String),
    /// The edit would also change something else.
    #[error("it cannot be edited without changing the rest of the file")]
    Form,
    /// The file is YAML, which only its owner edits.
    #[error("YAML is not edited by this program; edit the file yourself")]
    Yaml,
}
