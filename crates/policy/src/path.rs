//! Paths compared by their text alone: no file is looked at, and no link followed.

use std::borrow::Cow;

/// The path that a text means from the root on, without `.`, `..`, doubled separators, `file://`
/// and `~`. None where that is not said: a path that begins somewhere unknown, or text that is no
/// path.
pub(crate) fn resolve(text: &str, home: Option<&str>) -> Option<String> {
    let plain = read_file_url(text).unwrap_or(Cow::Borrowed(text));
    if plain.contains('\0') {
        return None;
    }
    let plain = plain.replace('\\', "/");
    let plain = plain.trim();
    let whole = match plain.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", home?),
        Some(_) => return None,
        None => plain.to_owned(),
    };
    whole.starts_with('/').then(|| tidy(&whole))
}

/// Without `.`, `..` and empty parts; `..` at the root stays there.
fn tidy(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a text that is no whole path may lead somewhere else all the same.
pub(crate) fn climbs(text: &str) -> bool {
    let plain = decode(text);
    plain.starts_with('~') || plain.contains('\0') || plain.split(['/', '\\']).any(|it| it == "..")
}

/// Whether a resolved path is the folder or lies in it.
pub(crate) fn is_inside(path: &str, folder: &str) -> bool {
    let Some(rest) = path.strip_prefix(folder.trim_end_matches('/')) else {
        return false;
    };
    rest.is_empty() || rest.starts_with('/')
}

/// The path of a `file:` address, in whatever case and encoding; none for any other text.
fn read_file_url(text: &str) -> Option<Cow<'_, str>> {
    let rest = text
        .get(..5)?
        .eq_ignore_ascii_case("file:")
        .then(|| &text[5..])?;
    let path = match rest.strip_prefix("//") {
        Some(behind) => &behind[behind.find('/')?..],
        None => rest,
    };
    Some(Cow::Owned(decode(path)))
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten();
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(
            resolve(text, Some("/home/me")).as_deref(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn one_path_for_all_its_spellings() {
        for text in [
            "/home/me/.ssh/id",
            "/home/me/x/../.ssh//./id",
            "~/.ssh/id",
            "file:///home/me/.ssh/id",
            "FILE://localhost/home/me/%2Essh/id",
            "file:/home/me/.ssh/id",
            " /home/me/.ssh/id\n",
            "\\home\\me\\.ssh\\id",
            "/../../home/me/.ssh/id/",
        ] {
            check(text, Some("/home/me/.ssh/id"));
        }
        check("src/main.rs", None);
        check("~root/x", None);
        check("/a\0b", None);
    }

    #[test]
    fn a_folder_holds_itself_and_no_neighbour() {
        assert!(is_inside("/a/b", "/a/b"));
        assert!(is_inside("/a/b/c", "/a/b"));
        assert!(!is_inside("/a/bc", "/a/b"));
        assert!(is_inside("/a", "/"));
    }
}
