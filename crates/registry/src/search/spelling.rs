//! Finds words of the catalogue that resemble a word of a query.

use crate::limits::SPELLINGS_MAX;

/// Returns words within the permitted edit distance of `asked`: one from five letters on, two from
/// eight.
pub(crate) fn slips<'a>(asked: &str, vocabulary: &'a [String]) -> Vec<&'a str> {
    let asked: Vec<char> = asked.chars().collect();
    let Some(slips_max) = slips_max(&asked) else {
        return Vec::new();
    };
    let mask = letters(asked.iter().copied());
    let mut found: Vec<(usize, &str)> = vocabulary
        .iter()
        .filter(|word| word.len().abs_diff(asked.len()) <= slips_max)
        .filter(|word| (letters(word.chars()) ^ mask).count_ones() as usize <= 2 * slips_max)
        .filter_map(|word| {
            let chars: Vec<char> = word.chars().collect();
            let slips = distance(&asked, &chars);
            (slips <= slips_max).then_some((slips, word.as_str()))
        })
        .collect();
    found.sort_unstable();
    let least = found.first().map_or(0, |(slips, _)| *slips);
    let found = found.into_iter().take_while(|(slips, _)| *slips == least);
    found.map(|(_, word)| word).take(SPELLINGS_MAX).collect()
}

/// Returns stems of the verbs that a noun may come from, if the stemmer separates them (`creation`
/// of `create`).
pub(crate) fn relatives(stem: &str) -> impl Iterator<Item = &str> {
    let bare = NOUN_ENDINGS
        .iter()
        .filter_map(|ending| stem.strip_suffix(ending));
    bare.filter(|bare| bare.chars().count() >= RELATIVE_CHARS_MIN)
}

/// Returns words that begin with `asked`, shortest first.
pub(crate) fn continuations<'a>(asked: &str, vocabulary: &'a [String]) -> Vec<&'a str> {
    if asked.chars().count() < PREFIX_CHARS_MIN {
        return Vec::new();
    }
    let from = vocabulary.partition_point(|word| word.as_str() < asked);
    let words = vocabulary[from..]
        .iter()
        .take_while(|word| word.starts_with(asked));
    let mut found: Vec<&str> = words.map(String::as_str).collect();
    found.sort_by_key(|word| (word.len(), *word));
    found.truncate(SPELLINGS_MAX);
    found
}

fn slips_max(asked: &[char]) -> Option<usize> {
    let is_word = asked.iter().all(char::is_ascii_lowercase);
    match asked.len() {
        5..=7 if is_word => Some(1),
        8.. if is_word => Some(2),
        _ => None,
    }
}

/// Returns a bit set of letters, to skip nearly every word without comparing it.
fn letters(chars: impl Iterator<Item = char>) -> u32 {
    chars.fold(0, |mask, c| mask | 1 << (u32::from(c) % 32))
}

/// Returns the edit distance of two words; a transposition counts once.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut edits = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                edits = edits.min(before_last[j - 1] + 1);
            }
            row.push(edits);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

const NOUN_ENDINGS: [&str; 5] = ["ion", "al", "er", "or", "ment"];
const RELATIVE_CHARS_MIN: usize = 4;
const PREFIX_CHARS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: &str, expected: &[&str]) {
        let words = [
            "calendar",
            "calendars",
            "create",
            "issue",
            "issues",
            "join",
            "repository",
        ];
        let vocabulary: Vec<String> = words.map(str::to_owned).to_vec();
        assert_eq!(slips(asked, &vocabulary), expected);
    }

    #[test]
    fn the_fewest_slips_win_and_short_words_are_taken_as_written() {
        check("calender", &["calendar"]);
        check("creaet", &["create"]);
        check("repositry", &["repository"]);
        check("isssue", &["issue"]);
        check("john", &[]);
        check("frobnicate", &[]);
    }
}
