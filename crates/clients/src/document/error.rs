//! What can be wrong with a text, and with an edit.

/// A text that is none of its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: usize,
    /// What the parser says.
    pub what: String,
}

/// A reason why an entry cannot be put in or taken out.
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
}
