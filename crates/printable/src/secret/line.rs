//! Masks lines of configuration files: JSON, TOML and YAML, with their comments.

use super::{
    HIDDEN, mask_secrets,
    name::names_secret,
    text::{end_of_quoted, is_name, named_next},
};

/// Masks the secrets in each line of a file. Keys and comments are unchanged, except for text that has
/// the form of a token.
pub fn mask_lines(text: &str) -> Vec<String> {
    let mut lines = LineMasker::default();
    text.lines().map(|line| lines.mask(line)).collect()
}

#[derive(Default)]
struct LineMasker {
    /// The name of the next value, which may be on the next line.
    named: Option<String>,
    /// The end of a multi-line secret.
    until: Option<End>,
}

enum End {
    /// A closing mark: quotes of TOML, or the last line of a private key.
    Mark(&'static str),
    /// A line that is not indented deeper, after a block of YAML.
    Indent(usize),
}

/// The text that marks the last line of a private key.
const KEY_END: &str = "-----END";

impl LineMasker {
    fn mask(&mut self, line: &str) -> String {
        let indent = line.len() - line.trim_start().len();
        let is_inside = match &self.until {
            None => false,
            Some(End::Indent(least)) if !line.trim().is_empty() && indent <= *least => {
                self.until = None;
                false
            }
            Some(End::Mark(mark)) if line.contains(mark) => {
                self.until = None;
                true
            }
            Some(_) => true,
        };
        if is_inside {
            return format!("{}{HIDDEN}", &line[..indent]);
        }
        let mut masked = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let taken = self.take(rest, line.len() - rest.len(), line, &mut masked);
            rest = &rest[taken..];
        }
        if line.contains("-----BEGIN") && line.contains("PRIVATE KEY") && !line.contains(KEY_END) {
            self.until = Some(End::Mark(KEY_END));
        }
        masked
    }

    /// Masks the token that begins here: a comment, a quoted text, or the text up to the next one.
    fn take(&mut self, rest: &str, at: usize, line: &str, masked: &mut String) -> usize {
        if is_comment(rest, &line[..at]) {
            // A comment is prose: `KEY: what it is for`.
            let words = rest.split_inclusive(' ');
            masked.extend(words.map(mask_word));
            return rest.len();
        }
        for mark in ["\"\"\"", "'''", "\"", "'"] {
            let Some(inner) = rest.strip_prefix(mark) else {
                continue;
            };
            let end = end_of_quoted(inner, mark);
            let (string, behind) = inner.split_at(end.unwrap_or(inner.len()));
            let behind = behind.strip_prefix(mark).unwrap_or_default();
            *masked += mark;
            let is_long = end.is_none() && mark.len() == 3;
            if is_long && self.named.as_deref().is_some_and(names_secret) {
                *masked += HIDDEN;
                self.until = Some(End::Mark(mark));
            } else {
                *masked += &self.mask_quoted(string, behind);
            }
            if end.is_some() {
                *masked += mark;
            }
            return rest.len() - behind.len();
        }
        let length = length_of_bare(rest, &line[..at]);
        let indent = line.len() - line.trim_start().len();
        self.mask_bare(&rest[..length], indent, masked);
        length
    }

    fn mask_quoted(&mut self, string: &str, behind: &str) -> String {
        if behind.trim_start().starts_with([':', '=']) {
            self.named = Some(string.to_owned());
            return string.to_owned();
        }
        let masked = mask_secrets(string, self.named.as_deref());
        self.named = named_next(string).map(str::to_owned);
        masked
    }

    /// Masks text outside of quotes: keys of TOML and YAML, values, and the signs between them.
    fn mask_bare(&mut self, text: &str, indent: usize, masked: &mut String) {
        let mut start = 0;
        let mut is_reference = false;
        let signs = text.char_indices().filter(|(at, c)| {
            is_reference |= *c == '{' && text[..*at].ends_with('$');
            let is_sign = "{}[],".contains(*c) && !is_reference;
            is_reference &= *c != '}';
            is_sign
        });
        let signs: Vec<(usize, char)> = signs.collect();
        for (at, sign) in signs.into_iter().chain([(text.len(), ' ')]) {
            self.mask_piece(&text[start..at], indent, masked);
            start = at;
            if at < text.len() {
                masked.push(sign);
                start += sign.len_utf8();
            }
            if sign == '{' {
                self.named = None;
            }
        }
    }

    fn mask_piece(&mut self, piece: &str, indent: usize, masked: &mut String) {
        let value = piece.trim();
        let value = value.strip_prefix("- ").unwrap_or(value).trim_start();
        let before = piece.find(value).unwrap_or(0);
        *masked += &piece[..before];
        let behind = &piece[before + value.len()..];
        let key = value
            .find([':', '='])
            .map(|at| (value[..at].trim_end(), at + 1));
        match key.filter(|(key, at)| is_name(key) && !value[*at..].starts_with("//")) {
            Some((key, at)) if !key.starts_with('-') => {
                let inner = value[at..].trim();
                self.named = Some(key.to_owned());
                *masked += &value[..value.len() - inner.len()];
                if inner.starts_with(['|', '>']) && names_secret(key) {
                    self.until = Some(End::Indent(indent));
                    *masked += inner;
                } else if !inner.is_empty() {
                    *masked += &mask_secrets(inner, Some(key));
                    self.named = None;
                }
            }
            _ if value.is_empty() => {}
            // The key was quoted.
            _ if value.starts_with([':', '=']) => {
                let inner = value[1..].trim_start();
                *masked += &value[..value.len() - inner.len()];
                if !inner.is_empty() {
                    *masked += &mask_secrets(inner, self.named.take().as_deref());
                }
            }
            _ => {
                *masked += &mask_secrets(value, self.named.as_deref());
                self.named = named_next(value).map(str::to_owned);
            }
        }
        *masked += behind;
    }
}

/// Masks a word of prose, and keeps the blanks after it.
fn mask_word(word: &str) -> String {
    let kept = word.trim_end();
    mask_secrets(kept, None) + &word[kept.len()..]
}

fn is_comment(rest: &str, before: &str) -> bool {
    let is_apart = before.is_empty() || before.ends_with(char::is_whitespace);
    is_apart && (rest.starts_with('#') || rest.starts_with("//") || rest.starts_with("/*"))
}

/// Returns the length up to the next quote or comment. An apostrophe within a word is not a quote.
fn length_of_bare(rest: &str, before: &str) -> usize {
    let mut last = before.chars().next_back();
    for (at, c) in rest.char_indices() {
        let is_quote = c == '"' || (c == '\'' && last.is_none_or(|it| !it.is_alphanumeric()));
        let is_blank_before = last.is_none_or(char::is_whitespace);
        let is_comment = is_blank_before && (c == '#' || rest[at..].starts_with("//"));
        if at > 0 && (is_quote || is_comment) {
            return at;
        }
        last = Some(c);
    }
    rest.len()
}
