//! Requests in other languages, word for word as tool definitions would say it.
//!
//! Definitions are English, and so are the encoder and the stemmer. A request whose words stand in one
//! of the dictionaries (`registry/languages`) more often than in English is read by that
//! dictionary; names, numbers and addresses stay as they are.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::limits::QUERY_CHARS_MAX;
use crate::search::asked::is_value;
use crate::search::vocabulary::VOCABULARY;
use crate::words::Stem;

use tantivy::tokenizer::Language as Snowball;

/// A language that we have a dictionary of.
#[derive(Debug)]
struct Language {
    /// `WORD<TAB>ENGLISH` a line, sorted.
    source: &'static str,
    /// Present if its words are separated by spaces.
    stemmer: Option<Snowball>,
    /// True if its compounds are written as one word.
    compounds: bool,
    by_stem: OnceLock<HashMap<String, &'static str>>,
}

impl Language {
    const fn new(source: &'static str, stemmer: Option<Snowball>) -> Self {
        Self {
            source,
            stemmer,
            compounds: matches!(stemmer, Some(Snowball::German)),
            by_stem: OnceLock::new(),
        }
    }

    /// Returns the translation of a word; empty if the word has only a grammatical function.
    fn exact(&self, word: &str) -> Option<&'static str> {
        let (mut low, mut high) = (0, self.source.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let begin = self.source.as_bytes()[..middle]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let line = self.source[begin..].lines().next().unwrap_or_default();
            let (entry, english) = line.split_once('\t').unwrap_or((line, ""));
            match entry.cmp(word) {
                std::cmp::Ordering::Equal => return Some(english),
                std::cmp::Ordering::Less => low = (begin + line.len() + 1).max(middle + 1),
                std::cmp::Ordering::Greater => high = begin,
            }
        }
        None
    }

    /// By the word itself, else by its stem, else by its two parts.
    fn meaning(&self, word: &str) -> Option<String> {
        let own = self.exact(word).or_else(|| self.inflected(word));
        own.map(str::to_owned).or_else(|| self.of_parts(word))
    }

    fn inflected(&self, word: &str) -> Option<&'static str> {
        let by_stem = self.by_stem.get_or_init(|| {
            let mut by_stem: HashMap<String, &str> = HashMap::new();
            for line in self.source.lines() {
                if let Some((entry, english)) = line.split_once('\t') {
                    let known = by_stem.entry(self.stem(entry)).or_insert(english);
                    if known.is_empty() {
                        *known = english;
                    }
                }
            }
            by_stem
        });
        by_stem.get(&self.stem(word)).copied()
    }

    fn stem(&self, phrase: &str) -> String {
        let Some(language) = self.stemmer else {
            return phrase.to_owned();
        };
        let mut stemmer = Stem::of_language(language);
        let stems: Vec<String> = phrase.split(' ').map(|word| stemmer.of(word)).collect();
        stems.join(" ")
    }

    /// `Rechnungsnummer`: the longest second word that is known behind a known first one.
    fn of_parts(&self, word: &str) -> Option<String> {
        if !self.compounds || word.chars().count() < 2 * PART_CHARS_MIN {
            return None;
        }
        let cuts = word.char_indices().map(|(at, _)| at);
        let cuts = cuts.skip(PART_CHARS_MIN).filter(|at| {
            let rest = &word[*at..];
            rest.chars().count() >= PART_CHARS_MIN
        });
        cuts.into_iter().find_map(|at| {
            let (first, second) = word.split_at(at);
            let plain = first.strip_suffix("es").or_else(|| first.strip_suffix('s'));
            let first = self.exact(first).or_else(|| self.exact(plain?))?;
            let second = self.exact(second).or_else(|| self.inflected(second))?;
            let is_said = !first.is_empty() && !second.is_empty();
            is_said.then(|| format!("{first} {second}"))
        })
    }
}

/// Of each word of a compound, in letters.
const PART_CHARS_MIN: usize = 4;

/// Words of an entry at most.
const PHRASE_WORDS_MAX: usize = 3;

/// Letters of an entry of a script without spaces at most.
const RUN_CHARS_MAX: usize = 10;

macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("../../../../registry/languages/", $name, ".tsv"))
    };
}

static LATIN: [Language; 4] = [
    Language::new(source!("de"), Some(Snowball::German)),
    Language::new(source!("es"), Some(Snowball::Spanish)),
    Language::new(source!("fr"), Some(Snowball::French)),
    Language::new(source!("pt"), Some(Snowball::Portuguese)),
];
static RUSSIAN: Language = Language::new(source!("ru"), Some(Snowball::Russian));
static CHINESE: Language = Language::new(source!("zh"), None);
static JAPANESE: Language = Language::new(source!("ja"), None);

/// The request in English, word for word; none where it is English, or in a language that we have
/// no dictionary of. `is_known`: a word stands in the catalogue.
pub(super) fn to_english(text: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let text = printable::first_chars(text, QUERY_CHARS_MAX);
    if text.starts_with("select:") {
        return None;
    }
    let language = language_of(text, is_known)?;
    let said = match language.stemmer {
        Some(_) => by_words(language, text),
        None => by_runs(language, text),
    };
    said.chars().any(char::is_alphanumeric).then_some(said)
}

fn language_of(text: &str, is_known: impl Fn(&str) -> bool) -> Option<&'static Language> {
    let (mut kana, mut han, mut cyrillic, mut latin) = (0, 0, 0, 0);
    let spoken = text.split_whitespace().filter(|piece| !is_argument(piece));
    for c in spoken.flat_map(str::chars) {
        match c {
            '\u{3040}'..='\u{30ff}' => kana += 1,
            '\u{3400}'..='\u{9fff}' => han += 1,
            '\u{0400}'..='\u{04ff}' => cyrillic += 1,
            c if c.is_alphabetic() => latin += 1,
            _ => {}
        }
    }
    // A letter of a script that writes words with few letters counts as much as four Latin ones.
    if 4 * (kana + han) > latin {
        return Some(if kana > 0 { &JAPANESE } else { &CHINESE });
    }
    if cyrillic > latin {
        return Some(&RUSSIAN);
    }
    let words: Vec<String> = text
        .split_whitespace()
        .enumerate()
        .filter(|(place, piece)| !is_value(piece, *place))
        .flat_map(|(_, piece)| letters(piece))
        .map(str::to_lowercase)
        .collect();
    let is_letter = |word: &String| word.len() == 1 && word != "a" && word != "i";
    let english = words
        .iter()
        .filter(|word| is_english(word) || !is_letter(word) && is_known(word));
    let english = english.count();
    if 4 * english >= 3 * words.len() {
        return None;
    }
    let of = |language: &'static Language| {
        let held = words.iter().filter(|word| language.exact(word).is_some());
        (held.count(), language)
    };
    let found = LATIN.iter().map(of).max_by_key(|(held, _)| *held)?;
    let (held, language) = found;
    (held > english && 2 * held >= words.len()).then_some(language)
}

fn is_english(word: &str) -> bool {
    VOCABULARY.request_words.contains(word)
        || VOCABULARY.general_verbs.contains(word)
        || VOCABULARY.leads.contains(word)
        || VOCABULARY.object_starts.contains(word)
}

fn letters(piece: &str) -> impl Iterator<Item = &str> {
    let words = piece.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// Of a language with spaces: the longest phrase that is known, else the word as it is.
fn by_words(language: &Language, text: &str) -> String {
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let mut said: Vec<String> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        if is_argument(pieces[at]) {
            said.push(pieces[at].to_owned());
            at += 1;
            continue;
        }
        let longest = (2..=PHRASE_WORDS_MAX.min(pieces.len() - at)).rev();
        let phrase = longest.into_iter().find_map(|count| {
            let phrase: Vec<String> = pieces[at..at + count].iter().map(|it| bare(it)).collect();
            let phrase = phrase.join(" ");
            let english = language.exact(&phrase);
            let english = english.or_else(|| language.inflected(&phrase))?;
            Some((count, english))
        });
        if let Some((count, english)) = phrase {
            push(&mut said, english, pieces[at + count - 1]);
            at += count;
            continue;
        }
        for word in letters(pieces[at]) {
            let lower = word.to_lowercase();
            let meaning = language.meaning(&lower);
            let is_latin = word.chars().all(|c| c < '\u{0250}');
            let meaning = meaning.unwrap_or_else(|| {
                let is_name = is_latin && lower.chars().count() > 1;
                if is_name {
                    word.to_owned()
                } else {
                    String::new()
                }
            });
            push(&mut said, &meaning, "");
        }
        push(&mut said, "", pieces[at]);
        at += 1;
    }
    said.join(" ")
}

/// An address, a number, an identifier: said as it is in every language.
fn is_argument(piece: &str) -> bool {
    let is_file = |piece: &str| {
        let name = piece.trim_end_matches(['.', ',', '?', '!', ';']);
        name.is_ascii() && name.contains('.')
    };
    piece.contains(['@', '/', '\\', '_', '#'])
        || piece.is_ascii() && piece.chars().any(|c| c.is_ascii_digit())
        || is_file(piece)
}

/// Adds what a word means, and the sign behind it, which may end a sentence.
fn push(said: &mut Vec<String>, english: &str, piece: &str) {
    if !english.is_empty() {
        said.push(english.to_owned());
    }
    let end = piece
        .chars()
        .last()
        .filter(|c| matches!(c, '.' | '?' | '!' | ',' | ';'));
    if let (Some(end), Some(last)) = (end, said.last_mut())
        && !last.ends_with(['.', '?', '!', ',', ';'])
    {
        last.push(end);
    }
}

fn bare(piece: &str) -> String {
    let word = piece.trim_matches(|c: char| !c.is_alphanumeric());
    word.to_lowercase()
}

/// Of a script without spaces: the longest entry at each place; what is not known of it is left
/// out, other scripts stay.
fn by_runs(language: &Language, text: &str) -> String {
    let lower = text.to_lowercase();
    let mut said = String::new();
    let mut rest = lower.as_str();
    while let Some(c) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.take(RUN_CHARS_MAX).collect();
        let found = ends.iter().rev().find_map(|end| {
            let english = language.exact(&rest[..*end])?;
            Some((*end, english))
        });
        // `in` of `find` is no word of its own.
        let found = found.filter(|(end, _)| !c.is_ascii() || !goes_on(&said, &rest[*end..]));
        if let Some((end, english)) = found {
            said.push(' ');
            said.push_str(english);
            said.push(' ');
            rest = &rest[end..];
            continue;
        }
        match c {
            '\u{3002}' | '\u{ff01}' | '\u{ff1f}' => said.push_str(". "),
            '\u{ff0c}' | '\u{3001}' => said.push_str(", "),
            c if (c as u32) < 0x2e80 => said.push(c),
            _ => said.push(' '),
        }
        rest = &rest[c.len_utf8()..];
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn goes_on(before: &str, after: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    before.ends_with(is_letter) || after.starts_with(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: [&str; 8] = [
        "create",
        "file",
        "repository",
        "issue",
        "table",
        "image",
        "port",
        "note",
    ];

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let english = to_english(text, |word| CATALOGUE.contains(&word));
        assert_eq!(english.as_deref(), expected, "{text}");
    }

    #[test]
    fn english_stays_english() {
        for text in [
            "create issue",
            "Take a note of the pin for the office door",
            "die file",
            "frobnicate",
            "list pods",
            "",
            "12 + 30",
            "Café menu image",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn other_languages_are_said_word_for_word_and_arguments_stay() {
        check(
            "Lösche die Datei /tmp/x.txt",
            Some("delete remove file /tmp/x.txt"),
        );
        check("Rechnungsnummer suchen", Some("invoice number search find"));
        check(
            "Supprime le fichier notes.md",
            Some("delete remove file notes.md"),
        );
        check(
            "Envía un correo a ana@example.com",
            Some("send email mail ana@example.com"),
        );
        check(
            "Перенеси invoice.pdf в папку /archive",
            Some("move invoice.pdf folder directory /archive"),
        );
        check("删除这个文件", Some("delete remove file"));
        check("ファイルを削除して", Some("file delete remove"));
    }

    #[test]
    fn every_dictionary_can_be_searched() {
        for language in LATIN.iter().chain([&RUSSIAN, &CHINESE, &JAPANESE]) {
            let mut before = "";
            for line in language.source.lines() {
                let (entry, english) = line.split_once('\t').unwrap();
                assert!(entry > before, "{entry} stands behind {before}");
                assert_eq!(language.exact(entry), Some(english), "{entry}");
                before = entry;
            }
            assert_eq!(language.exact("zzzz no such word"), None);
            assert_eq!(language.exact(""), None);
        }
    }
}
