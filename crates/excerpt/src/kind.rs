//! The kind of a text, which decides where it is cut.

use serde::{Deserialize, Serialize, de::IgnoredAny};

/// The kind of a text, which decides where it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// An array or an object.
    Json,
    /// Several arrays or objects, one per line.
    JsonLines,
    /// Records with this byte between their fields.
    Table(u8),
    /// Prose with headings.
    Markdown,
    /// Lines that begin with a time or a level.
    Log,
    /// Lines that begin with `path:line:`, as search programs print them.
    Search,
    /// Source of a program.
    Code,
    /// Bytes, encoded as text or not.
    Binary,
    /// Any other text, with paragraphs, lines, sentences and words.
    Text,
}

/// The number of lines that are examined to detect the kind.
const LINES_SEEN: usize = 60;

/// The number of bytes that are examined.
const HEAD_BYTES: usize = 16 * 1024;

impl TextKind {
    /// Detects the kind of a text by its beginning; JSON by the whole text.
    pub fn of(text: &str) -> Self {
        let trimmed = text.trim_start();
        if trimmed.starts_with(['{', '[']) {
            if serde_json::from_str::<IgnoredAny>(text).is_ok() {
                return Self::Json;
            }
            if is_json_lines(trimmed) {
                return Self::JsonLines;
            }
        }
        let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
        if is_binary(head) {
            return Self::Binary;
        }
        let lines: Vec<&str> = head.lines().take(LINES_SEEN).collect();
        let filled: Vec<&str> = lines
            .iter()
            .copied()
            .filter(|line| !line.trim().is_empty())
            .collect();
        if filled.len() < 3 {
            return Self::Text;
        }
        let most = |is_one: fn(&str) -> bool, of_ten: usize| {
            filled.iter().filter(|line| is_one(line)).count() * 10 >= filled.len() * of_ten
        };
        if most(is_log_line, 5) {
            Self::Log
        } else if most(|line| found_in(line).is_some(), 6) {
            Self::Search
        } else if let Some(delimiter) = delimiter(head) {
            Self::Table(delimiter)
        } else if is_markdown(&lines) {
            Self::Markdown
        } else if most(is_code_line, 4) {
            Self::Code
        } else {
            Self::Text
        }
    }

    /// Returns the media type of a text of this kind.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::JsonLines => "application/x-ndjson",
            Self::Table(b'\t') => "text/tab-separated-values",
            Self::Table(b',') => "text/csv",
            Self::Markdown => "text/markdown",
            Self::Binary => "application/octet-stream",
            _ => "text/plain",
        }
    }

    /// Returns the share of its room, in quarters, that a part must fill before a mark of this rank may
    /// end it. Lower ranks are better places.
    pub(crate) fn quarters_filled_min(self, rank: usize) -> usize {
        match (self, rank) {
            (Self::Json, _) | (_, 3) => 1,
            (_, 0..3) => 3,
            _ => 2,
        }
    }
}

fn is_json_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_one = |line: &str| {
        line.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(line).is_ok()
    };
    let seen: Vec<bool> = lines.by_ref().take(LINES_SEEN).map(is_one).collect();
    seen.len() > 1 && seen.iter().all(|is_one| *is_one)
}

/// Returns true for base64 in long lines, and for text with many control characters.
fn is_binary(head: &str) -> bool {
    let odd = head
        .chars()
        .filter(|c| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace()));
    if odd.take(head.len() / 20 + 1).count() > head.len() / 20 {
        return true;
    }
    let body = head.split_once(";base64,").map_or(head, |(_, body)| body);
    let body = body.trim();
    if body.len() < 256 || !body.bytes().all(is_base64) {
        return false;
    }
    let has = |is_in: fn(&u8) -> bool| body.bytes().any(|byte| is_in(&byte));
    let longest = body.lines().map(str::len).max().unwrap_or(0);
    longest >= 60
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && (has(u8::is_ascii_digit) || has(|byte| matches!(byte, b'+' | b'/' | b'-' | b'_')))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'\r' | b'\n')
}

const LEVELS: [&str; 8] = [
    "TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL",
];

/// Returns true if a line begins a log record: with a time, or with a level.
pub(crate) fn is_log_line(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(', ' ']);
    let bytes = line.as_bytes();
    let digits = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|it| it.iter().all(u8::is_ascii_digit))
    };
    let sign = |at: usize, signs: &[u8]| bytes.get(at).is_some_and(|it| signs.contains(it));
    let date = digits(0, 4) && sign(4, b"-/.") && digits(5, 7) && sign(7, b"-/.") && digits(8, 10);
    let time = digits(0, 2) && sign(2, b":") && digits(3, 5) && sign(5, b":") && digits(6, 8);
    date || time || is_syslog(line) || level(line).is_some_and(|(_, at)| at == 0)
}

/// Returns true for a time such as `Jan  2 03:04:05`.
fn is_syslog(line: &str) -> bool {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = line.split_ascii_whitespace();
    let month = words.next().is_some_and(|word| {
        word.len() == 3 && MONTHS.find(word).is_some_and(|at| at.is_multiple_of(3))
    });
    let day = words.next().is_some_and(|word| word.parse::<u8>().is_ok());
    month && day && words.next().is_some_and(|word| word.contains(':'))
}

/// Returns the first log level in a line, as a word in capitals, and its position.
pub(crate) fn level(line: &str) -> Option<(&'static str, usize)> {
    let mut at = 0;
    for word in line.split(|c: char| !c.is_ascii_alphabetic()) {
        if let Some(level) = LEVELS.iter().find(|level| **level == word) {
            return Some((if *level == "WARNING" { "WARN" } else { level }, at));
        }
        at += word.len() + 1;
        if at > 160 {
            break;
        }
    }
    None
}

/// Returns the path in a line such as `src/main.rs:12: fn main`.
pub(crate) fn found_in(line: &str) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (path, number) = (fields.next()?, fields.next()?);
    let is_path = !path.is_empty() && path.len() < 300 && !path.starts_with(' ');
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_path && is_number && fields.next().is_some()).then_some(path)
}

/// Returns the byte between fields, if all examined records contain the same number of it.
fn delimiter(head: &str) -> Option<u8> {
    let is_cut = head.len() >= HEAD_BYTES - 4;
    let even = |delimiter: &u8| {
        let mut counts = records(head, *delimiter);
        if is_cut {
            counts.pop();
        }
        let first = counts.first().copied().unwrap_or(0);
        first > 0 && counts.len() > 2 && counts.iter().all(|count| *count == first)
    };
    [b'\t', b',', b';', b'|'].into_iter().find(even)
}

/// Counts the delimiters outside quotes in each record.
fn records(text: &str, delimiter: u8) -> Vec<usize> {
    let (mut counts, mut count, mut quoted) = (Vec::new(), 0, false);
    let mut is_empty = true;
    for byte in text.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => {
                if !is_empty {
                    counts.push(count);
                }
                (count, is_empty) = (0, true);
                continue;
            }
            _ if byte == delimiter && !quoted => count += 1,
            _ => {}
        }
        is_empty = false;
    }
    if !is_empty {
        counts.push(count);
    }
    counts
}

/// Returns the rank of a Markdown heading, 1 to 6.
pub(crate) fn heading(line: &str) -> Option<usize> {
    let signs = line.bytes().take_while(|byte| *byte == b'#').count();
    let is_one = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    is_one.then_some(signs)
}

fn is_markdown(lines: &[&str]) -> bool {
    let headings = lines.iter().filter(|line| heading(line).is_some()).count();
    let fences = lines.iter().filter(|line| line.starts_with("```")).count();
    let linked = lines.iter().filter(|line| line.contains("](")).count();
    let bars = lines
        .iter()
        .filter(|line| line.starts_with("|--") || line.starts_with("| -"));
    headings + fences / 2 + linked.min(2) + bars.count() >= 2
}

fn is_code_line(line: &str) -> bool {
    const STARTS: [&str; 20] = [
        "fn ",
        "pub ",
        "let ",
        "use ",
        "impl ",
        "def ",
        "class ",
        "import ",
        "from ",
        "return ",
        "function ",
        "const ",
        "var ",
        "if (",
        "for (",
        "#include",
        "package ",
        "func ",
        "//",
        "SELECT ",
    ];
    let line = line.trim();
    line.ends_with(['{', '}', ';']) || STARTS.iter().any(|start| line.starts_with(start))
}
