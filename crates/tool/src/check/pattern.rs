//! Estimates the cost of a regular expression from its text.

/// Estimates the states of a pattern: one for each character, multiplied by the repetitions of `{n,m}`.
/// `(a{1,50}b){1,40}` has about two thousand, `a{1,50}b{1,40}` less than a hundred.
pub(super) fn states(pattern: &str) -> u64 {
    let mut groups: Vec<Group> = vec![Group::default()];
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let inner = (letter == ')' && groups.len() > 1).then(|| groups.pop());
        let group = groups.last_mut().expect("the outermost group stays");
        match (letter, inner.flatten()) {
            (_, Some(inner)) => group.push(inner.total()),
            ('(', _) => groups.push(Group::default()),
            ('[', _) => {
                rest = after_class(rest);
                group.push(1);
            }
            ('\\', _) => {
                let is_class = rest.starts_with(['p', 'P']);
                rest = after_escape(rest);
                group.push(if is_class { CLASS_STATES } else { 1 });
            }
            ('{', _) => {
                let (times, after) = repeat(rest);
                rest = after;
                group.repeat(times);
            }
            _ => group.push(1),
        }
    }
    groups.iter().map(Group::total).fold(0, u64::saturating_add)
}

/// The states of a Unicode class such as `\p{L}`.
const CLASS_STATES: u64 = 64;

#[derive(Debug, Default)]
struct Group {
    before: u64,
    last: u64,
}

impl Group {
    fn push(&mut self, states: u64) {
        self.before = self.total();
        self.last = states;
    }

    fn repeat(&mut self, times: u64) {
        self.last = self.last.saturating_mul(times.max(1));
    }

    fn total(&self) -> u64 {
        self.before.saturating_add(self.last)
    }
}

/// Returns the text after a character class whose `[` precedes `text`.
fn after_class(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.find(|letter: char| {
        let is_end = letter == ']' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    end.map_or("", |end| &text[end + 1..])
}

/// Returns the text after an escape whose `\\` precedes `text`, including the `{...}` of a class.
fn after_escape(text: &str) -> &str {
    let mut letters = text.chars();
    let is_long = matches!(letters.next(), Some('p' | 'P' | 'u' | 'x' | 'k'));
    let after = letters.as_str();
    match after.split_once('}') {
        Some((_, rest)) if is_long && after.starts_with('{') => rest,
        _ => after,
    }
}

/// Returns the larger number of `n,m}` and the text after it; 1 if `text` does not begin with such a
/// repetition.
fn repeat(text: &str) -> (u64, &str) {
    let Some((inside, after)) = text.split_once('}') else {
        return (1, text);
    };
    let is_digit = |letter: char| letter.is_ascii_digit();
    if !inside.starts_with([',', ' ']) && !inside.starts_with(is_digit) {
        return (1, text);
    }
    let numbers = inside.split(',').map(str::trim).filter(|it| !it.is_empty());
    let largest = numbers
        .map(|number| number.parse().unwrap_or(u64::MAX))
        .max();
    (largest.unwrap_or(1), after)
}

#[cfg(test)]
mod tests {
    use super::states;

    #[track_caller]
    fn check(pattern: &str, expected: std::ops::RangeInclusive<u64>) {
        let states = states(pattern);
        assert!(expected.contains(&states), "{pattern}: {states}");
    }

    #[test]
    fn repeats_multiply_what_they_repeat() {
        check("", 0..=0);
        check("^[a-z]{1,64}$", 60..=90);
        check("^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", 30..=90);
        check("a{1,50}b{1,40}", 90..=150);
        check("(a{1,50}b){1,40}", 2_000..=3_000);
        check("((a{1,1000}){1,1000}){1,1000}", 1_000_000_000..=u64::MAX);
        check(r"\p{L}{1,1000}", 64_000..=64_000);
        check("a{99999999999999999999}", u64::MAX..=u64::MAX);
        check("a{1,}{1,}", 1..=1);
        check("a{", 1..=3);
        check("[]", 1..=1);
        check(r"[\]{9}]x", 2..=2);
        check(")){9}", 10..=10);
    }
}
