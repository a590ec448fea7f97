//! The lines of a kept result that match a regular expression.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _},
    time::Instant,
};

use excerpt::{TextPiece, tokens::Counter};
use printable::group_digits;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    note::write_note,
    request::{Output, ReadError, ReadRequest, ReadTexts},
};
use crate::store::KeptResult;

/// The lines shown before and after a match.
const CONTEXT: usize = 2;

/// A line longer than this is shown around its matches only, in bytes.
const LINE_BYTES_MAX: usize = 600;

/// The bytes shown before and after a match in such a line.
const AROUND_BYTES: usize = 120;

/// The most that a compiled expression may take, in bytes.
const REGEX_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GrepQuery {
    pattern: String,
    /// The number of matches that earlier answers showed.
    skip: usize,
    limit: usize,
    /// The room for matches; later ones are only counted.
    bytes_max: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Matches {
    /// The blocks to show, in order.
    blocks: Vec<Block>,
    /// The number of all matches, including the shown ones.
    found: usize,
    lines: usize,
    /// The time of the search in seconds, if the search ran out of time before it reached the last
    /// line.
    gave_up_after_s: Option<u64>,
}

/// A match with the lines before it, or a line after one.
#[derive(Debug, Serialize, Deserialize)]
struct Block {
    text: String,
    is_match: bool,
}

pub(super) fn query(
    request: &ReadRequest,
    pattern: &str,
    output: Output,
) -> Result<GrepQuery, ReadError> {
    let skip = usize::try_from(request.offset.unwrap_or(0));
    let skip =
        skip.map_err(|_| ReadError::Argument("offset", "of grep it is 0 or more".to_owned()))?;
    Ok(GrepQuery {
        pattern: pattern.to_owned(),
        skip,
        limit: request.limit.unwrap_or(usize::MAX),
        bytes_max: output.bytes_max(),
    })
}

/// Returns the matches that fit.
pub(super) fn reading(request: &ReadRequest, matches: &Matches, output: Output) -> ReadTexts {
    let (text, shown) = take_what_fits(&matches.blocks, output.room);
    let note = describe_matches(request, matches, shown);
    let texts = (!text.is_empty()).then_some(text).into_iter().collect();
    ReadTexts { texts, note }
}

/// Returns the text of the blocks that fit, and the number of matches in it.
fn take_what_fits(blocks: &[Block], mut room: usize) -> (String, usize) {
    let (mut text, mut shown) = (String::new(), 0);
    for block in blocks {
        if room != usize::MAX {
            let cost = Counter::with(|counter| counter.count_to(&block.text, room));
            if cost > room && shown > 0 {
                break;
            }
            if cost > room {
                return beginning(&block.text, room);
            }
            room -= cost;
        }
        text.push_str(&block.text);
        shown += usize::from(block.is_match);
    }
    (text, shown)
}

/// Returns the beginning of the line with the first match, if the match and its context do not fit.
fn beginning(block: &str, room: usize) -> (String, usize) {
    let Some(line) = block.lines().next_back() else {
        return (String::new(), 0);
    };
    let cut = excerpt::find_first_cut(&TextPiece::plain(line), room);
    (format!("{}\n", &line[..cut.end]), 1)
}

fn describe_matches(request: &ReadRequest, matches: &Matches, shown: usize) -> String {
    let lines = group_digits(matches.lines);
    let searched = match matches.gave_up_after_s {
        None => format!("{lines} lines searched"),
        Some(seconds) => format!(
            "the first {lines} lines searched in {seconds} s; a simpler expression gets further"
        ),
    };
    if matches.found == 0 {
        return format!("[no line matches; {searched}]");
    }
    let from = usize::try_from(request.offset.unwrap_or(0)).unwrap_or(0);
    let found = group_digits(matches.found);
    let what = match shown {
        0 => format!("{found} matches, none shown; {searched}"),
        _ => format!(
            "matches {} to {} of {found}; {searched}",
            group_digits(from + 1),
            group_digits(from + shown)
        ),
    };
    let next = from + shown;
    let more = if next < matches.found && shown > 0 {
        let mut call = json!({"handle": request.handle, "grep": request.grep, "offset": next});
        if let Some(limit) = request.limit {
            call["limit"] = json!(limit);
        }
        call
    } else {
        Value::Null
    };
    write_note(&what, &more)
}

/// Searches the whole result until the deadline. The error is for the author of the pattern.
pub(super) fn search(
    query: &GrepQuery,
    kept: &KeptResult,
    deadline: Instant,
) -> Result<Matches, String> {
    let mut search = Search {
        regex: compile(&query.pattern)?,
        query,
        deadline,
        matches: Matches::default(),
        bytes: 0,
        shown: 0,
        before: VecDeque::new(),
        after: 0,
        last_shown: None,
    };
    let begun = Instant::now();
    let is_whole = search.run(kept).map_err(|error| error.to_string())?;
    if !is_whole {
        search.matches.gave_up_after_s = Some(begun.elapsed().as_secs());
    }
    Ok(search.matches)
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            let mib = REGEX_BYTES_MAX / (1024 * 1024);
            format!("the expression takes more than {mib} MiB; repeat less, such as {{1,500}}")
        }
        error => error.to_string(),
    })
}

struct Search<'q> {
    regex: Regex,
    query: &'q GrepQuery,
    deadline: Instant,
    matches: Matches,
    /// The bytes to show so far.
    bytes: usize,
    shown: usize,
    /// Lines that may be shown before the next match.
    before: VecDeque<(usize, String)>,
    /// The number of lines still to be shown after the last match.
    after: usize,
    last_shown: Option<usize>,
}

impl Search<'_> {
    /// Returns true if it reached the end.
    fn run(&mut self, kept: &KeptResult) -> io::Result<bool> {
        let mut reader = kept.reader(0)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(true);
            }
            self.matches.lines += 1;
            let body = line.strip_suffix(b"\n").unwrap_or(&line);
            self.look_at(self.matches.lines, body);
            if Instant::now() > self.deadline {
                return Ok(false);
            }
        }
    }

    fn look_at(&mut self, number: usize, line: &[u8]) {
        if line.len() > LINE_BYTES_MAX {
            self.look_into(number, line);
            return;
        }
        let is_match = self.regex.is_match(line);
        let text = || String::from_utf8_lossy(line).into_owned();
        if is_match {
            self.matches.found += 1;
            if self.wants() {
                self.show_match(number, &text());
                return;
            }
        }
        if !self.has_room() {
            return;
        }
        if self.after > 0 && !is_match {
            self.after -= 1;
            self.show(number, format!("{number}-{}\n", text()), false);
        } else {
            if self.before.len() == CONTEXT {
                self.before.pop_front();
            }
            self.before.push_back((number, text()));
        }
    }

    fn has_room(&self) -> bool {
        let is_full = self.bytes >= self.query.bytes_max && self.shown > 0;
        !is_full && self.shown < self.query.limit
    }

    fn wants(&self) -> bool {
        self.has_room() && self.matches.found > self.query.skip
    }

    fn show_match(&mut self, number: usize, line: &str) {
        let first = self.before.front().map_or(number, |(first, _)| *first);
        let mut block = String::new();
        if self.last_shown.is_some_and(|last| last + 1 < first) {
            block.push_str("--\n");
        }
        for (number, line) in self.before.drain(..) {
            block.push_str(&format!("{number}-{line}\n"));
        }
        block.push_str(&format!("{number}:{line}\n"));
        self.show(number, block, true);
        self.after = CONTEXT;
    }

    /// Searches a long line: shows the text around each of its matches, with its first byte.
    fn look_into(&mut self, number: usize, line: &[u8]) {
        self.before.clear();
        self.after = 0;
        let regex = self.regex.clone();
        for found in regex.find_iter(line) {
            self.matches.found += 1;
            if self.wants() {
                let start = found.start().saturating_sub(AROUND_BYTES);
                let end = (found.end().min(found.start() + LINE_BYTES_MAX) + AROUND_BYTES)
                    .min(line.len());
                let part = String::from_utf8_lossy(&line[start..end]);
                let part = part.trim_matches(char::REPLACEMENT_CHARACTER);
                let block = format!("{number}:byte {start}: …{part}…\n");
                self.show(number, block, true);
            }
            if Instant::now() > self.deadline {
                return;
            }
        }
    }

    fn show(&mut self, number: usize, text: String, is_match: bool) {
        self.bytes += text.len();
        self.shown += usize::from(is_match);
        self.matches.blocks.push(Block { text, is_match });
        self.last_shown = Some(number);
    }
}
