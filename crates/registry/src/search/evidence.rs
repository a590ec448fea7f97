//! One reason for the place of a hit.

/// One thing that speaks for a tool, or against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// A word of the request in quotes adds to the score; what begins with `times` multiplies it.
    pub label: String,
    /// The share that is added, or the factor.
    pub amount: f32,
}
