//! Patterns that name a server, rewritten for another name or without it.

use std::collections::BTreeSet;

use globset::GlobBuilder;

/// The limit of the expanded alternatives of one pattern.
const ALTERNATIVES_MAX: usize = 64;

/// Returns true if the pattern matches this name and no other.
pub(super) fn is_name(pattern: &str, name: &str) -> bool {
    parse(pattern).is_some_and(|it| literal(&it).is_some_and(|it| it.eq_ignore_ascii_case(name)))
}

/// Returns true if the pattern begins with this name and a `/`.
pub(super) fn begins_with(pattern: &str, server: &str) -> bool {
    strip_server(pattern, server).is_some()
}

/// Returns true if a name matches the pattern, ignoring case.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// The alternatives of a pattern, with `{a,b}` expanded; `None` if it cannot be expanded.
pub(super) fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let chars: Vec<char> = pattern.chars().collect();
    let Some(open) = find(&chars, 0, '{')? else {
        return Some(vec![pattern.to_owned()]);
    };
    let (mut depth, mut at) = (1, open + 1);
    let mut parts = vec![String::new()];
    while depth > 0 {
        match *chars.get(at)? {
            '{' => depth += 1,
            '}' => depth -= 1,
            '\\' | '[' => return None,
            _ => {}
        }
        match chars[at] {
            ',' if depth == 1 => parts.push(String::new()),
            '}' if depth == 0 => {}
            other => parts.last_mut()?.push(other),
        }
        at += 1;
    }
    let before: String = chars[..open].iter().collect();
    let after: String = chars[at..].iter().collect();
    let mut all = Vec::new();
    for part in parts {
        if part.is_empty() {
            return None;
        }
        all.extend(alternatives(&format!("{before}{part}{after}"))?);
        if all.len() > ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(all)
}

/// Returns the patterns of names that match `to` where this one matches `from`; `None` if it can stay.
pub(super) fn rename_name(pattern: &str, from: &str, to: &str) -> Option<Vec<String>> {
    if !fits(pattern, from) || fits(pattern, to) && !is_name(pattern, from) {
        return None;
    }
    let alternatives = alternatives(pattern).unwrap_or_default();
    let kept = alternatives.iter().filter(|it| !is_name(it, from)).cloned();
    let mut new: Vec<String> = kept.collect();
    let is_named = new.len() < alternatives.len();
    new.push(to.to_owned());
    if is_named {
        return Some(in_place(pattern, from, to, new));
    }
    Some(vec![pattern.to_owned(), to.to_owned()])
}

/// Returns the patterns of `server/name` that match `to/name` where this one matches `from/name`;
/// `None` if it can stay. Fails if the pattern cannot be parsed.
pub(super) fn rename_full(
    pattern: &str,
    from: &str,
    to: &str,
) -> Result<Option<Vec<String>>, Unreadable> {
    if let Some(rest) = strip_server(pattern, from) {
        return Ok(Some(vec![format!("{to}/{rest}")]));
    }
    let alternatives = alternatives(pattern).ok_or(Unreadable)?;
    let (mut new, mut is_kept) = (Vec::new(), true);
    let mut added = Vec::new();
    for alternative in alternatives {
        if let Some(rest) = strip_server(&alternative, from) {
            new.push(format!("{to}/{rest}"));
            is_kept = false;
            continue;
        }
        let tokens = parse(&alternative).ok_or(Unreadable)?;
        let rests = |server: &str| derive(&tokens, &format!("{server}/"));
        let of_new = rests(to);
        let missing = rests(from).into_iter().filter(|it| !of_new.contains(it));
        added.extend(missing.map(|rest| format!("{to}/{}", print(&rest))));
        new.push(alternative);
    }
    if is_kept {
        return Ok((!added.is_empty()).then(|| {
            added.insert(0, pattern.to_owned());
            added
        }));
    }
    new.extend(added);
    Ok(Some(in_place(pattern, from, to, new)))
}

/// A pattern with characters that are not supported here, such as `**`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Returns the pattern with one name replaced by the other, if that has the same meaning as this list.
fn in_place(pattern: &str, from: &str, to: &str, new: Vec<String>) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        text.push_str(before);
        text.push_str(if is_word { to } else { from });
        rest = after;
    }
    text.push_str(rest);
    let of_text = alternatives(&text).map(BTreeSet::from_iter);
    if of_text.is_some_and(|it| it == new.iter().cloned().collect()) {
        vec![text]
    } else {
        new
    }
}

fn strip_server<'a>(pattern: &'a str, server: &str) -> Option<&'a str> {
    let (head, rest) = pattern.split_at_checked(server.len())?;
    let rest = rest.strip_prefix('/')?;
    head.eq_ignore_ascii_case(server).then_some(rest)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Any,
    /// `[...]`, as it is written.
    Class(String),
}

/// Returns the place of the next unescaped character of this kind; the outer `None` if the pattern
/// cannot be parsed.
#[expect(clippy::option_option, reason = "unreadable, absent, or there")]
fn find(chars: &[char], from: usize, wanted: char) -> Option<Option<usize>> {
    let mut at = from;
    while let Some(&char) = chars.get(at) {
        match char {
            '\\' => at += 1,
            '[' => at = end_of_class(chars, at)?,
            _ if char == wanted => return Some(Some(at)),
            _ => {}
        }
        at += 1;
    }
    Some(None)
}

/// The place of the `]` that ends a class.
fn end_of_class(chars: &[char], open: usize) -> Option<usize> {
    let is_not = matches!(chars.get(open + 1), Some('!' | '^'));
    // The first may be a literal `]`.
    let first = open + 2 + usize::from(is_not);
    let end = chars.get(first..)?.iter().position(|it| *it == ']')?;
    Some(first + end)
}

/// Parses a pattern without `{}`; `None` if it cannot be parsed.
fn parse(pattern: &str) -> Option<Vec<Token>> {
    if pattern == "**" {
        return Some(vec![Token::Any]);
    }
    let chars: Vec<char> = pattern.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(&char) = chars.get(at) {
        tokens.push(match char {
            '*' if tokens.last() == Some(&Token::Any) => return None,
            '*' => Token::Any,
            '?' => Token::One,
            '{' | '}' => return None,
            '\\' => {
                at += 1;
                Token::Char(*chars.get(at)?)
            }
            '[' => {
                let end = end_of_class(&chars, at)?;
                let class: String = chars[at..=end].iter().collect();
                at = end;
                match class.chars().collect::<Vec<_>>()[..] {
                    ['[', only, ']'] => Token::Char(only),
                    _ => Token::Class(class),
                }
            }
            char => Token::Char(char),
        });
        at += 1;
    }
    Some(tokens)
}

fn literal(tokens: &[Token]) -> Option<String> {
    let char = |token: &Token| match token {
        Token::Char(char) => Some(*char),
        _ => None,
    };
    tokens.iter().map(char).collect()
}

fn print(tokens: &[Token]) -> String {
    let one = |token: &Token| match token {
        Token::Char(char) => policy::escape(&char.to_string()),
        Token::One => "?".to_owned(),
        Token::Any => "*".to_owned(),
        Token::Class(class) => class.clone(),
    };
    tokens.iter().map(one).collect()
}

/// Returns the rests of the pattern, any of which may match the text after this beginning.
fn derive(tokens: &[Token], beginning: &str) -> Vec<Vec<Token>> {
    let mut rests: Vec<&[Token]> = vec![tokens];
    for char in beginning.chars() {
        let mut next: Vec<&[Token]> = Vec::new();
        for mut rest in rests {
            while let [first, behind @ ..] = rest {
                let left = match first {
                    Token::Any => rest,
                    _ => behind,
                };
                if takes(first, char) && !next.contains(&left) {
                    next.push(left);
                }
                if *first != Token::Any {
                    break;
                }
                rest = behind;
            }
        }
        rests = next;
    }
    rests.into_iter().map(<[Token]>::to_vec).collect()
}

fn takes(token: &Token, char: char) -> bool {
    match token {
        Token::Char(own) => own.eq_ignore_ascii_case(&char),
        Token::One | Token::Any => true,
        Token::Class(class) => fits(class, char.encode_utf8(&mut [0; 4])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{alternatives, fits, rename_full, rename_name};

    #[track_caller]
    fn check_name(pattern: &str, expected: Option<&[&str]>) {
        let new = rename_name(pattern, "fs", "disk");
        assert_eq!(
            new,
            expected.map(|it| it.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn a_pattern_of_servers_fits_the_new_name_and_the_others_as_before() {
        check_name("fs", Some(&["disk"]));
        check_name("FS", Some(&["disk"]));
        check_name("f*", Some(&["f*", "disk"]));
        check_name("*s*", None);
        check_name("*", None);
        check_name("git", None);
        check_name("{fs,git}", Some(&["{disk,git}"]));
        check_name("{f?,git}", Some(&["{f?,git}", "disk"]));
        check_name("[f]s", Some(&["disk"]));
    }

    #[track_caller]
    fn check_full(pattern: &str, expected: Option<&[&str]>) {
        let new = rename_full(pattern, "fs", "disk").unwrap();
        assert_eq!(
            new,
            expected.map(|it| it.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn a_pattern_of_tools_fits_the_tools_of_the_new_name() {
        check_full("fs/write_file", Some(&["disk/write_file"]));
        check_full("Fs/**", Some(&["disk/**"]));
        check_full("fs/{read,write}_*", Some(&["disk/{read,write}_*"]));
        check_full("{fs,git}/*", Some(&["{disk,git}/*"]));
        check_full("{fs/a,b}", Some(&["{disk/a,b}"]));
        let deep = ["f*/write_*", "disk/*/write_*", "disk/write_*"];
        check_full("f*/write_*", Some(&deep));
        check_full("f*_file", Some(&["f*_file", "disk/*_file"]));
        check_full("[a-f]?/x", Some(&["[a-f]?/x", "disk/x"]));
        check_full("write_file", None);
        check_full("*_file", None);
        check_full("*/write_*", None);
        check_full("gfs/x", None);
        assert!(rename_full("**/x", "fs", "disk").is_err());
    }

    const PARTS: [&str; 12] = [
        "f", "s", "fs", "/", "*", "?", "[ef]", "{fs,git}", "{a,f}", "x", "fs/", "d",
    ];

    proptest! {
        #[test]
        fn tools_of_the_new_name_fit_as_those_of_the_old_did(
            parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 1..5),
            tool in "[fsxd/]{0,3}",
        ) {
            let pattern = parts.concat();
            let Ok(renamed) = rename_full(&pattern, "fs", "disk") else {
                return Ok(());
            };
            let stays = vec![pattern.clone()];
            let new = renamed.as_ref().unwrap_or(&stays);
            let [old_name, new_name] = ["fs", "disk"].map(|it| format!("{it}/{tool}"));
            // A pattern that matched the new name already still does.
            let expected = fits(&pattern, &old_name) || fits(&pattern, &new_name);
            prop_assert_eq!(new.iter().any(|it| fits(it, &new_name)), expected, "{:?}", new);
            let other = format!("git/{tool}");
            prop_assert_eq!(new.iter().any(|it| fits(it, &other)), fits(&pattern, &other));
            prop_assert!(alternatives(&pattern).is_some());
        }
    }
}
