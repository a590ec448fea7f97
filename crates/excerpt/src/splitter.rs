//! Cuts a text into parts that fit their room, at the best positions.

use crate::{
    TextKind, TextPiece,
    json::outside_escape,
    marks::{Mark, RANKS, marks},
    tokens::{Counter, Pieces},
};

/// The smallest room, in tokens, which every piece of a text fits.
const ROOM_MIN: usize = 64;

/// The room of parts, in tokens. The first part may not have more than the others, because the rest of
/// its room is used by the second.
#[derive(Debug, Clone, Copy)]
pub struct Rooms {
    /// The room of the first part.
    pub first: usize,
    /// The room of each later part.
    pub others: usize,
}

/// The end of a part, in bytes from the beginning of the whole, and the tokens of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The end, in bytes.
    pub end: usize,
    /// The tokens of the part.
    pub tokens: usize,
}

/// Cuts texts, one after the other as if they were one, into parts. The last cut is the end.
pub fn split(pieces: &[TextPiece<'_>], rooms: Rooms) -> Vec<Cut> {
    Counter::with(|counter| {
        let mut splitter = Splitter::new(counter, rooms, usize::MAX);
        for piece in pieces {
            splitter.feed(piece);
        }
        splitter.end()
    })
}

/// Finds the end of the first part of one text.
pub fn find_first_cut(piece: &TextPiece<'_>, room: usize) -> Cut {
    find_first_part(&[*piece], room)
}

/// Finds the end of the first part that [`split`] returns for a first room of this size.
pub fn find_first_part(pieces: &[TextPiece<'_>], room: usize) -> Cut {
    let rooms = Rooms {
        first: room,
        others: room,
    };
    Counter::with(|counter| {
        let mut splitter = Splitter::new(counter, rooms, 1);
        for piece in pieces {
            splitter.feed(piece);
            if !splitter.cuts.is_empty() {
                break;
            }
        }
        splitter.end()[0]
    })
}

/// A position at which a part may end. Tokens are counted from the beginning of all texts.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    at: usize,
    /// An upper bound of the tokens before it.
    before: usize,
    /// The count from which the tokens after it are counted.
    after: usize,
}

struct Splitter<'c> {
    counter: &'c mut Counter,
    rooms: Rooms,
    cuts_max: usize,
    cuts: Vec<Cut>,
    /// The bytes of the texts before this one.
    base: usize,
    /// The start of the current part, in bytes and in tokens.
    start: usize,
    start_tokens: usize,
    /// The number of tokens before the current piece.
    tokens: usize,
    marked: [Option<Candidate>; RANKS],
    sentence: Option<Candidate>,
    word: Option<Candidate>,
}

impl<'c> Splitter<'c> {
    fn new(counter: &'c mut Counter, rooms: Rooms, cuts_max: usize) -> Self {
        Self {
            counter,
            rooms,
            cuts_max,
            cuts: Vec::new(),
            base: 0,
            start: 0,
            start_tokens: 0,
            tokens: 0,
            marked: [None; RANKS],
            sentence: None,
            word: None,
        }
    }

    fn room(&self) -> usize {
        let room = if self.cuts.is_empty() {
            self.rooms.first
        } else {
            self.rooms.others
        };
        room.max(ROOM_MIN)
    }

    fn feed(&mut self, text: &TextPiece<'_>) {
        let mut marks = marks(text).peekable();
        let mut from = 0;
        for piece in Pieces::of(text.text) {
            let to = from + piece.len();
            let count = self.counter.piece(piece);
            self.look_at_word(text, from);
            while let Some(mark) = marks.next_if(|mark| mark.at <= to) {
                self.look_at(mark, to, count);
            }
            while self.tokens + count - self.start_tokens > self.room() {
                self.cut(text, from);
                if self.cuts.len() >= self.cuts_max {
                    return;
                }
            }
            self.tokens += count;
            from = to;
        }
        self.base += text.text.len();
        self.offer(0, self.candidate(0));
    }

    /// Returns the candidate before the current piece, which begins at `from`.
    fn candidate(&self, from: usize) -> Candidate {
        Candidate {
            at: self.base + from,
            before: self.tokens,
            after: self.tokens,
        }
    }

    /// Considers a mark within the piece that ends at `to`, or at its end.
    fn look_at(&mut self, mark: Mark, to: usize, count: usize) {
        let torn = to - mark.at;
        let at_end = self.tokens + count;
        // Split in two, a piece costs no more tokens than its bytes.
        let (before, after) = if torn == 0 {
            (at_end, at_end)
        } else {
            (at_end + PIECE_TORN, at_end.saturating_sub(torn))
        };
        self.offer(
            mark.rank,
            Candidate {
                at: self.base + mark.at,
                before,
                after,
            },
        );
    }

    fn offer(&mut self, rank: usize, candidate: Candidate) {
        let fits = candidate.before - self.start_tokens <= self.room();
        if fits && candidate.at > self.start {
            self.marked[rank] = Some(candidate);
        }
    }

    /// Records the beginning of a word, before a space, and of a sentence, after a full stop.
    fn look_at_word(&mut self, text: &TextPiece<'_>, from: usize) {
        let bytes = text.text.as_bytes();
        if from == 0 || !bytes[from].is_ascii_whitespace() {
            return;
        }
        let here = Some(self.candidate(from));
        self.word = here;
        if matches!(bytes[from - 1], b'.' | b'!' | b'?') {
            self.sentence = here;
        }
    }

    /// Ends the part at the best place before the piece at `from`.
    fn cut(&mut self, text: &TextPiece<'_>, from: usize) {
        let chosen = self.best(text.kind).unwrap_or_else(|| {
            let at = match text.kind {
                TextKind::Json | TextKind::JsonLines => outside_escape(text.text, from),
                _ => from,
            };
            let at = if self.base + at > self.start {
                at
            } else {
                from
            };
            Candidate {
                at: self.base + at,
                before: self.tokens,
                after: self.tokens - (from - at).min(self.tokens),
            }
        });
        self.cuts.push(Cut {
            end: chosen.at,
            tokens: chosen.before - self.start_tokens,
        });
        self.start = chosen.at;
        self.start_tokens = chosen.after;
        let start = self.start;
        let is_ahead = |it: &Candidate| it.at > start;
        for marked in &mut self.marked {
            *marked = marked.filter(is_ahead);
        }
        self.sentence = self.sentence.filter(is_ahead);
        self.word = self.word.filter(is_ahead);
    }

    fn best(&self, kind: TextKind) -> Option<Candidate> {
        let room = self.room();
        let fills = |it: &Candidate, quarters: usize| {
            (it.before - self.start_tokens) * 4 >= room * quarters
        };
        let marked = (0..RANKS).find_map(|rank| {
            self.marked[rank].filter(|it| fills(it, kind.quarters_filled_min(rank)))
        });
        let within_line = [self.sentence, self.word].into_iter().flatten();
        let mut within_line = within_line.filter(|it| it.at > self.start && fills(it, 2));
        marked.or_else(|| within_line.next())
    }

    fn end(mut self) -> Vec<Cut> {
        if self.cuts.len() < self.cuts_max && (self.base > self.start || self.cuts.is_empty()) {
            self.cuts.push(Cut {
                end: self.base,
                tokens: self.tokens - self.start_tokens,
            });
        }
        self.cuts
    }
}

/// The most extra tokens of a piece that is split.
const PIECE_TORN: usize = 2;
