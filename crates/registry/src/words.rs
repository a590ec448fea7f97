//! Text to words: the same for tools and for queries.

use tantivy::tokenizer::{Language, RawTokenizer, Stemmer, TextAnalyzer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::limits::WORD_CHARS_MAX;

mod operation;
mod parsed_query;
pub(crate) mod vocabulary;

pub(crate) use operation::Operations;
pub(crate) use parsed_query::{ParsedQuery, QueryWord, QueryWords};

/// One word, or the joined form of an identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Lower case, accents folded.
    pub(crate) exact: String,
    pub(crate) stem: String,
    /// `createissue` of `create_issue`: beside its parts, never instead of them.
    pub(crate) is_joined: bool,
}

/// Lower case, without the punctuation around it.
pub(crate) fn bare(token: &str) -> String {
    let word = token.trim_matches(|c: char| !c.is_alphanumeric());
    word.to_lowercase()
}

/// The words of a text in their order, identifiers as their parts and joined.
pub(crate) fn split(text: &str) -> Vec<Word> {
    let mut stemmer = Stem::new();
    let mut words = Vec::new();
    for run in runs(text) {
        let parts = parts(&run);
        if let [_, _, ..] = parts.as_slice() {
            let exact: String = parts.concat();
            if exact.chars().count() <= WORD_CHARS_MAX {
                words.push(Word {
                    stem: exact.clone(),
                    exact,
                    is_joined: true,
                });
            }
        }
        for exact in parts.into_iter().flat_map(|part| bigrams(&part)) {
            let stem = stemmer.of(&exact);
            words.push(Word {
                exact,
                stem,
                is_joined: false,
            });
        }
    }
    words
}

pub(crate) fn stems(text: &str) -> Vec<String> {
    split(text)
        .into_iter()
        .filter(|word| !word.is_joined)
        .map(|word| word.stem)
        .collect()
}

/// Runs of letters, digits and the signs that bind an identifier; accents are gone, case is not.
fn runs(text: &str) -> Vec<String> {
    let plain: String = text.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let plain = plain.replace(['\'', '\u{2019}'], "");
    plain
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .filter(|run| run.chars().any(char::is_alphanumeric))
        .map(str::to_owned)
        .collect()
}

/// The lower-cased parts of one run: cut at `_` and `-`, at camel humps, between letters and
/// digits, between scripts.
fn parts(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    let mut parts = Vec::new();
    let mut part = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1).copied();
        if before.is_some_and(|before| is_cut(before, c, after)) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c.is_alphanumeric() && part.len() < WORD_CHARS_MAX * 4 {
            part.extend(c.to_lowercase());
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

fn is_cut(before: char, c: char, after: Option<char>) -> bool {
    let hump = before.is_lowercase() && c.is_uppercase();
    let acronym_ends =
        before.is_uppercase() && c.is_uppercase() && after.is_some_and(char::is_lowercase);
    let digits = before.is_numeric() != c.is_numeric();
    let script = is_cjk(before) != is_cjk(c);
    !c.is_alphanumeric() || !before.is_alphanumeric() || hump || acronym_ends || digits || script
}

/// Chinese, Japanese and Korean write no spaces: every two neighbours are a word.
fn bigrams(part: &str) -> Vec<String> {
    let chars: Vec<char> = part.chars().collect();
    if !chars.first().copied().is_some_and(is_cjk) {
        return vec![chars.into_iter().take(WORD_CHARS_MAX).collect()];
    }
    match chars.as_slice() {
        [one] => vec![one.to_string()],
        many => many.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}

/// This is a letter of a script that writes without spaces. Korean syllables arrive
/// taken apart by the normal form, so their parts count too.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Tantivy's English stemmer, word by word.
struct Stem(TextAnalyzer);

impl Stem {
    fn new() -> Self {
        let stemmer = Stemmer::new(Language::English);
        Self(
            TextAnalyzer::builder(RawTokenizer::default())
                .filter(stemmer)
                .build(),
        )
    }

    fn of(&mut self, word: &str) -> String {
        let mut stream = self.0.token_stream(word);
        if stream.advance() {
            std::mem::take(&mut stream.token_mut().text)
        } else {
            word.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let words: Vec<String> = split(text).into_iter().map(|word| word.exact).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn identifiers_are_cut_and_kept_joined() {
        check("create_issue", "createissue create issue");
        check("createIssue", "createissue create issue");
        check("HTTPServer2go", "httpserver2go http server 2 go");
        check("get-file.contents", "getfile get file contents");
        check("don't", "dont");
        check("_a__b_", "ab a b");
    }

    #[test]
    fn accents_are_folded_and_chinese_is_cut_in_pairs() {
        check("Café Ångström", "cafe angstrom");
        check("搜索关键词", "搜索 索关 关键 键词");
        check("用bing搜", "用bing搜 用 bing 搜");
        check("🎉 \u{0} (.*)[", "");
    }

    #[test]
    fn stems_bring_forms_of_a_word_together() {
        assert_eq!(stems("emails"), stems("email"));
        assert_eq!(stems("creating files"), stems("create file"));
    }

    proptest! {
        #[test]
        fn no_text_makes_an_empty_or_endless_word(text in "\\PC{0,200}") {
            for word in split(&text) {
                prop_assert!(!word.exact.is_empty());
                prop_assert!(word.exact.chars().count() <= WORD_CHARS_MAX * 2);
            }
        }
    }
}
