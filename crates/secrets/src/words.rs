//! A command as it is written, in words. No shell reads it, so nothing in it is special but quotes.

/// The words of a command line; none where a quote is not closed.
///
/// White space separates them. Within `'...'` everything stands for itself; within `"..."`, and
/// outside of quotes, a `\` takes the next character as it is.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[track_caller]
    fn check(line: &str, words: &[&str]) {
        assert_eq!(split(line).unwrap(), words, "{line}");
    }

    #[test]
    fn quotes_hold_words_together_and_nothing_else_is_special() {
        check(
            "op read op://vault/item/field",
            &["op", "read", "op://vault/item/field"],
        );
        check("  pass   show  'my key' ", &["pass", "show", "my key"]);
        check(
            r#"a "b \" c" d\ e '' $X;ls|cat"#,
            &["a", "b \" c", "d e", "", "$X;ls|cat"],
        );
        check("", &[]);
        assert_eq!(split("pass 'show"), None);
        assert_eq!(split("pass \\"), None);
    }
}
