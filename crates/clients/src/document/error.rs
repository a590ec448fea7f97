//! Mistakes of a text, and reasons against an edit.

/// A text that is not of its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: usize,
    /// The message of the parser.
    pub what: String,
}

/// A reason why an entry cannot be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text cannot be read at all.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Something else stands where servers should.
    #[error("`{0}` holds no table of servers")]
    Occupied(String),
    /// The edit would have changed something else too.
    #[error("its form is one that we cannot edit without changing the rest")]
    Form,
    /// YAML is left to its owner.
    #[error("YAML is not edited by this program; edit the file yourself")]
    Yaml,
}
