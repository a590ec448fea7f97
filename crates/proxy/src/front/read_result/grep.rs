//! The lines of a kept result that match a regular expression.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _},
    time::{Duration, Instant},
};

use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{Output, ReadError, Reading, Wanted, noted};
use crate::{
    cut::{self, Piece},
    front::grouped,
    results::Kept,
    tokens::Counter,
};

/// How long one search may take. The engine's time grows with the text only.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Lines shown before and behind a match.
const CONTEXT: usize = 2;

/// A line longer than this is shown around its matches only, in bytes.
const LINE_BYTES_MAX: usize = 600;

/// What is shown before and behind a match in such a line, in bytes.
const AROUND_BYTES: usize = 120;

/// What a compiled expression may take, in bytes.
const REGEX_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) fn read(
    wanted: &Wanted,
    pattern: &str,
    kept: &Kept,
    output: Output,
) -> Result<Reading, ReadError> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    let regex = regex.map_err(|error| ReadError::Wanted("grep", error.to_string()))?;
    let pass_over = usize::try_from(wanted.offset.unwrap_or(0));
    let pass_over =
        pass_over.map_err(|_| ReadError::Wanted("offset", "of grep it is 0 or more".to_owned()))?;
    let mut search = Search {
        regex,
        pass_over,
        limit: wanted.limit.unwrap_or(usize::MAX),
        room: output.room,
        found: 0,
        shown: 0,
        text: String::new(),
        before: VecDeque::new(),
        after: 0,
        last_shown: None,
        is_full: false,
    };
    let (lines, ended) = search.run(kept)?;
    let note = search.note(wanted, pattern, lines, ended);
    let texts = if search.text.is_empty() {
        Vec::new()
    } else {
        vec![search.text]
    };
    Ok(Reading { texts, note })
}

struct Search {
    regex: Regex,
    /// Matches that an earlier answer showed.
    pass_over: usize,
    limit: usize,
    /// Tokens left.
    room: usize,
    found: usize,
    shown: usize,
    text: String,
    /// Lines that may stand before the next match.
    before: VecDeque<(usize, String)>,
    /// Lines still to be shown behind the last one.
    after: usize,
    last_shown: Option<usize>,
    is_full: bool,
}

impl Search {
    /// Answers how many lines were looked at, and whether that was all.
    fn run(&mut self, kept: &Kept) -> io::Result<(usize, bool)> {
        let deadline = Instant::now() + TIME_MAX;
        let mut reader = kept.reader(0)?;
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok((number, true));
            }
            number += 1;
            let body = line.strip_suffix(b"\n").unwrap_or(&line);
            self.look_at(number, body, deadline);
            if Instant::now() > deadline {
                return Ok((number, false));
            }
        }
    }

    fn look_at(&mut self, number: usize, line: &[u8], deadline: Instant) {
        if line.len() > LINE_BYTES_MAX {
            self.look_into(number, line, deadline);
            return;
        }
        let is_match = self.regex.is_match(line);
        let text = || String::from_utf8_lossy(line).into_owned();
        if is_match {
            self.found += 1;
            if self.wants() {
                self.show_match(number, &text());
                return;
            }
        }
        if self.is_full || self.shown >= self.limit {
            return;
        }
        if self.after > 0 && !is_match {
            self.after -= 1;
            self.show(number, &format!("{number}-{}\n", text()));
        } else {
            if self.before.len() == CONTEXT {
                self.before.pop_front();
            }
            self.before.push_back((number, text()));
        }
    }

    fn wants(&self) -> bool {
        !self.is_full && self.found > self.pass_over && self.shown < self.limit
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
        if self.show(number, &block) {
            self.shown += 1;
            self.after = CONTEXT;
        }
    }

    /// A long line: what is around each of its matches, with the byte it begins at.
    fn look_into(&mut self, number: usize, line: &[u8], deadline: Instant) {
        self.before.clear();
        self.after = 0;
        let regex = self.regex.clone();
        for (nth, found) in regex.find_iter(line).enumerate() {
            self.found += 1;
            if self.wants() {
                let start = found.start().saturating_sub(AROUND_BYTES);
                let end = (found.end().min(found.start() + LINE_BYTES_MAX) + AROUND_BYTES)
                    .min(line.len());
                let part = String::from_utf8_lossy(&line[start..end]);
                let part = part.trim_matches(char::REPLACEMENT_CHARACTER);
                let block = format!("{number}:byte {start}: …{part}…\n");
                if self.show(number, &block) {
                    self.shown += 1;
                }
            }
            if nth % 1_000 == 0 && Instant::now() > deadline {
                return;
            }
        }
    }

    fn show(&mut self, number: usize, block: &str) -> bool {
        if self.room != usize::MAX {
            let cost = Counter::with(|counter| counter.count_to(block, self.room));
            if cost > self.room {
                self.is_full = true;
                return self.shown == 0 && self.show_beginning(number, block);
            }
            self.room -= cost;
        }
        self.text.push_str(block);
        self.last_shown = Some(number);
        true
    }

    /// Where there is no room for the first match and what is around: as much of its line as fits.
    fn show_beginning(&mut self, number: usize, block: &str) -> bool {
        let Some(line) = block.lines().next_back() else {
            return false;
        };
        let cut = cut::first_cut(&Piece::plain(line), self.room);
        self.text = format!("{}\n", &line[..cut.end]);
        self.last_shown = Some(number);
        true
    }

    fn note(&self, wanted: &Wanted, pattern: &str, lines: usize, ended: bool) -> String {
        let lines = grouped(lines);
        let searched = if ended {
            format!("{lines} lines searched")
        } else {
            let seconds = TIME_MAX.as_secs();
            format!(
                "the first {lines} lines searched in {seconds} s; a simpler expression gets further"
            )
        };
        if self.found == 0 {
            return format!("[no line matches; {searched}]");
        }
        let (from, shown) = (self.pass_over, self.shown);
        let found = grouped(self.found);
        let what = match shown {
            0 => format!("{found} matches, none shown; {searched}"),
            _ => format!(
                "matches {} to {} of {found}; {searched}",
                grouped(from + 1),
                grouped(from + shown)
            ),
        };
        let next = from + shown;
        let more = if next < self.found && shown > 0 {
            let mut call = json!({"handle": wanted.handle, "grep": pattern, "offset": next});
            if let Some(limit) = wanted.limit {
                call["limit"] = json!(limit);
            }
            call
        } else {
            Value::Null
        };
        noted(&what, &more)
    }
}
