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

#[cfg(test)]
mod tests {
    use super::quote_word;

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
