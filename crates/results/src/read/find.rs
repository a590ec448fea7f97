//! The passages of a kept result that fit some words best.

use std::{
    io::{self, BufRead as _},
    ops::Range,
    time::Instant,
};

use excerpt::{Piece, tokens::Counter};
use printable::group_digits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    note::write_note,
    wanted::{Output, ReadError, Reading, Wanted},
};
use crate::store::Kept;

/// Words that are looked for; more say no more.
const WORDS_MAX: usize = 16;

/// The longest list of words that an answer repeats, in characters.
const WORDS_CHARS_MAX: usize = 160;

/// A passage is a paragraph, or as much of one, in bytes and lines.
const PASSAGE_BYTES: usize = 1_200;
const PASSAGE_LINES: usize = 12;

/// Passages with a word that are remembered.
const PASSAGES_MAX: usize = 100_000;

/// Passages in one answer when nobody says how many.
const SHOWN_DEFAULT: usize = 5;

/// A passage that has one of the words at least.
struct Passage {
    bytes: Range<usize>,
    lines: Range<usize>,
    /// How often each word comes in it.
    counts: [u16; WORDS_MAX],
    /// How many words of any kind it has.
    length: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    words: Vec<String>,
    /// Passages that an earlier answer showed.
    pass_over: usize,
    limit: usize,
    /// Passages are told up to here; the rest is counted.
    bytes_max: usize,
}

/// The passages that a search has found.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Passages {
    /// The best ones, with where they stand.
    texts: Vec<String>,
    /// How many there are in all.
    found: usize,
    /// How long it took, in seconds, where that was too long for the whole.
    gave_up_after_s: Option<u64>,
}

pub(super) fn question(
    wanted: &Wanted,
    words: &str,
    output: Output,
) -> Result<Question, ReadError> {
    let words = words_of(words);
    if words.is_empty() {
        return Err(ReadError::Wanted("find", "expected words".to_owned()));
    }
    Ok(Question {
        words,
        pass_over: usize::try_from(wanted.offset.unwrap_or(0)).unwrap_or(0),
        limit: wanted.limit.unwrap_or(SHOWN_DEFAULT),
        bytes_max: output.bytes_max(),
    })
}

/// As many of the passages as there is room for.
pub(super) fn reading(wanted: &Wanted, passages: Passages, output: Output) -> Reading {
    let (mut texts, mut room) = (Vec::new(), output.room);
    let (all, gave_up_after_s) = (passages.found, passages.gave_up_after_s);
    for mut text in passages.texts {
        if texts.is_empty() && room != usize::MAX {
            // The best one is shown as far as there is room.
            text.truncate(excerpt::find_first_cut(&Piece::plain(&text), room).end);
        }
        let cost = Counter::with(|counter| counter.count_to(&text, room));
        if cost > room {
            break;
        }
        room -= cost;
        texts.push(text);
    }
    let pass_over = usize::try_from(wanted.offset.unwrap_or(0)).unwrap_or(0);
    let mut note = describe_passages(wanted, pass_over + texts.len(), all);
    if let Some(seconds) = gave_up_after_s {
        note.push_str(&format!(
            " [only what comes first was searched, in {seconds} s]"
        ));
    }
    Reading { texts, note }
}

/// Looks through the whole result until the deadline.
pub(super) fn search(
    asked: &Question,
    kept: &mut Kept,
    deadline: Instant,
) -> Result<Passages, String> {
    let begun = Instant::now();
    let mut reader = Reader::new(&asked.words);
    let is_whole = reader
        .run(kept, deadline)
        .map_err(|error| error.to_string())?;
    let gave_up_after_s = (!is_whole).then(|| begun.elapsed().as_secs());
    let ranked = reader.ranked();
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for passage in ranked.iter().skip(asked.pass_over).take(asked.limit) {
        if bytes >= asked.bytes_max && !texts.is_empty() {
            break;
        }
        let text = read_passage(passage, kept).map_err(|error| error.to_string())?;
        bytes += text.len();
        texts.push(text);
    }
    Ok(Passages {
        texts,
        found: ranked.len(),
        gave_up_after_s,
    })
}

/// The passage with where it stands.
fn read_passage(passage: &Passage, kept: &mut Kept) -> io::Result<String> {
    let text = kept.read(passage.bytes.clone())?;
    let (first, last) = (passage.lines.start + 1, passage.lines.end);
    let (first, last) = (group_digits(first), group_digits(last));
    let start = group_digits(passage.bytes.start);
    let text = text.trim_end();
    Ok(format!("lines {first} to {last}, byte {start}:\n{text}\n"))
}

fn describe_passages(wanted: &Wanted, shown: usize, all: usize) -> String {
    if all == 0 {
        let words = words_of(wanted.find.as_deref().unwrap_or_default());
        let words = words.join(" or ");
        let words = printable::first_chars(&words, WORDS_CHARS_MAX);
        return format!("[no passage has {words}]");
    }
    let what = format!(
        "{} of {} passages, the best first",
        group_digits(shown),
        group_digits(all)
    );
    if shown >= all {
        return write_note(&what, &Value::Null);
    }
    let next = serde_json::json!({"handle": wanted.handle, "find": wanted.find, "offset": shown});
    write_note(&what, &next)
}

/// The words of a question, each once, without the endings that most differ by.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty())
    {
        let word = stem(&word.to_lowercase()).to_owned();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(WORDS_MAX);
    words
}

/// `errors` as `error`, `failing` and `failed` as `fail`.
fn stem(word: &str) -> &str {
    let endings = ["ings", "ing", "ies", "ed", "es", "s", "e", "y"];
    let stems = endings
        .iter()
        .filter_map(|ending| word.strip_suffix(ending));
    let mut stems = stems.filter(|stem| stem.chars().count() >= 3);
    stems.next().unwrap_or(word)
}

struct Reader<'w> {
    words: &'w [String],
    passages: Vec<Passage>,
    /// All passages, and the words in them.
    count: u32,
    length: u64,
    open: Option<Passage>,
}

impl<'w> Reader<'w> {
    fn new(words: &'w [String]) -> Self {
        Self {
            words,
            passages: Vec::new(),
            count: 0,
            length: 0,
            open: None,
        }
    }

    /// Answers whether it came to the end.
    fn run(&mut self, kept: &Kept, deadline: Instant) -> io::Result<bool> {
        let mut reader = kept.reader(0)?;
        let (mut line, mut number, mut at) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if length == 0 {
                self.end();
                return Ok(true);
            }
            for piece in pieces(&line) {
                self.add(number, at + piece.start..at + piece.end, &line[piece]);
                if Instant::now() > deadline {
                    self.end();
                    return Ok(false);
                }
            }
            number += 1;
            at += length;
        }
    }

    fn add(&mut self, line: usize, bytes: Range<usize>, text: &[u8]) {
        let is_blank = text.iter().all(u8::is_ascii_whitespace);
        let is_full = self.open.as_ref().is_some_and(|open| {
            bytes.end - open.bytes.start > PASSAGE_BYTES || line - open.lines.start >= PASSAGE_LINES
        });
        if is_blank || is_full {
            self.end();
        }
        if is_blank {
            return;
        }
        let open = self.open.get_or_insert_with(|| Passage {
            bytes: bytes.clone(),
            lines: line..line,
            counts: [0; WORDS_MAX],
            length: 0,
        });
        open.bytes.end = bytes.end;
        open.lines.end = line + 1;
        let text = String::from_utf8_lossy(text);
        for word in text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|it| !it.is_empty())
        {
            open.length += 1;
            let word = word.to_lowercase();
            let word = stem(&word);
            if let Some(place) = self.words.iter().position(|asked| asked == word) {
                open.counts[place] = open.counts[place].saturating_add(1);
            }
        }
    }

    fn end(&mut self) {
        let Some(passage) = self.open.take() else {
            return;
        };
        self.count += 1;
        self.length += u64::from(passage.length);
        let has_one = passage.counts.iter().any(|count| *count > 0);
        if has_one && self.passages.len() < PASSAGES_MAX {
            self.passages.push(passage);
        }
    }

    /// By BM25; of equals the first.
    fn ranked(self) -> Vec<Passage> {
        let count = f64::from(self.count.max(1));
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no more")]
        let mean = (self.length as f64 / count).max(1.0);
        let rarity: Vec<f64> = (0..self.words.len())
            .map(|place| {
                let having = self
                    .passages
                    .iter()
                    .filter(|it| it.counts[place] > 0)
                    .count();
                let having = f64::from(u32::try_from(having).unwrap_or(u32::MAX));
                ((count - having + 0.5) / (having + 0.5)).ln_1p()
            })
            .collect();
        let score = |passage: &Passage| -> f64 {
            let norm = 1.2 * (0.25 + 0.75 * f64::from(passage.length) / mean);
            let counts = passage.counts.iter().zip(&rarity);
            counts
                .map(|(count, rarity)| {
                    let count = f64::from(*count);
                    rarity * count * 2.2 / (count + norm)
                })
                .sum()
        };
        let mut scored: Vec<(f64, Passage)> = self
            .passages
            .into_iter()
            .map(|passage| (score(&passage), passage))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.into_iter().map(|(_, passage)| passage).collect()
    }
}

/// A line in pieces that a passage can hold, torn at a comma or a blank where it can be.
fn pieces(line: &[u8]) -> Vec<Range<usize>> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while line.len() - start > PASSAGE_BYTES {
        let window = &line[start..start + PASSAGE_BYTES];
        let end = window.iter().rposition(|byte| matches!(byte, b',' | b' '));
        let mut end = start
            + end
                .filter(|end| *end > PASSAGE_BYTES / 2)
                .map_or(PASSAGE_BYTES, |end| end + 1);
        while end > start + 1 && line.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
            end -= 1;
        }
        pieces.push(start..end);
        start = end;
    }
    pieces.push(start..line.len());
    pieces
}
