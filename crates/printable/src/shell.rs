//! Quotes words of a command that a person pastes into a shell.

/// Quotes a text as one word of a command line, unless it is plain. The check lists plain characters
/// instead of special ones, because shells also expand `{a,b}`, `!` and others.
pub fn quote_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Splits a line into words as a shell does: at blanks, with quotes and backslashes. Nothing is expanded.
/// Returns `None` if a quote is not closed.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(rest.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::{quote_word, split_words};

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        let words = ["npx", "-y", "", "it's", "a b", "$c", "\\\"", "{a,b}"];
        let line: Vec<String> = words.iter().map(|it| quote_word(it)).collect();
        assert_eq!(split_words(&line.join("  ")).unwrap(), words);
        assert_eq!(
            split_words(r#"a "b \" c"d\ e"#).unwrap(),
            ["a", "b \" cd e"]
        );
        assert_eq!(split_words("").unwrap(), [""; 0]);
        assert_eq!(split_words("a 'b").as_deref(), None);
        assert_eq!(split_words("a\\").as_deref(), None);
    }

    #[test]
    fn a_word_is_quoted_unless_every_character_is_plain() {
        for (text, word) in [
            ("files/read_file", "files/read_file"),
            ("file:///etc/hosts", "file:///etc/hosts"),
            ("", "''"),
            ("-rf", "'-rf'"),
            ("it's", r"'it'\''s'"),
            ("{a,b}", "'{a,b}'"),
            ("a!b $c", "'a!b $c'"),
        ] {
            assert_eq!(quote_word(text), word);
        }
    }
}
