//! One reason for the rank of a hit.

/// One contribution to the score of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// A quoted word of the request is a summand; a label that begins with `times` is a factor.
    pub label: String,
    /// The summand or the factor.
    pub amount: f32,
}
