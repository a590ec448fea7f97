//! The limits of results.

/// Tokens of one result where the configuration says nothing.
pub(crate) const MAX_TOKENS_DEFAULT: usize = 4_000;

/// The limits of results, as the configuration has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Tokens of one result, where nothing else is said for its tool, server or client.
    pub max_tokens: u64,
    /// Hours after which a kept result goes.
    pub keep_hours: u64,
    /// Room of all kept results together, in MiB; the oldest go first, the newest never.
    pub keep_mib: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_tokens: MAX_TOKENS_DEFAULT as u64,
            keep_hours: 24,
            keep_mib: 256,
        }
    }
}
