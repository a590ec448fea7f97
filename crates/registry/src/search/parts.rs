//! A request that wants several things, cut into one text a thing.
//!
//! "Fetch the page, summarise it and mail it to the team" is three parts. A part begins with what
//! is to be done and says to what; what merely shapes the answer ("and tell me how large they
//! are"), lists of nouns and sentences that only set the scene are left with their neighbours.

use crate::limits::{PARTS_MAX, PIECES_MAX};
use crate::search::vocabulary::{VOCABULARY, is_general_verb, is_request_word};
use crate::words::{self, is_cjk};

/// The parts of a request in their order; of a request for one thing, nothing.
pub(crate) fn parts(text: &str) -> Vec<String> {
    let text = space_out(text);
    let pieces = sentences(&text).flat_map(clauses).take(PIECES_MAX);
    let mut parts = join_pieces(pieces);
    parts.truncate(PARTS_MAX);
    if parts.len() < 2 {
        parts.clear();
    }
    parts
}

/// A stretch of a request that may be a part.
#[derive(Debug)]
struct Piece<'a> {
    text: &'a str,
    /// It says what to do, and does not only shape the answer.
    acts: bool,
    /// It says that it comes after something else.
    follows: bool,
    /// It names something besides a general verb, so it can be searched by itself.
    says_enough: bool,
}

impl<'a> Piece<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.trim_matches(|c: char| c.is_whitespace() || is_comma(c));
        let words: Vec<String> = tokens(text).map(|(_, word)| bare(word)).collect();
        let verb = first_verb(&words);
        let lead = &words[..verb.unwrap_or(usize::from(!words.is_empty()))];
        Self {
            text,
            acts: verb.is_some_and(|at| !VOCABULARY.answer_verbs.contains(&words[at]))
                || text.starts_with(is_cjk),
            follows: lead.iter().any(|word| is_sequence(word)),
            says_enough: says_enough(text),
        }
    }
}

fn says_enough(text: &str) -> bool {
    // A path or an address is what a tool would be called with.
    let spoken = tokens(text).filter(|(_, word)| !word.contains(['/', '\\', '@']));
    let words = spoken.flat_map(|(_, word)| words::split(word));
    let telling = words.filter(|word| !word.is_joined && !is_empty_word(&word.exact));
    let (mut count, mut special) = (0, false);
    for word in telling {
        count += 1;
        special |= !is_general_verb(&word.exact);
    }
    count >= 2 || special
}

/// Pieces that act and say enough begin a part; the others belong to the part before them, or to
/// the first.
fn join_pieces<'a>(pieces: impl Iterator<Item = Piece<'a>>) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    // `acts`: the last part names an action. `enough`: it is specific enough.
    let (mut acts, mut enough) = (false, false);
    for piece in pieces {
        let begins = piece.says_enough && enough && (acts && piece.acts || piece.follows);
        match parts.last_mut() {
            Some(part) if !begins => {
                part.push(' ');
                part.push_str(piece.text);
                acts |= piece.acts;
                enough |= piece.says_enough;
            }
            _ => {
                parts.push(piece.text.to_owned());
                (acts, enough) = (piece.acts, piece.says_enough);
            }
        }
    }
    parts
}

/// Cut after a full stop, a question mark, an end of line; not inside of names and numbers.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(sentence_end(rest).unwrap_or(rest.len()));
            rest = after;
            if sentence.chars().any(char::is_alphanumeric) {
                return Some(sentence);
            }
        }
        None
    })
}

fn sentence_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '\n' | ';' | '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{ff1b}' => true,
            '.' | '!' | '?' => next.is_some_and(char::is_whitespace),
            _ => false,
        };
        if ends {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// Cut where a comma, `and` or a word of sequence stands before something to do.
fn clauses(sentence: &str) -> Vec<Piece<'_>> {
    let tokens: Vec<(usize, &str)> = tokens(sentence).collect();
    let words: Vec<String> = tokens.iter().map(|(_, word)| bare(word)).collect();
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in 1..tokens.len() {
        let is_joint =
            is_sequence(&words[at]) || words[at] == "and" || tokens[at - 1].1.ends_with(is_comma);
        let is_begun = words[from..at].iter().all(|word| is_lead(word));
        if is_joint && !is_begun && begins(&words[at..]) && !is_listed(&tokens[at..]) {
            pieces.push(Piece::of(&sentence[tokens[from].0..tokens[at].0]));
            from = at;
        }
    }
    if let Some((begin, _)) = tokens.get(from) {
        pieces.push(Piece::of(&sentence[*begin..]));
    }
    pieces
}

/// Words with their places.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    let pieces = text.split_inclusive(char::is_whitespace).map(move |piece| {
        let at = from;
        from += piece.len();
        (at, piece.trim_end())
    });
    pieces.filter(|(_, word)| !word.is_empty())
}

/// A space before every word of sequence of scripts that write without.
fn space_out(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let space = |text: String, marker: &String| text.replace(marker, &format!(" {marker}"));
    let markers = VOCABULARY.unspaced_sequence.iter();
    markers.fold(text.to_owned(), space)
}

/// Lower case, without the signs around it.
fn bare(word: &str) -> String {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.to_lowercase()
}

fn is_comma(c: char) -> bool {
    matches!(c, ',' | '\u{ff0c}' | '\u{3001}')
}

/// One of several verbs with one object: `insert, update, or delete records`.
fn is_listed(tokens: &[(usize, &str)]) -> bool {
    let next = tokens.get(1).map(|(_, word)| bare(word));
    tokens[0].1.ends_with(is_comma) || next.is_some_and(|word| word == "or" || word == "and")
}

/// A verb, or in a language whose verbs we do not know a word of sequence.
fn begins(words: &[String]) -> bool {
    let is_foreign =
        |word: &String| is_sequence(word) && !VOCABULARY.english_sequence.contains(word);
    words.first().is_some_and(is_foreign) || first_verb(words).is_some()
}

/// The place of a clause's verb, behind words of courtesy and order.
fn first_verb(words: &[String]) -> Option<usize> {
    let at = words.iter().position(|word| !is_lead(word))?;
    is_verb(&words[at..]).then_some(at)
}

/// A verb, where it can also be a thing only before what it is done to: `email the team`.
fn is_verb(words: &[String]) -> bool {
    let Some(first) = words.first().map(String::as_str) else {
        return false;
    };
    let next = words.get(1).map_or("", String::as_str);
    let is_done_to = VOCABULARY.object_starts.contains(next);
    VOCABULARY.verbs.contains(first)
        || VOCABULARY.answer_verbs.contains(first)
        || is_done_to && VOCABULARY.noun_verbs.contains(first)
}

fn is_lead(word: &str) -> bool {
    is_sequence(word) || VOCABULARY.leads.contains(word)
}

fn is_sequence(word: &str) -> bool {
    let marked = |marker: &String| word.starts_with(marker);
    VOCABULARY.english_sequence.contains(word)
        || VOCABULARY.other_sequence.contains(word)
        || VOCABULARY.unspaced_sequence.iter().any(marked)
}

/// Says nothing about a tool, or stands for what was named before.
fn is_empty_word(word: &str) -> bool {
    is_request_word(word) || is_lead(word) || VOCABULARY.object_starts.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(parts(text), expected, "{text}");
    }

    #[test]
    fn a_request_for_several_things_is_cut_where_the_next_begins() {
        check(
            "Fetch the page, summarise it and mail it to the team",
            &["Fetch the page", "summarise it", "and mail it to the team"],
        );
        check(
            "Please read sales.csv, plot it by month, and then upload the chart to drive",
            &[
                "Please read sales.csv",
                "plot it by month",
                "and then upload the chart to drive",
            ],
        );
        check(
            "Find the newest release. Post its notes to the channel.",
            &["Find the newest release.", "Post its notes to the channel."],
        );
        check("下载报告，然后发送邮件", &["下载报告", "然后发送邮件"]);
        check(
            "Suche die Rechnung, dann schicke sie",
            &["Suche die Rechnung", "dann schicke sie"],
        );
    }

    #[test]
    fn a_request_for_one_thing_is_left_whole() {
        for text in [
            "create issue",
            "find and replace text in a file",
            "insert, update, or delete records in the database",
            "list files and folders",
            "list a folder's contents and tell me how large each item is",
            "open several documents at once and return all of their contents together",
            "search messages, email addresses and file names",
            "I'm planning a trip to Rome next week. Can you check the weather there?",
            "compare two branches and show how they differ",
            "book the train to Rome on next Monday",
            "research Mars and save it to /tmp/mars.md",
            "",
            ", and then",
        ] {
            check(text, &[]);
        }
    }
}
