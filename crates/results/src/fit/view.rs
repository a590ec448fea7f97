//! The shown blocks of a cut result.

use excerpt::{Cut, TextKind, TextPiece, tokens};

use super::{
    block::{Block, text_block},
    footer::Counted,
    imitation::notice,
    parsed_result::ParsedResult,
    shares::{BINARY_ROOM, SHARE_MIN, head_room, tail_mark, tail_start},
};

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
        let (text, end) = (piece.text, self.first.end);
        let head = &text[..end];
        if piece.kind == TextKind::Json
            && let Some(place) = excerpt::locate(text, end)
        {
            let at = (!place.pointer.is_empty()).then_some(place.pointer);
            return Counted {
                at,
                ..Counted::of(place.shown, place.items, "items")
            };
        }
        let tail = tail_start(piece, end, self.shares[0]).unwrap_or(text.len());
        let lines = excerpt::count_lines;
        if lines(text) > 1 && head.ends_with('\n') {
            Counted {
                last: lines(&text[tail..]),
                ..Counted::of(lines(head), lines(text), "lines")
            }
        } else {
            let chars = |text: &str| text.chars().count();
            Counted {
                last: chars(&text[tail..]),
                ..Counted::of(chars(head), chars(text), "characters")
            }
        }
    }

    /// Returns the number of shown items and of all items; a text that is cut within a line counts
    /// in lines too.
    pub(super) fn count_items(&self, counted: &Counted) -> (usize, usize) {
        match self.pieces {
            [piece] if counted.unit == "characters" => {
                let shown = excerpt::count_lines(&piece.text[..self.first.end]);
                (shown, excerpt::count_lines(piece.text))
            }
            _ => (counted.shown + counted.last, counted.whole),
        }
    }
}

/// Returns the beginning of a text up to `end`, with closing brackets for JSON, and the last lines of a
/// text of lines.
fn show_beginning(piece: &TextPiece<'_>, end: usize, share: usize) -> String {
    let head = &piece.text[..end];
    if end == piece.text.len() {
        return head.to_owned();
    }
    if piece.kind == TextKind::Json {
        let closed = excerpt::close(head).filter(|it| tokens::count(it) <= share);
        return closed.unwrap_or_else(|| head.to_owned());
    }
    let Some(tail) = tail_start(piece, end, share) else {
        return head.to_owned();
    };
    let line_end = if head.ends_with('\n') { "" } else { "\n" };
    let mark = tail_mark(excerpt::count_lines(&piece.text[end..tail]));
    format!("{head}{line_end}{mark}{}", &piece.text[tail..])
}
