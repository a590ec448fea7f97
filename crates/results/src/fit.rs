//! Cuts a result to its budget without loss: the omitted part is kept on disk.

mod block;
mod budget;
mod compose;
mod division;
mod fitted;
mod footer;
mod imitation;
mod measure;
mod parsed_result;
mod shares;
mod view;

use compose::Composition;
use excerpt::tokens;
use jsonrpc::{Json, KnownString};
use parsed_result::ParsedResult;

use crate::store::ResultStore;

pub use block::text_block;
pub(crate) use budget::READ_NOTE_TOKENS;
pub use budget::{BUDGET_MIN, Budget};
pub use fitted::{Fitted, Origin, PartOfWhole};
pub use imitation::notice as imitation_notice;
pub(crate) use imitation::notice;
pub use measure::{ResultMeasure, measure};
pub use parsed_result::is_error;

/// Below this many bytes a result that is surely over its budget is counted on the event loop.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// Cuts a result to its budget. A result within the budget is not changed, except that
/// `structuredContent` becomes text if the text does not contain it already. The whole of a cut result
/// is kept, and the last line shows the call that reads on. Long texts are parsed and counted off the
/// event loop.
pub async fn fit(result: Json, budget: Budget, origin: Origin, store: &ResultStore) -> Fitted {
    if passes(&result, budget) {
        return Fitted::whole(result, false);
    }
    let is_short = result.len() <= INLINE_BYTES_MAX;
    let decision = if is_short && budget.surely_fits(result.len()) {
        decide(result, budget)
    } else {
        let work = result.clone();
        let deciding = tokio::task::spawn_blocking(move || decide(work, budget));
        let decided = deciding.await;
        decided.unwrap_or_else(|_| FitDecision::Whole(Fitted::whole(result, false)))
    };
    match decision {
        FitDecision::Whole(fitted) => fitted,
        FitDecision::Cut(composition) => Box::pin(composition.keep(origin, store)).await,
    }
}

/// Counts the cost of a result's blocks for a model, without images and sounds, off the event loop.
pub async fn tokens(result: &Json) -> usize {
    let (bytes, result) = (result.len(), result.clone());
    let counting = move || ParsedResult::read(result.as_str()).tokens();
    let counted = tokio::task::spawn_blocking(counting).await;
    // A token is at least one byte.
    counted.unwrap_or(bytes)
}

enum FitDecision {
    /// It is sent unchanged, or with `structuredContent` as text.
    Whole(Fitted),
    Cut(Box<Composition>),
}

fn decide(result: Json, budget: Budget) -> FitDecision {
    let mut answer = ParsedResult::read(result.as_str());
    if budget.is_off || budget.holds(|| answer.counted_texts()) {
        if !budget.is_ours {
            answer.mark_imitations();
            answer.fill_empty();
        }
        let changed = answer.changed.then(|| answer.assemble());
        let is_error = answer.is_error;
        return FitDecision::Whole(Fitted::whole(changed.unwrap_or(result), is_error));
    }
    FitDecision::Cut(Box::new(Composition::of(answer, budget)))
}

/// Returns true if a result of the usual form can be sent unchanged, without being parsed. The token
/// count of the whole text is never less than that of its blocks.
fn passes(json: &Json, budget: Budget) -> bool {
    let result = json.as_str();
    let Some(blocks) = result.strip_prefix(r#"{"content":["#) else {
        return false;
    };
    (budget.surely_fits(result.len())
        || tokens::token_upper_bound_to(result, budget.max()) <= budget.max())
        && !blocks.starts_with(']')
        && !json.may_contain(KnownString::StructuredContent)
        && !json.may_contain(KnownString::IsError)
        && (budget.is_ours || !imitation::may_be_in(blocks))
}

#[cfg(test)]
mod tests;
