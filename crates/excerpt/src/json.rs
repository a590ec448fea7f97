//! Scans JSON around a cut.

use serde::de::IgnoredAny;

/// Returns the position after the quote that ends a string; none if it has no end. `at` is inside it.
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// An array or object that is open at a position.
#[derive(Debug)]
struct Open {
    is_object: bool,
    /// The number of its own commas so far.
    commas: usize,
    /// The range of the current key, including its quotes.
    key: (usize, usize),
}

/// The arrays and objects that are open at the end of a beginning of JSON.
struct Beginning {
    open: Vec<Open>,
    in_string: bool,
}

fn read_beginning(text: &str) -> Beginning {
    let bytes = text.as_bytes();
    let mut read = Beginning {
        open: Vec::new(),
        in_string: false,
    };
    let (open, mut at) = (&mut read.open, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let Some(end) = string_end(bytes, at) else {
                    read.in_string = true;
                    return read;
                };
                let is_key = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace());
                if is_key == Some(&b':')
                    && let Some(last) = open.last_mut()
                {
                    last.key = (at - 1, end);
                }
                at = end;
            }
            b'{' | b'[' => open.push(Open {
                is_object: *byte == b'{',
                commas: 0,
                key: (0, 0),
            }),
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(last) = open.last_mut() {
                    last.commas += 1;
                }
            }
            _ => {}
        }
    }
    read
}

/// Completes a beginning of JSON so that it is valid JSON again; none if it was cut within a key, a
/// number or the like.
pub fn close(beginning: &str) -> Option<String> {
    let read = read_beginning(beginning);
    let mut text = if read.in_string {
        format!("{beginning}…\"")
    } else {
        let whole = beginning.trim_end();
        whole.strip_suffix(',').unwrap_or(whole).to_owned()
    };
    let ends = read.open.iter().rev();
    text.extend(ends.map(|open| if open.is_object { '}' } else { ']' }));
    serde_json::from_str::<IgnoredAny>(&text).ok()?;
    Some(text)
}

/// The position of a cut in JSON: in the array or object with the most items of those that are open.
#[derive(Debug, PartialEq, Eq)]
pub struct CutPosition {
    /// A JSON pointer; empty for the whole.
    pub pointer: String,
    /// Items before the cut.
    pub shown: usize,
    /// Items in all.
    pub items: usize,
}

/// Returns the position of a cut in JSON; `None` if nothing is open there.
pub fn locate(text: &str, cut: usize) -> Option<CutPosition> {
    let read = read_beginning(&text[..cut]);
    let totals = totals(&text.as_bytes()[cut..], &read);
    let open = read.open;
    let widest = (0..open.len()).rev().max_by_key(|at| totals[*at])?;
    let steps = open[..widest].iter().map(|it| step(text, it));
    Some(CutPosition {
        pointer: steps.collect(),
        shown: open[widest].commas,
        items: totals[widest],
    })
}

/// Returns `/key` or `/3`, a step of a JSON pointer.
fn step(text: &str, open: &Open) -> String {
    if !open.is_object {
        return format!("/{}", open.commas);
    }
    let key = &text[open.key.0..open.key.1];
    let key: String = serde_json::from_str(key).unwrap_or_default();
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Counts all items of each open array or object.
fn totals(rest: &[u8], read: &Beginning) -> Vec<usize> {
    let mut totals: Vec<usize> = read.open.iter().map(|it| it.commas + 1).collect();
    let (mut still_open, mut depth) = (totals.len(), totals.len());
    let mut at = if read.in_string {
        string_end(rest, 0).unwrap_or(rest.len())
    } else {
        0
    };
    while let Some(byte) = rest.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(rest, at).unwrap_or(rest.len()),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                still_open = still_open.min(depth);
            }
            b',' if depth == still_open && depth > 0 => totals[depth - 1] += 1,
            _ => {}
        }
    }
    totals
}

/// Returns the last position at or before `at` that is not within an escape of a JSON string.
pub(crate) fn outside_escape(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    for back in 1..=6.min(at) {
        let start = at - back;
        if bytes[start] != b'\\' || !is_odd(&bytes[..=start]) {
            continue;
        }
        let is_long = bytes.get(start + 1) == Some(&b'u');
        let end = start + if is_long { 6 } else { 2 };
        return outside_pair(text, if end > at { start } else { at });
    }
    at
}

/// Returns a position that is not between the two escapes of one character.
fn outside_pair(text: &str, at: usize) -> usize {
    let is_half = |from: usize, digits: &[u8]| {
        let escape = text.as_bytes().get(from..from + 4);
        escape.is_some_and(|it| {
            it.starts_with(b"\\u")
                && it[2].eq_ignore_ascii_case(&b'd')
                && digits.contains(&it[3].to_ascii_lowercase())
        })
    };
    let is_escape = |from: usize| is_odd(&text.as_bytes()[..=from]);
    let pair = at >= 6 && is_half(at - 6, b"89ab") && is_half(at, b"cdef") && is_escape(at - 6);
    if pair { at - 6 } else { at }
}

/// Returns true if the run of backslashes at the end has an odd length: its last one begins an escape.
fn is_odd(bytes: &[u8]) -> bool {
    let run = bytes.iter().rev().take_while(|byte| **byte == b'\\');
    run.count() % 2 == 1
}
