//! The shown blocks of a cut result.

use excerpt::{
    Cut, TextKind, TextPiece,
    tokens::{self, Counter},
};

use super::{
    block::{Block, text_block},
    footer::Counted,
    imitation::notice,
    parsed_result::ParsedResult,
    shares::{BINARY_ROOM, SHARE_MIN, head_room},
};

/// The blocks to send.
#[derive(Default)]
pub(super) struct ShownContent {
    pub(super) blocks: Vec<String>,
    /// The tokens of the result that the blocks show.
    pub(super) tokens: usize,
    /// The notice about lines that look like ours.
    pub(super) notice: Option<String>,
    /// If the result is one text: the JSON before it, the shown part of the text, and the JSON after
    /// it.
    pub(super) sole: Option<(String, String, String)>,
}

impl ShownContent {
    fn add(&mut self, text: &str, block: String) {
        self.tokens += tokens::count(text);
        self.notice = self.notice.take().or_else(|| notice(text));
        self.blocks.push(block);
    }
}

/// The texts, and the shown share of each.
pub(super) struct View<'a> {
    pub(super) pieces: &'a [TextPiece<'a>],
    pub(super) shares: &'a [usize],
    pub(super) first: Cut,
    /// True if texts are sent in their own blocks; false if in plain ones.
    pub(super) keeps_wrappers: bool,
}

impl View<'_> {
    /// Returns the blocks to send, and the number of tokens of the result in them.
    pub(super) fn blocks(&self, answer: &ParsedResult<'_>) -> ShownContent {
        let mut shown = ShownContent::default();
        let (mut place, mut start) = (0, 0);
        for block in &answer.blocks {
            if block.text().is_none() {
                shown.blocks.push(block.whole().into_owned());
                continue;
            }
            if let Some(text) = self.text(place, start) {
                shown.add(&text, self.block(block, &text));
                let is_sole = self.pieces.len() == 1 && answer.blocks.len() == 1;
                let around = block.around_text(self.keeps_wrappers).filter(|_| is_sole);
                shown.sole = around.map(|(before, after)| (before, text, after));
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

    /// A block with the shown part of its text.
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

    /// Returns the shown part of a text that begins at this byte of all texts.
    fn text(&self, place: usize, start: usize) -> Option<String> {
        let piece = &self.pieces[place];
        let share = self.shares[place];
        let end = start + piece.text.len();
        if end <= self.first.end {
            return Some(piece.text.to_owned());
        }
        if start < self.first.end {
            return Some(show_beginning(piece, self.first.end - start, share));
        }
        // The text is after the first part: it is shown here, and again when its own part is read.
        let cut = excerpt::find_first_cut(piece, head_room(piece, share));
        (share >= SHARE_MIN.min(BINARY_ROOM)).then(|| show_beginning(piece, cut.end, share))
    }

    /// Counts the shown part of the cut text, in items, lines or characters.
    pub(super) fn count(&self) -> Counted {
        let [piece] = self.pieces else {
            let mut ends = 0;
            let whole = self.pieces.iter().take_while(|piece| {
                ends += piece.text.len();
                ends <= self.first.end
            });
            return Counted::of(whole.count(), self.pieces.len(), "texts");
        };
        let head = &piece.text[..self.first.end];
        if piece.kind == TextKind::Json
            && let Some(place) = excerpt::locate(piece.text, self.first.end)
        {
            let at = (!place.pointer.is_empty()).then_some(place.pointer);
            return Counted {
                at,
                ..Counted::of(place.shown, place.items, "items")
            };
        }
        let (shown, whole) = (excerpt::count_lines(head), excerpt::count_lines(piece.text));
        if whole > 1 && head.ends_with('\n') {
            return Counted::of(shown, whole, "lines");
        }
        let chars = |text: &str| text.chars().count();
        Counted::of(chars(head), chars(piece.text), "characters")
    }
}

/// Returns the beginning of a text up to `end`, with closing brackets for JSON, and the last lines of a
/// log.
fn show_beginning(piece: &TextPiece<'_>, end: usize, share: usize) -> String {
    let head = &piece.text[..end];
    if end == piece.text.len() {
        return head.to_owned();
    }
    match piece.kind {
        TextKind::Json => {
            let closed = excerpt::close(head).filter(|it| tokens::count(it) <= share);
            closed.unwrap_or_else(|| head.to_owned())
        }
        TextKind::Log => add_tail(piece.text, end, share * 2 / 5),
        _ => head.to_owned(),
    }
}

/// Adds a marker for the omitted lines, and the last lines that fit.
fn add_tail(text: &str, end: usize, room: usize) -> String {
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
    let left_out = excerpt::count_lines(&rest[..from]);
    if from == rest.len() || left_out == 0 {
        return text[..end].to_owned();
    }
    let left_out = printable::group_digits(left_out);
    format!(
        "{}[… {left_out} lines between …]\n{}",
        &text[..end],
        &rest[from..]
    )
}
