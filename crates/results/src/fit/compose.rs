//! The first answer: a summary of the whole, the part that fits, and the call that reads on.

use excerpt::{
    Rooms, TextPiece,
    tokens::{self, Counter},
};
use jsonrpc::quote;

use super::{
    block::text_block,
    budget::{BUDGET_MIN, Budget, READ_NOTE_TOKENS},
    division::Division,
    fitted::{Fitted, Origin, PartOfWhole},
    footer::Footer,
    measure::count_items,
    parsed_result::{ParsedResult, with_content},
    shares::{first_room, share_out, texts_shown},
    view::{ShownContent, View},
};
use crate::{
    settings::MAX_TOKENS_DEFAULT,
    store::{Draft, Parts, ResultStore, TextHead},
};

/// A cut result without its footer, which needs the handle.
pub(super) struct Composition {
    /// The shown content, without the footer.
    content: Content,
    footer: Footer,
    /// The JSON after the blocks in the result.
    rest: String,
    is_error: bool,
    part: PartOfWhole,
    draft: Draft,
}

/// The content of an answer. A result of one text stays one text: some clients show their model the
/// first block only, and others drop the last.
enum Content {
    Blocks(Vec<String>),
    Text {
        before: String,
        lines: Vec<String>,
        after: String,
    },
}

impl Content {
    /// Adds a heading before the shown part, and a notice after it.
    fn of(shown: ShownContent, heading: String, notice: Option<String>) -> Self {
        if let Some((before, text, after)) = shown.sole {
            let lines = [heading, text].into_iter().chain(notice).collect();
            return Self::Text {
                before,
                lines,
                after,
            };
        }
        let mut blocks = shown.blocks;
        blocks.insert(0, text_block(&heading));
        blocks.extend(notice.as_deref().map(text_block));
        Self::Blocks(blocks)
    }

    /// Returns the content as blocks, with the footer at its end.
    fn end(self, footer: String) -> Vec<String> {
        match self {
            Self::Blocks(mut blocks) => {
                blocks.push(text_block(&footer));
                blocks
            }
            Self::Text {
                before,
                mut lines,
                after,
            } => {
                lines.push(footer);
                let text = join_lines(&lines);
                vec![format!("{before}{}{after}", quote(&text))]
            }
        }
    }
}

/// Joins texts as lines; a text that ends with a line end gets no other one.
fn join_lines(texts: &[String]) -> String {
    let mut joined = String::new();
    for text in texts {
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push('\n');
        }
        joined.push_str(text);
    }
    joined
}

/// Tokens of the budget that stay free: a tokenizer may split the boundary of two texts differently
/// than each text alone.
const MARGIN: usize = 12;

/// A part of a result of which nothing was shown, in tokens.
const DEFAULT_PART_TOKENS: usize = MAX_TOKENS_DEFAULT - READ_NOTE_TOKENS;

/// The longest line that describes the whole, in characters.
const SHAPE_CHARS_MAX: usize = 300;

/// The number of texts whose shape is described.
const SHAPES_MAX: usize = 5;

impl Composition {
    pub(super) fn of(mut answer: ParsedResult<'_>, budget: Budget) -> Self {
        let max_tokens = budget.max();
        answer.prepare_cut(max_tokens.max(BUDGET_MIN));
        let answer = &answer;
        if max_tokens < BUDGET_MIN {
            return Self::of_nothing(answer);
        }
        let pieces: Vec<TextPiece<'_>> = answer.texts().map(TextPiece::of).collect();
        let shape = describe_shape(&pieces);
        let others = max_tokens.saturating_sub(READ_NOTE_TOKENS);
        let room = max_tokens
            .saturating_sub(Footer::tokens_max() + tokens::count(&shape) + 8 + MARGIN)
            .saturating_sub(count_passing(answer))
            .min(others);
        let (keeps_wrappers, room) = weigh_wrappers(answer, room);
        let shares = share_out(&pieces, answer.long_members().count(), room);
        let first = first_room(&pieces, &shares);
        let division = Division::of(&pieces, Rooms { first, others });
        let view = View {
            pieces: &pieces,
            shares: &shares,
            first: division.first,
            keeps_wrappers,
        };
        let mut shown = view.blocks(answer);
        let notice = shown.notice.take().filter(|_| !budget.is_ours);
        let shape = format!("[whole: {} tokens; {shape}]", division.size.tokens_text());
        let counted = view.count();
        let (items, total_items) = view.count_items(&counted);
        let footer = Footer {
            shown: shown.tokens,
            whole: division.size,
            counted: Some(counted),
        };
        Self {
            content: Content::of(shown, shape, notice),
            rest: answer.rest(),
            is_error: answer.is_error,
            part: PartOfWhole {
                part: Some(1),
                ..part_of(&pieces, &footer, items, total_items)
            },
            footer,
            draft: draft(answer, &pieces, max_tokens, division.parts, total_items),
        }
    }

    /// An answer that shows nothing, if there is room for its handle alone.
    fn of_nothing(answer: &ParsedResult<'_>) -> Self {
        let pieces: Vec<TextPiece<'_>> = answer.texts().map(TextPiece::of).collect();
        let room = DEFAULT_PART_TOKENS;
        let rooms = Rooms {
            first: room,
            others: room,
        };
        let division = Division::of(&pieces, rooms);
        let passing = answer.blocks.iter().filter(|it| it.text().is_none());
        let footer = Footer {
            shown: 0,
            whole: division.size,
            counted: None,
        };
        let total_items = count_items(&pieces);
        Self {
            content: Content::Blocks(passing.map(|it| it.whole().into_owned()).collect()),
            rest: answer.rest(),
            is_error: answer.is_error,
            part: part_of(&pieces, &footer, 0, total_items),
            footer,
            draft: draft(
                answer,
                &pieces,
                room + READ_NOTE_TOKENS,
                division.parts,
                total_items,
            ),
        }
    }

    /// Starts to write the whole to disk, and returns the answer with its footer.
    pub(super) async fn keep(self, origin: Origin, store: &ResultStore) -> Fitted {
        let Self {
            content,
            footer,
            rest,
            is_error,
            part,
            mut draft,
        } = self;
        draft.owner = origin.client;
        let kept = if origin.reads_on {
            store.keep(draft).await
        } else {
            Err("this client may not read on".to_owned())
        };
        let blocks = content.end(footer.text(&kept));
        Fitted {
            result: with_content(blocks.iter(), &rest),
            is_error,
            part: Some(Box::new(PartOfWhole {
                handle: kept.ok().map(|handle| handle.to_string()),
                ..part
            })),
        }
    }
}

fn part_of(
    pieces: &[TextPiece<'_>],
    footer: &Footer,
    items: usize,
    total_items: usize,
) -> PartOfWhole {
    PartOfWhole {
        items: Some(items),
        total_items: Some(total_items),
        total_tokens: footer.whole.tokens,
        parts: footer.whole.parts,
        content_type: pieces.first().map(|piece| piece.kind.media_type()),
        ..PartOfWhole::default()
    }
}

fn draft(
    answer: &ParsedResult<'_>,
    pieces: &[TextPiece<'_>],
    max_tokens: usize,
    parts: Parts,
    items: usize,
) -> Draft {
    let texts = pieces
        .iter()
        .zip(answer.are_json())
        .map(|(piece, is_json)| {
            let head = TextHead {
                bytes: piece.text.len(),
                kind: piece.kind,
                is_json,
            };
            (head, piece.text.to_owned())
        });
    Draft {
        texts: texts.collect(),
        frame: answer.frame(),
        parts,
        items,
        max_tokens,
        owner: None,
    }
}

/// Describes the whole in one line.
fn describe_shape(pieces: &[TextPiece<'_>]) -> String {
    let shapes: Vec<String> = pieces
        .iter()
        .take(SHAPES_MAX)
        .map(excerpt::describe_shape)
        .collect();
    let shapes = shapes.join("; ");
    let text = match pieces.len() {
        1 => shapes,
        count if count > SHAPES_MAX => format!("{count} texts: {shapes}; …"),
        count => format!("{count} texts: {shapes}"),
    };
    printable::shorten(&text, SHAPE_CHARS_MAX).into_owned()
}

/// The cost of images and sounds beside their data, in tokens.
fn count_passing(answer: &ParsedResult<'_>) -> usize {
    let passing = answer.blocks.iter().filter(|it| it.text().is_none());
    Counter::with(|counter| passing.map(|it| it.count_around(counter)).sum())
}

/// Decides if the wrappers of the texts (annotations, addresses) are shown with them. Also returns
/// the room that is left for the texts.
fn weigh_wrappers(answer: &ParsedResult<'_>, room: usize) -> (bool, usize) {
    let shown = answer.blocks.iter().filter(|it| it.text().is_some());
    let shown = shown.take(texts_shown(room));
    let cost = Counter::with(|counter| shown.map(|it| it.count_around(counter)).sum::<usize>());
    if cost <= room / 4 {
        (true, room - cost)
    } else {
        (false, room)
    }
}
