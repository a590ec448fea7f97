//! The first answer: what the whole is, as much of it as there is room for, and how to read on.

use excerpt::{
    Cut, Kind, Piece, Rooms,
    tokens::{self, Counter},
};

use super::{
    BUDGET_MIN, Budget, Origin,
    answer::{Answer, Block, text_block, with_content},
    footer::{Counted, Footer},
    imitation::notice,
};
use crate::{
    Reply,
    results::{Draft, ResultStore, TextHead},
};

/// A result that was cut, before it is known how the rest is read.
pub(super) struct Composition {
    /// The blocks shown, the footer not among them.
    blocks: Vec<String>,
    footer: Footer,
    /// What follows the blocks in the result.
    rest: String,
    is_error: bool,
    draft: Draft,
}

/// Tokens of the budget that stay free: a tokenizer may see the border of two texts otherwise
/// than the text alone.
const MARGIN: usize = 12;

/// The least that is shown of a text, in tokens; where texts are more than so many fit, the
/// later ones are left out.
const SHARE_MIN: usize = 100;

/// What is shown of binary data, in tokens: enough to tell what it is.
const BINARY_ROOM: usize = 64;

/// What an answer of `proxy/read_result` has besides a part, in tokens.
pub(crate) const READ_NOTE_TOKENS: usize = 110;

/// A part of a result of which nothing was shown, in tokens.
const DEFAULT_PART_TOKENS: usize = 3_890;

/// The longest line that says what the whole is, in characters.
const SHAPE_CHARS_MAX: usize = 300;

/// Texts whose shape is told.
const SHAPES_MAX: usize = 5;

impl Composition {
    pub(super) fn of(mut answer: Answer<'_>, budget: Budget) -> Self {
        let max_tokens = budget.max();
        answer.settle(max_tokens.max(BUDGET_MIN));
        let answer = &answer;
        if max_tokens < BUDGET_MIN {
            return Self::of_nothing(answer);
        }
        let pieces: Vec<Piece<'_>> = answer.texts().map(Piece::of).collect();
        let shape = shape(&pieces);
        let others = max_tokens.saturating_sub(READ_NOTE_TOKENS);
        let room = max_tokens
            .saturating_sub(Footer::tokens_max() + tokens::count(&shape) + 8 + MARGIN)
            .saturating_sub(passing_tokens(answer))
            .min(others);
        let (keeps_wrappers, room) = with_wrappers(answer, room);
        let shares = shares(&pieces, answer.long_members().count(), room);
        let first = first_room(&pieces, &shares);
        let parts = excerpt::cuts(&pieces, Rooms { first, others });
        let view = View {
            pieces: &pieces,
            shares: &shares,
            first: parts[0],
            keeps_wrappers,
        };
        let whole = parts.iter().map(|part| part.tokens).sum();
        let Shown {
            mut blocks,
            tokens: shown,
            notice,
        } = view.blocks(answer);
        let notice = notice.filter(|_| !budget.is_ours);
        blocks.extend(notice.as_deref().map(text_block));
        let shape = format!("[whole: {} tokens; {shape}]", printable::grouped(whole));
        blocks.insert(0, text_block(&shape));
        let footer = Footer {
            shown,
            whole,
            counted: Some(view.counted()),
            parts: parts.len(),
        };
        Self {
            blocks,
            footer,
            rest: answer.rest(),
            is_error: answer.is_error(),
            draft: draft(answer, &pieces, max_tokens, parts),
        }
    }

    /// An answer that shows nothing, where there is room for its handle alone.
    fn of_nothing(answer: &Answer<'_>) -> Self {
        let pieces: Vec<Piece<'_>> = answer.texts().map(Piece::of).collect();
        let room = DEFAULT_PART_TOKENS;
        let parts = excerpt::cuts(
            &pieces,
            Rooms {
                first: room,
                others: room,
            },
        );
        let passing = answer.blocks.iter().filter(|it| it.text().is_none());
        Self {
            blocks: passing.map(|it| it.whole().into_owned()).collect(),
            footer: Footer {
                shown: 0,
                whole: parts.iter().map(|part| part.tokens).sum(),
                counted: None,
                parts: parts.len(),
            },
            rest: answer.rest(),
            is_error: answer.is_error(),
            draft: draft(answer, &pieces, room + READ_NOTE_TOKENS, parts),
        }
    }

    /// Begins to keep the whole, and gives the answer that says how to read on.
    pub(super) async fn keep(self, origin: Origin, store: &ResultStore) -> Reply {
        let Self {
            mut blocks,
            footer,
            rest,
            is_error,
            mut draft,
        } = self;
        draft.owner = origin.caller;
        draft.tool = origin.tool;
        let kept = store.keep(draft).await;
        blocks.push(text_block(&footer.text(&kept)));
        Reply::of_server(with_content(blocks.iter(), &rest), is_error)
    }
}

fn draft(answer: &Answer<'_>, pieces: &[Piece<'_>], max_tokens: usize, parts: Vec<Cut>) -> Draft {
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
        max_tokens,
        owner: crate::results::Caller::Person,
        tool: String::new(),
    }
}

/// The whole in one line.
fn shape(pieces: &[Piece<'_>]) -> String {
    let shapes: Vec<String> = pieces.iter().take(SHAPES_MAX).map(excerpt::shape).collect();
    let shapes = shapes.join("; ");
    let text = match pieces.len() {
        1 => shapes,
        count if count > SHAPES_MAX => format!("{count} texts: {shapes}; …"),
        count => format!("{count} texts: {shapes}"),
    };
    match text.char_indices().nth(SHAPE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What images and sounds cost beside their data.
fn passing_tokens(answer: &Answer<'_>) -> usize {
    let beside = |block: &Block<'_>| match block {
        Block::Passing { beside, .. } => tokens::count(beside),
        _ => 0,
    };
    answer.blocks.iter().map(beside).sum()
}

/// Whether what stands around the texts (annotations, addresses) is shown with them, and the
/// room that is left for the texts.
fn with_wrappers(answer: &Answer<'_>, room: usize) -> (bool, usize) {
    let shown = answer.blocks.iter().filter(|it| it.text().is_some());
    let shown = shown.take(texts_shown(room));
    let cost = Counter::with(|counter| shown.map(|it| it.wrapper_tokens(counter)).sum::<usize>());
    if cost <= room / 4 {
        (true, room - cost)
    } else {
        (false, room)
    }
}

/// How many texts there is room to show something of.
fn texts_shown(room: usize) -> usize {
    (room / SHARE_MIN).max(1)
}

/// What each text may show: short ones all, the long ones as much as each other. The last ones
/// are no content: of them so much is shown that one sees what they are.
fn shares(pieces: &[Piece<'_>], beside: usize, room: usize) -> Vec<usize> {
    let (content, beside) = pieces.split_at(pieces.len() - beside);
    let aside = beside.len().min(texts_shown(room)).min(2) * SHARE_MIN;
    let aside = if content.is_empty() {
        room
    } else {
        aside.min(room / 2)
    };
    let mut shares = equal_shares(content, room - aside);
    shares.extend(equal_shares(beside, aside));
    shares
}

fn equal_shares(pieces: &[Piece<'_>], room: usize) -> Vec<usize> {
    if pieces.is_empty() {
        return Vec::new();
    }
    let shown = (room / SHARE_MIN).clamp(1, pieces.len().max(1));
    let costs = Counter::with(|counter| {
        let cost = |piece: &Piece<'_>| counter.count_to(piece.text, room);
        pieces.iter().take(shown).map(cost).collect::<Vec<_>>()
    });
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|place| costs[*place]);
    let mut shares = vec![0; pieces.len()];
    let mut left = room;
    for (nth, place) in order.iter().enumerate() {
        shares[*place] = costs[*place].min(left / (costs.len() - nth));
        left -= shares[*place];
    }
    shares
}

/// The room of the first part: the texts before the first that is cut, and its own share.
fn first_room(pieces: &[Piece<'_>], shares: &[usize]) -> usize {
    let mut room = 0;
    for (piece, share) in pieces.iter().zip(shares) {
        let cost = Counter::with(|counter| counter.count_to(piece.text, *share));
        if cost > *share {
            return room + head_room(piece, *share);
        }
        room += cost;
    }
    room
}

/// What the head of a text may take of its share.
fn head_room(piece: &Piece<'_>, share: usize) -> usize {
    match piece.kind {
        Kind::Binary => share.min(BINARY_ROOM),
        Kind::Log => share * 3 / 5,
        Kind::Json => json_room(piece, share),
        _ => share,
    }
}

/// Leaves room for the brackets that close what was cut, as far as they can be closed at all.
fn json_room(piece: &Piece<'_>, share: usize) -> usize {
    let mut room = share.saturating_sub(4);
    for _ in 0..4 {
        let cut = excerpt::first_cut(piece, room);
        let Some(closed) = excerpt::closed(&piece.text[..cut.end]) else {
            return room;
        };
        let excess = tokens::count(&closed).saturating_sub(share);
        if excess == 0 {
            return room;
        }
        room = room.saturating_sub(excess + room / 16);
    }
    share
}

/// The blocks to send.
#[derive(Default)]
struct Shown {
    blocks: Vec<String>,
    /// Of the result, that they show.
    tokens: usize,
    /// That lines in them look like ours.
    notice: Option<String>,
}

impl Shown {
    fn add(&mut self, text: &str, block: String) {
        self.tokens += tokens::count(text);
        self.notice = self.notice.take().or_else(|| notice(text));
        self.blocks.push(block);
    }
}

/// What of the texts is shown.
struct View<'a> {
    pieces: &'a [Piece<'a>],
    shares: &'a [usize],
    first: Cut,
    /// Whether texts stand in their own blocks, or in plain ones.
    keeps_wrappers: bool,
}

impl View<'_> {
    /// The blocks to send, and how many tokens of the result they show.
    fn blocks(&self, answer: &Answer<'_>) -> Shown {
        let mut shown = Shown::default();
        let (mut place, mut start) = (0, 0);
        for block in &answer.blocks {
            if block.text().is_none() {
                shown.blocks.push(block.whole().into_owned());
                continue;
            }
            if let Some(text) = self.text(place, start) {
                shown.add(&text, self.block(block, &text));
            }
            start += self.pieces[place].text.len();
            place += 1;
        }
        for member in answer.long_members() {
            if let Some(text) = self.text(place, start) {
                shown.add(&text, text_block(&text));
            }
            start += member.len();
            place += 1;
        }
        shown
    }

    /// A block with what is shown of its text.
    fn block(&self, block: &Block<'_>, text: &str) -> String {
        let is_whole = block.text() == Some(text);
        match block {
            Block::Text { .. } if !self.keeps_wrappers => text_block(text),
            _ if is_whole => block.whole().into_owned(),
            Block::Link(_) => {
                let link = block.short_link();
                let link = link.filter(|it| tokens::count(it) <= tokens::count(text));
                link.unwrap_or_else(|| block.with(text))
            }
            _ => block.with(text),
        }
    }

    /// What is shown of a text that begins at a byte of all of them.
    fn text(&self, place: usize, start: usize) -> Option<String> {
        let piece = &self.pieces[place];
        let share = self.shares[place];
        let end = start + piece.text.len();
        if end <= self.first.end {
            return Some(piece.text.to_owned());
        }
        if start < self.first.end {
            return Some(beginning(piece, self.first.end - start, share));
        }
        // Behind the first part: shown already, and read again with the part it belongs to.
        let cut = excerpt::first_cut(piece, head_room(piece, share));
        (share >= SHARE_MIN.min(BINARY_ROOM)).then(|| beginning(piece, cut.end, share))
    }

    /// How much of the text that was cut is shown, in its own units.
    fn counted(&self) -> Counted {
        let [piece] = self.pieces else {
            let mut ends = 0;
            let whole = self.pieces.iter().take_while(|piece| {
                ends += piece.text.len();
                ends <= self.first.end
            });
            return Counted::of(whole.count(), self.pieces.len(), "texts");
        };
        let head = &piece.text[..self.first.end];
        if piece.kind == Kind::Json
            && let Some(place) = excerpt::place(piece.text, self.first.end)
        {
            let at = (!place.pointer.is_empty()).then_some(place.pointer);
            return Counted {
                at,
                ..Counted::of(place.shown, place.items, "items")
            };
        }
        let (shown, whole) = (excerpt::lines(head), excerpt::lines(piece.text));
        if whole > 1 && head.ends_with('\n') {
            return Counted::of(shown, whole, "lines");
        }
        let chars = |text: &str| text.chars().count();
        Counted::of(chars(head), chars(piece.text), "characters")
    }
}

/// The beginning of a text up to `end` as it is shown: JSON closed, a log with its end.
fn beginning(piece: &Piece<'_>, end: usize, share: usize) -> String {
    let head = &piece.text[..end];
    if end == piece.text.len() {
        return head.to_owned();
    }
    match piece.kind {
        Kind::Json => {
            let closed = excerpt::closed(head).filter(|it| tokens::count(it) <= share);
            closed.unwrap_or_else(|| head.to_owned())
        }
        Kind::Log => with_tail(piece.text, end, share * 2 / 5),
        _ => head.to_owned(),
    }
}

/// A head, what is between, and as many of the last lines as there is room for.
fn with_tail(text: &str, end: usize, room: usize) -> String {
    let between = "\n[… 1,000,000,000 lines between …]\n";
    let room = room.saturating_sub(tokens::count(between));
    let rest = &text[end..];
    let mut from = rest.len();
    Counter::with(|counter| {
        let mut used = 0;
        let body = rest.strip_suffix('\n').unwrap_or(rest);
        let ends = memchr::memrchr_iter(b'\n', body.as_bytes());
        for line_end in ends {
            used += counter.count_to(&rest[line_end + 1..from], room);
            if used > room {
                break;
            }
            from = line_end + 1;
        }
    });
    let left_out = excerpt::lines(&rest[..from]);
    if from == rest.len() || left_out == 0 {
        return text[..end].to_owned();
    }
    let left_out = printable::grouped(left_out);
    format!(
        "{}[… {left_out} lines between …]\n{}",
        &text[..end],
        &rest[from..]
    )
}
