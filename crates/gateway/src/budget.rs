//! A result cut to the room it may take, with nothing lost: what is left out is kept.

mod answer;
mod compose;
mod footer;
mod imitation;

use compose::Composition;
use excerpt::tokens::{self, Counter};
use jsonrpc::Json;
use memchr::memmem;

use super::Reply;
use crate::results::{Caller, ResultStore};

pub(super) use answer::Answer;
pub(crate) use answer::text_block;
pub(crate) use compose::READ_NOTE_TOKENS;
pub(crate) use imitation::notice;

/// How much of a result a client is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) max_tokens: u64,
    /// The client asked for everything.
    pub(crate) is_off: bool,
    /// It is one call's share of a larger budget, and may be too small to show anything.
    pub(crate) is_share: bool,
    /// The result is our own: lines like ours in it are ours.
    pub(crate) is_ours: bool,
}

/// Whose result it is, which the store needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) caller: Caller,
    /// The tool as it can be called again.
    pub(crate) tool: String,
}

/// A budget below this is taken for this, in tokens: a footer with its next call takes half.
pub(crate) const BUDGET_MIN: usize = 200;

/// Below this many bytes a result that is surely over its budget is counted on the event loop.
const INLINE_BYTES_MAX: usize = 4 * 1024;

impl Budget {
    /// The result as the client gets it. Below the budget not one byte changes, except that
    /// `structuredContent` becomes text where the text does not say the same already.
    pub(crate) async fn fit(self, result: Json, origin: Origin, store: &ResultStore) -> Reply {
        if self.passes(result.as_str()) {
            return Reply::of_server(result, false);
        }
        let is_short = result.len() <= INLINE_BYTES_MAX;
        let fitted = if is_short && self.surely_fits(result.len()) {
            self.fit_now(&result)
        } else {
            let work = result.clone();
            // Reading and counting a long text is no work for the event loop.
            match tokio::task::spawn_blocking(move || self.fit_now(&work)).await {
                Ok(fitted) => fitted,
                Err(_) => return Reply::of_server(result, false),
            }
        };
        match fitted {
            Fitted::Whole { changed, is_error } => {
                Reply::of_server(changed.unwrap_or(result), is_error)
            }
            Fitted::Cut(composition) => {
                drop(result);
                composition.keep(origin, store).await
            }
        }
    }

    pub(crate) fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            is_off: false,
            is_share: false,
            is_ours: false,
        }
    }

    /// The same, with no more room than this share of what several have together.
    pub(crate) fn share(self, max_tokens: usize) -> Self {
        let max_tokens = u64::try_from(max_tokens).unwrap_or(u64::MAX);
        Self {
            max_tokens: self.max_tokens.min(max_tokens),
            is_share: true,
            ..self
        }
    }

    fn fit_now(self, result: &Json) -> Fitted {
        let mut answer = Answer::read(result.as_str());
        if self.is_off || self.holds(&answer) {
            if !self.is_ours {
                answer.mark_imitations();
            }
            return Fitted::Whole {
                changed: answer.changed.then(|| answer.assemble()),
                is_error: answer.is_error(),
            };
        }
        Fitted::Cut(Box::new(Composition::of(answer, self)))
    }

    fn holds(self, answer: &Answer<'_>) -> bool {
        let texts = || answer.counted();
        if self.surely_fits(texts().map(|text| text.len()).sum()) {
            return true;
        }
        let bounds = texts().map(|text| tokens::at_most(&text));
        if bounds.sum::<usize>() <= self.max() {
            return true;
        }
        Counter::with(|counter| {
            let mut left = self.max();
            texts().all(|text| {
                let count = counter.count_to(&text, left);
                let fits = count <= left;
                left = left.saturating_sub(count);
                fits
            })
        })
    }

    /// A token is a byte at least.
    fn surely_fits(self, bytes: usize) -> bool {
        self.is_off || bytes <= self.max()
    }

    /// Whether a result of the usual form can go on as it is, without being read. What counts as
    /// tokens in the whole text is never less than what counts in its blocks.
    fn passes(self, result: &str) -> bool {
        let mentions = |key: &str| memmem::find(result.as_bytes(), key.as_bytes()).is_some();
        result.starts_with(r#"{"content":["#)
            && (self.surely_fits(result.len()) || tokens::at_most(result) <= self.max())
            && !mentions(r#""structuredContent""#)
            && !mentions(r#""isError""#)
            && (self.is_ours || !imitation::may_be_in(result))
    }

    fn max(self) -> usize {
        let max = usize::try_from(self.max_tokens).unwrap_or(usize::MAX);
        if self.is_share {
            max
        } else {
            max.max(BUDGET_MIN)
        }
    }
}

enum Fitted {
    /// It goes on as it came, or as it was settled.
    Whole {
        changed: Option<Json>,
        is_error: bool,
    },
    Cut(Box<Composition>),
}

#[cfg(test)]
mod tests;
