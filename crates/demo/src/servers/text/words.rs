//! The parts of `text` that are more than a line.

use serde::Deserialize;

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(super) enum Case {
    Upper,
    Lower,
    Title,
    Snake,
    Kebab,
    Camel,
}

pub(super) fn join_words(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Title => text
            .split(' ')
            .map(capitalize)
            .collect::<Vec<_>>()
            .join(" "),
        Case::Snake => words(text).join("_"),
        Case::Kebab => words(text).join("-"),
        Case::Camel => {
            let words = words(text);
            let (first, rest) = words.split_at(words.len().min(1));
            first
                .iter()
                .cloned()
                .chain(rest.iter().map(|word| capitalize(word)))
                .collect()
        }
    }
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first
            .to_uppercase()
            .chain(letters.flat_map(char::to_lowercase))
            .collect(),
        None => String::new(),
    }
}

/// The words of a phrase or an identifier in lower case: a word ends where
/// letters and digits end, and before a capital that follows a small letter.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || (after_small && letter.is_uppercase()) {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Whole words up to `max_length` characters; a first word that is longer is cut.
pub(super) fn slug(text: &str, separator: char, max_length: usize) -> String {
    let mut slug = String::new();
    for word in text
        .to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
    {
        if word.is_empty() {
            continue;
        }
        if slug.is_empty() {
            slug = word.chars().take(max_length).collect();
        } else if slug.chars().count() + 1 + word.chars().count() <= max_length {
            slug.push(separator);
            slug.push_str(word);
        } else {
            break;
        }
    }
    slug
}

/// Lines marked `-`, `+` or ` `, as few changes as there can be.
pub(super) fn diff(before: &[&str], after: &[&str]) -> Vec<String> {
    let common = common_lengths(before, after);
    let (mut old, mut new, mut lines) = (0, 0, Vec::new());
    while old < before.len() || new < after.len() {
        if old < before.len() && new < after.len() && before[old] == after[new] {
            lines.push(format!(" {}", before[old]));
            (old, new) = (old + 1, new + 1);
        } else if new == after.len()
            || (old < before.len() && common[old + 1][new] >= common[old][new + 1])
        {
            lines.push(format!("-{}", before[old]));
            old += 1;
        } else {
            lines.push(format!("+{}", after[new]));
            new += 1;
        }
    }
    lines
}

/// `[i][j]` is how many lines `before[i..]` and `after[j..]` can keep.
fn common_lengths(before: &[&str], after: &[&str]) -> Vec<Vec<u16>> {
    let mut common = vec![vec![0; after.len() + 1]; before.len() + 1];
    for old in (0..before.len()).rev() {
        for new in (0..after.len()).rev() {
            common[old][new] = if before[old] == after[new] {
                common[old + 1][new + 1] + 1
            } else {
                common[old + 1][new].max(common[old][new + 1])
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::diff;

    /// Dropping the marks gives back both texts, whatever they are.
    #[test]
    fn a_difference_holds_both_texts() {
        let texts = ["", "a", "a\nb\nc", "c\nb\na", "b\nb\nb", "a\nx\nb\ny\nc"];
        for (before, after) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            let (before, after): (Vec<_>, Vec<_>) =
                (before.lines().collect(), after.lines().collect());
            let lines = diff(&before, &after);
            let side = |mark: char| -> Vec<&str> {
                lines
                    .iter()
                    .filter(|line| line.starts_with([' ', mark]))
                    .map(|line| &line[1..])
                    .collect()
            };
            assert_eq!(side('-'), before);
            assert_eq!(side('+'), after);
        }
    }
}
