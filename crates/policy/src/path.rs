//! Paths and addresses compared by their text alone: no file is looked at, and no link followed.

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

/// A path from somewhere unknown, in its shortest spelling; `..` stays where nothing is before it.
pub(crate) fn tidy_relative(text: &str) -> String {
    let plain = text.trim().replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in plain.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// An address without what is encoded, characters that readers skip, `.`, `..` and empty parts: as
/// one whose host nothing leads out of, and as one whose server knows no hosts. None for text that
/// is no address.
pub(crate) fn tidy_address(text: &str) -> Option<[String; 2]> {
    let (scheme, behind) = text.split_once("://")?;
    let scheme = scheme.trim();
    let behind = decode(behind).replace('\\', "/");
    let behind: String = behind.chars().filter(|c| !c.is_control()).collect();
    let (host, path) = behind.split_once('/').unwrap_or((&behind, ""));
    Some([
        format!("{scheme}://{host}{}", tidy(path)),
        format!("{scheme}://{}", tidy_relative(&behind)),
    ])
}

/// Whether a text that is no whole path may lead somewhere else all the same.
pub(crate) fn climbs(text: &str) -> bool {
    let plain = decode(text);
    plain.starts_with('~') || plain.contains('\0') || plain.split(['/', '\\']).any(|it| it == "..")
}

/// Whether a resolved path is the folder or lies in it, should letter case not count: some file
/// systems take no notice of it.
pub(crate) fn may_be_inside(path: &str, folder: &str) -> bool {
    is_inside(path, folder) || is_inside(&path.to_lowercase(), &folder.to_lowercase())
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
    fn one_text_for_all_spellings_of_a_relative_path_and_of_an_address() {
        for text in ["a/b", "./a//b/", "a/x/../b", "a\\b"] {
            assert_eq!(tidy_relative(text), "a/b");
        }
        assert_eq!(tidy_relative("../../a/../b"), "../../b");
        for text in [
            "bank://one/two",
            "bank://%6fne/x/%2e%2e//two",
            "bank://o\tne/./two",
            "bank://one\\two",
        ] {
            let expected = ["bank://one/two".to_owned(), "bank://one/two".to_owned()];
            assert_eq!(tidy_address(text), Some(expected));
        }
        assert_eq!(tidy_address("one/two"), None);
    }

    #[test]
    fn a_folder_holds_itself_and_no_neighbour() {
        assert!(is_inside("/a/b", "/a/b"));
        assert!(is_inside("/a/b/c", "/a/b"));
        assert!(!is_inside("/a/bc", "/a/b"));
        assert!(is_inside("/a", "/"));
        assert!(may_be_inside("/Home/Me/.SSH/id", "/home/me/.ssh"));
    }
}
