//! A licence expression as packages state it: `(MIT OR Apache-2.0) AND Unicode-3.0`.

use std::collections::BTreeSet;

/// Returns true if the package can be used with these licences alone. An expression that cannot be
/// parsed is refused.
pub(crate) fn allows(allowed: &BTreeSet<String>, expression: &str) -> bool {
    // The older form: `MIT/Apache-2.0`.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    reader.either() == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Reader<'_> {
    fn either(&mut self) -> Option<bool> {
        let mut is_allowed = self.both()?;
        while self.take("OR") {
            is_allowed |= self.both()?;
        }
        Some(is_allowed)
    }

    fn both(&mut self) -> Option<bool> {
        let mut is_allowed = self.one()?;
        while self.take("AND") {
            is_allowed &= self.one()?;
        }
        Some(is_allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let inner = self.either()?;
            return self.take(")").then_some(inner);
        }
        let mut licence = self.next()?.to_owned();
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&licence))
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        let allowed = allowed.map(str::to_owned).into();
        assert_eq!(allows(&allowed, expression), expected, "{expression}");
    }

    #[test]
    fn one_may_choose_and_must_keep_all_of_a_sum() {
        check("MIT", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR MIT", true);
        check("MIT/Apache-2.0", true);
        check("MIT AND GPL-3.0", false);
        check("(GPL-3.0 OR MIT) AND ISC", true);
        check("GPL-3.0 OR MIT AND BSD", false);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("Apache-2.0", false);
        for unreadable in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC"] {
            check(unreadable, false);
        }
    }
}
