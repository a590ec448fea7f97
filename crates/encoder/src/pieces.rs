//! Splits text into the word pieces of the model, as BERT's uncased models do.

use rustc_hash::{FxBuildHasher, FxHashMap};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The maximum length of a word that is looked up; a longer one counts as unknown.
const WORD_CHARS_MAX: usize = 100;

pub(crate) struct Pieces {
    ids: FxHashMap<&'static str, u32>,
    begin: u32,
    end: u32,
    unknown: u32,
}

impl Pieces {
    /// `vocabulary` has one piece per line; its id is the line number.
    pub(crate) fn of(vocabulary: &'static str) -> Option<Self> {
        let count = vocabulary.lines().count();
        let mut ids = FxHashMap::with_capacity_and_hasher(count, FxBuildHasher);
        ids.extend(vocabulary.lines().zip(0..));
        Some(Self {
            begin: *ids.get("[CLS]")?,
            end: *ids.get("[SEP]")?,
            unknown: *ids.get("[UNK]")?,
            ids,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the ids of a text's pieces between the two end marks, `most` ids in total.
    pub(crate) fn ids(&self, text: &str, most: usize) -> Vec<u32> {
        let mut ids = vec![self.begin];
        for word in words(text) {
            self.add_word(&word, &mut ids);
            if ids.len() >= most {
                break;
            }
        }
        ids.truncate(most - 1);
        ids.push(self.end);
        ids
    }

    /// Adds the pieces of a word: always the longest known beginning of the rest. If a part is unknown,
    /// the whole word is.
    fn add_word(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word.to_owned();
        let mut is_known = word.chars().count() <= WORD_CHARS_MAX;
        while is_known && !rest.is_empty() && rest != CONTINUED {
            // After the first piece, `rest` begins with the mark, which alone is not a piece.
            let least = if ids.len() > before {
                CONTINUED.len()
            } else {
                0
            };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let mut ends = ends.rev().filter(|end| *end > least);
            let piece = ends.find_map(|end| Some((end, *self.ids.get(&rest[..end])?)));
            match piece {
                Some((end, id)) => {
                    ids.push(id);
                    rest = format!("{CONTINUED}{}", &rest[end..]);
                }
                None => is_known = false,
            }
        }
        if !is_known {
            ids.truncate(before);
            ids.push(self.unknown);
        }
    }
}

/// Marks a piece that does not begin its word.
const CONTINUED: &str = "##";

/// Splits a text into words in lower case without accents; signs and Chinese characters are separate
/// words.
fn words(text: &str) -> Vec<String> {
    let plain = text.nfd().filter(|c| !is_combining_mark(*c));
    let mut spaced = String::with_capacity(text.len());
    for c in plain.flat_map(char::to_lowercase) {
        if is_invisible(c) {
            continue;
        }
        if stands_alone(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn is_invisible(c: char) -> bool {
    let is_format =
        matches!(u32::from(c), 0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFEFF);
    is_format || c == char::REPLACEMENT_CHARACTER || c.is_control() && !c.is_whitespace()
}

fn stands_alone(c: char) -> bool {
    let is_chinese = matches!(u32::from(c),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x2_CEAF | 0x2_F800..=0x2_FA1F);
    // Punctuation outside ASCII: general, CJK and full-width.
    let is_sign = matches!(u32::from(c),
        0xA1 | 0xA7 | 0xAB | 0xB6 | 0xB7 | 0xBB | 0xBF | 0x2010..=0x2027 | 0x2030..=0x205E
        | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301F
        | 0xFF01..=0xFF0F | 0xFF1A..=0xFF20 | 0xFF3B..=0xFF3D | 0xFF5B..=0xFF65);
    c.is_ascii_punctuation() || is_chinese || is_sign
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces that the model's published tokenizer gives (`tokenizers` 0.23). Our vocabulary has no others.
    #[test]
    fn pieces_are_those_of_the_published_tokenizer() {
        let pieces = Pieces::of(crate::VOCABULARY).unwrap();
        let vocabulary: Vec<&str> = crate::VOCABULARY.lines().collect();
        for (text, expected) in EXPECTED {
            let ids = pieces.ids(text, 256);
            let found: Vec<&str> = ids.iter().map(|id| vocabulary[*id as usize]).collect();
            assert_eq!(found.join(" "), *expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_ends_where_the_model_does() {
        let pieces = Pieces::of(crate::VOCABULARY).unwrap();
        let ids = pieces.ids(&"word ".repeat(1_000), 256);
        assert_eq!(ids.len(), 256);
        assert_eq!(ids.last(), Some(&pieces.end));
    }

    const EXPECTED: &[(&str, &str)] = &[
        (
            "Tell me which files are modified",
            "[CLS] tell me which files are modified [SEP]",
        ),
        (
            "create_issue(owner: string)",
            "[CLS] create _ issue ( owner : string ) [SEP]",
        ),
        (
            "Führe Übung «naïve» café—now…",
            "[CLS] fu ##hre u ##bu ##ng « naive » cafe — now … [SEP]",
        ),
        (
            "东京的天气 2026",
            "[CLS] [UNK] 京 的 天 [UNK] 202 ##6 [SEP]",
        ),
        ("カメラ を 見る", "[CLS] カ ##メ ##ラ を 見 る [SEP]"),
        (
            "don't e-mail k8s@PRs/42%",
            "[CLS] don ' t e - mail k ##8 ##s @ pr ##s / 42 % [SEP]",
        ),
        (
            "supercalifragilistic \u{200b}\u{7}x",
            "[CLS] super ##cal ##if ##rag ##ilis ##tic x [SEP]",
        ),
        ("🦀 rust", "[CLS] [UNK] rust [SEP]"),
        ("list x🦀 file☃", "[CLS] list [UNK] [UNK] [SEP]"),
    ];
}
