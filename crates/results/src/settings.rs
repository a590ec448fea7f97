//! The limits of results.

/// The default tokens of one result.
pub(crate) const MAX_TOKENS_DEFAULT: usize = 4_000;

/// The configured limits of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSettings {
    /// Tokens of one result, unless its tool, server or client has a limit of its own.
    pub max_tokens: u64,
    /// Hours after which a kept result is removed.
    pub keep_hours: u64,
    /// Room of all kept results together, in MiB; the oldest are removed first, the newest never.
    pub keep_mib: u64,
}

impl Default for ResultSettings {
    fn default() -> Self {
        Self {
            max_tokens: MAX_TOKENS_DEFAULT as u64,
            keep_hours: 24,
            keep_mib: 256,
        }
    }
}
