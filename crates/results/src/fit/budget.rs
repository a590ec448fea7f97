//! The room that a result may take.

use std::borrow::Cow;

use excerpt::tokens::{self, Counter};

/// The room that a result may take when it is sent to a client.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The room, in tokens.
    pub max_tokens: u64,
    /// The client asked for everything.
    pub is_off: bool,
    /// True for one call's share of a larger budget, which may be too small to show anything.
    pub is_share: bool,
    /// True if the result is our own, so that lines that look like ours need no notice.
    pub is_ours: bool,
}

/// The smallest budget, in tokens; a smaller one is raised to it. A footer with its next call takes
/// half.
pub const BUDGET_MIN: usize = 200;

/// The cost of the note after a part in an answer of `proxy/read_result`, in tokens.
pub(crate) const READ_NOTE_TOKENS: usize = 110;

impl Budget {
    /// The budget of one call's result.
    pub fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            is_off: false,
            is_share: false,
            is_ours: false,
        }
    }

    /// Limits the budget to this share of a budget for several calls.
    #[must_use]
    pub fn share(self, max_tokens: usize) -> Self {
        let max_tokens = u64::try_from(max_tokens).unwrap_or(u64::MAX);
        Self {
            max_tokens: self.max_tokens.min(max_tokens),
            is_share: true,
            ..self
        }
    }

    /// Returns the room in tokens. A budget that is not a share is never too small for a footer.
    pub(super) fn max(self) -> usize {
        let max = usize::try_from(self.max_tokens).unwrap_or(usize::MAX);
        if self.is_share {
            max
        } else {
            max.max(BUDGET_MIN)
        }
    }

    /// Returns true if so many bytes fit: a token is at least one byte.
    pub(super) fn surely_fits(self, bytes: usize) -> bool {
        self.is_off || bytes <= self.max()
    }

    /// Returns true if the texts fit together. Tokens are counted only if no quicker bound decides.
    pub(super) fn holds<'a, T>(self, texts: impl Fn() -> T) -> bool
    where
        T: Iterator<Item = Cow<'a, str>>,
    {
        if self.surely_fits(texts().map(|text| text.len()).sum()) {
            return true;
        }
        let fit_by = |count: &mut dyn FnMut(&str, usize) -> usize| {
            let mut left = self.max();
            texts().all(|text| {
                let count = count(&text, left);
                let fits = count <= left;
                left = left.saturating_sub(count);
                fits
            })
        };
        fit_by(&mut tokens::token_upper_bound_to)
            || Counter::with(|counter| fit_by(&mut |text, left| counter.count_to(text, left)))
    }
}
