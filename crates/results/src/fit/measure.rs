//! The measure of a result that is not cut, for scripts.

use excerpt::TextPiece;
use jsonrpc::Json;

use super::{block::Block, parsed_result::ParsedResult};

/// The measure of a result.
#[derive(Debug)]
pub struct ResultMeasure {
    /// The cost of its blocks for a model, without images and sounds.
    pub tokens: usize,
    /// The items of its one text (of a JSON array, or lines), or else its texts or blocks.
    pub items: usize,
    /// The media type of its first text or block.
    pub content_type: Option<String>,
}

/// Measures a result off the event loop; `None` if that fails.
pub async fn measure(result: &Json) -> Option<ResultMeasure> {
    let result = result.clone();
    let measuring = move || measure_parsed(&ParsedResult::read(result.as_str()));
    tokio::task::spawn_blocking(measuring).await.ok()
}

fn measure_parsed(result: &ParsedResult<'_>) -> ResultMeasure {
    let pieces: Vec<TextPiece<'_>> = result.texts().map(TextPiece::of).collect();
    let of_text = pieces.first().map(|it| it.kind.media_type().to_owned());
    let of_block = || result.blocks.first().and_then(Block::media_type);
    ResultMeasure {
        tokens: result.tokens(),
        items: match pieces.as_slice() {
            [] => result.blocks.len(),
            pieces => count_items(pieces),
        },
        content_type: of_text.or_else(of_block),
    }
}

/// Counts the items of one text, or else the texts.
pub(super) fn count_items(pieces: &[TextPiece<'_>]) -> usize {
    match pieces {
        [piece] => excerpt::count_items(piece),
        pieces => pieces.len(),
    }
}
