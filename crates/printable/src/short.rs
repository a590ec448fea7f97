//! Shortens texts.

use std::borrow::Cow;

/// Returns the first `chars_max` characters of a text.
pub fn first_chars(text: &str, chars_max: usize) -> &str {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Shortens a text to `chars_max` characters, with `…` for the rest.
pub fn shorten(text: &str, chars_max: usize) -> Cow<'_, str> {
    let first = first_chars(text, chars_max);
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{first}…"))
}

/// Shortens a text to `chars_max` characters, with `…` for its middle: the beginning of an error has the
/// cause, and the last quarter the next step.
pub fn shorten_middle(text: &str, chars_max: usize) -> Cow<'_, str> {
    if first_chars(text, chars_max).len() == text.len() {
        return Cow::Borrowed(text);
    }
    let tail = chars_max / 4;
    let head = first_chars(text, chars_max - tail - 1);
    let start = text.char_indices().rev().take(tail).last();
    let start = start.map_or(text.len(), |(start, _)| start);
    Cow::Owned(format!("{head}…{}", &text[start..]))
}

/// Replaces the path of the home folder by `~`, alone and at the beginning of longer paths.
pub fn shorten_home<'a>(text: &'a str, home: &str) -> Cow<'a, str> {
    let home = home.trim_end_matches('/');
    if home.is_empty() || !text.contains(home) {
        return Cow::Borrowed(text);
    }
    let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut parts = text.split(home);
    let mut shortened = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A full stop ends a sentence, unless a name goes on after it.
        let goes_on = part.trim_start_matches('.').starts_with(is_name);
        let is_inside = shortened.ends_with(|c: char| is_name(c) || c == '/' || c == '.');
        shortened.push_str(if goes_on || is_inside { home } else { "~" });
        shortened.push_str(part);
    }
    Cow::Owned(shortened)
}

#[cfg(test)]
mod tests {
    use super::{first_chars, shorten, shorten_home, shorten_middle};

    #[test]
    fn only_the_home_folder_itself_becomes_a_tilde() {
        let check = |text: &str, expected: &str| {
            assert_eq!(shorten_home(text, "/home/ada"), expected, "{text}");
        };
        check("no /home/ada/x or `/home/ada`", "no ~/x or `~`");
        check("in /home/ada.", "in ~.");
        check("PATH=/home/ada/bin:/home/ada/.b", "PATH=~/bin:~/.b");
        for other in [
            "/home/adam/x",
            "/home/ada-2",
            "/home/ada.old/x",
            "/mnt/home/ada/x",
        ] {
            check(other, other);
        }
        assert_eq!(shorten_home("/etc/x", "/"), "/etc/x");
        assert_eq!(shorten_home("/home/me/x", "/home/me/"), "~/x");
    }

    #[test]
    fn characters_are_counted_and_none_is_torn() {
        assert_eq!(first_chars("äöü", 2), "äö");
        assert_eq!(first_chars("äöü", 3), "äöü");
        assert_eq!(shorten("äöü", 2), "äö…");
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten_middle("0123456789", 8), "01234…89");
        assert_eq!(shorten_middle("äöüäöü", 5), "äöü…ü");
        assert_eq!(shorten_middle("01234567", 8), "01234567");
    }
}
