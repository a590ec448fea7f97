//! Paths and addresses compared by their text alone, without access to files or links.
//!
//! Servers read one text in different ways: as a path, as a URL by the WHATWG standard (Node,
//! browsers), as Python's `urllib` does, or by removing `file://`. [`Readings`] holds the result of
//! each way, and a rule that restricts checks all of them.

use url::Url;

/// The number of times that a text is percent-decoded: once by the parser of an address, and once by a
/// server that decodes the parser's result.
const DECODINGS_MAX: usize = 2;

/// The paths that a server may read from one text.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Paths from the root, without `.`, `..` and empty segments.
    pub(crate) whole: Vec<String>,
    /// Paths from an unknown folder, including text that is not a path, as it is written.
    pub(crate) relative: Vec<String>,
    /// True if some parser reads the text as the address of a file.
    has_file_url: bool,
}

impl Readings {
    /// Returns the readings of a text. `home` replaces `~`.
    pub(crate) fn of(text: &str, home: Option<&str>) -> Self {
        let mut readings = Self::default();
        if is_plain(text) {
            readings.add(text, home);
            return readings;
        }
        for text in spellings(text) {
            match strip_file_scheme(&text) {
                Some(rest) => readings.add_file_url(&text, rest, home),
                None => readings.add_reference(&text, home),
            }
        }
        readings
    }

    /// Returns true if a path from an unknown folder may lead anywhere.
    pub(crate) fn may_climb(&self) -> bool {
        self.relative.iter().any(|it| climbs(it))
    }

    /// Returns true if the address of a resource may be one of any file.
    pub(crate) fn may_name_any_file(&self, address: &str) -> bool {
        (self.has_file_url || !has_scheme(address)) && self.may_climb()
    }

    /// Adds the address of a file; `rest` is the text without its scheme.
    fn add_file_url(&mut self, text: &str, rest: &str, home: Option<&str>) {
        self.has_file_url = true;
        self.add_url(Url::parse(text).ok(), text, home);
        self.add_reference(rest, home);
        if let Some(behind) = strip_two_slashes(rest) {
            // Servers that only remove a prefix read the host as a folder.
            self.add_reference(behind, home);
        } else if !starts_with_slash(rest) {
            self.add_reference(&format!("/{rest}"), home);
        }
        if climbs(text) {
            add_new(&mut self.relative, text.to_owned());
        }
    }

    /// Adds the path of an address as it is, and decoded.
    fn add_url(&mut self, url: Option<Url>, text: &str, home: Option<&str>) {
        let Some(url) = url else {
            return;
        };
        // The parser encodes more characters than the text did; the path is the same.
        let as_written = decode_where(url.path(), |escape| !text.contains(escape));
        self.add(&as_written, home);
        self.add(&decode(url.path()), home);
    }

    /// Adds a path, or a reference to one: with a host before it (`//host/path`), and without.
    fn add_reference(&mut self, text: &str, home: Option<&str>) {
        let behind_host = strip_two_slashes(text).map(skip_host);
        for text in std::iter::once(text).chain(behind_host) {
            for text in with_ends_cut(text) {
                self.add(text, home);
                // Some servers treat a backslash as a separator, others as a character of a name.
                self.add(&text.replace('\\', "/"), home);
            }
        }
        if starts_with_slash(text) {
            let root = Url::parse("file:///").expect("the address is valid");
            self.add_url(root.join(text).ok(), text, home);
        }
    }

    fn add(&mut self, path: &str, home: Option<&str>) {
        let below_home = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .zip(home)
            .map(|(rest, home)| format!("{home}{rest}"));
        let path = below_home.as_deref().unwrap_or(path);
        if let Some(below) = strip_drive(path) {
            add_new(&mut self.whole, tidy(below));
        }
        if path.starts_with('/') && !path.contains('\0') {
            add_new(&mut self.whole, tidy(path));
        } else {
            add_new(&mut self.relative, path.to_owned());
        }
    }
}

fn add_new(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// Returns true if every server reads the text in the same way.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: &u8| {
        !byte.is_ascii_control() && !matches!(byte, b'%' | b':' | b'|' | b'\\' | b'?' | b'#' | b';')
    };
    let is_trimmed = !text.starts_with(is_blank) && !text.ends_with(is_blank);
    is_trimmed && !text.starts_with("//") && text.as_bytes().iter().all(is_plain)
}

/// Returns a text in the forms that parsers may give it first: cut, decoded, trimmed, and with
/// characters removed.
fn spellings(written: &str) -> Vec<String> {
    let mut spellings = Vec::new();
    for text in with_ends_cut(written) {
        let mut decoded = text.to_owned();
        for _ in 0..=DECODINGS_MAX {
            let trimmed = decoded.trim_matches(is_blank);
            let is_break = |c: char| matches!(c, '\t' | '\n' | '\r');
            let without_breaks = trimmed.replace(is_break, "");
            let without_controls = trimmed.replace(char::is_control, "");
            let unwrapped = unwrap(&without_breaks).to_owned();
            // Dot segments of an address may be resolved before it is decoded.
            let is_dot = |escape: &str| escape.eq_ignore_ascii_case("%2e");
            let with_dots = decode_where(&without_breaks, is_dot);
            let next = decode(&decoded);
            for text in [
                decoded,
                without_breaks,
                without_controls,
                unwrapped,
                with_dots,
            ] {
                add_new(&mut spellings, text);
            }
            decoded = next;
        }
    }
    spellings
}

/// Returns a reference with its query, fragment and parameters, and without them.
fn with_ends_cut(text: &str) -> Vec<&str> {
    let mut texts = vec![text];
    texts.extend(text.split_once(['?', '#']).map(|(before, _)| before));
    for at in 0..texts.len() {
        let name = texts[at].rfind('/').unwrap_or(0);
        let end = texts[at][name..].find(';');
        texts.extend(end.map(|end| &texts[at][..name + end]));
    }
    texts
}

/// Returns true for a character that some parser removes from both ends.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\u{feff}'
}

/// Removes the wrapper that Python's `urlopen` removes: it reads `<URL:file:///x>` as `file:///x`.
fn unwrap(text: &str) -> &str {
    let inner = text
        .strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'));
    let inner = inner.unwrap_or(text).trim();
    match inner.split_at_checked(4) {
        Some((label, address)) if label.eq_ignore_ascii_case("url:") => address.trim(),
        _ => inner,
    }
}

fn strip_file_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case("file:").then_some(rest)
}

/// Returns true if a text begins like an address, not like a path.
fn has_scheme(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|it| {
        it.starts_with(|c: char| c.is_ascii_alphabetic()) && it.chars().all(is_part)
    })
}

fn starts_with_slash(text: &str) -> bool {
    text.starts_with(['/', '\\'])
}

fn strip_two_slashes(text: &str) -> Option<&str> {
    text.strip_prefix(['/', '\\'])?.strip_prefix(['/', '\\'])
}

/// Returns the path after a host.
fn skip_host(text: &str) -> &str {
    let end = text.find(['/', '\\', '?', '#']).unwrap_or(text.len());
    &text[end..]
}

/// Returns the path after `C:` or `/C|`.
fn strip_drive(path: &str) -> Option<&str> {
    let drive = path.strip_prefix('/').unwrap_or(path);
    let below = drive
        .strip_prefix(|c: char| c.is_ascii_alphabetic())?
        .strip_prefix([':', '|'])?;
    starts_with_slash(below).then_some(below)
}

/// Resolves a folder that a rule names, from the root or from `~`.
pub(crate) fn resolve_folder(text: &str, home: Option<&str>) -> Option<String> {
    let mut readings = Readings::default();
    match strip_file_scheme(text).and_then(|_| Url::parse(text).ok()) {
        Some(url) => readings.add(&decode(url.path()), home),
        None => readings.add(text.trim(), home),
    }
    let is_sure = readings.relative.is_empty();
    is_sure.then(|| readings.whole.pop()).flatten()
}

/// Returns a path without `.`, `..` and empty segments; `..` at the root stays at the root.
fn tidy(path: &str) -> String {
    let mut tidy = String::with_capacity(path.len());
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => tidy.truncate(tidy.rfind('/').unwrap_or(0)),
            other => {
                tidy.push('/');
                tidy.push_str(other);
            }
        }
    }
    if tidy.is_empty() {
        tidy.push('/');
    }
    tidy
}

/// Returns a path from an unknown folder in its shortest spelling. A `..` is kept if no segment is
/// before it.
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

/// Returns other spellings of an address as a parser or a server may read it; empty for text that is
/// not an address.
pub(crate) fn spellings_of_address(written: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !written.contains(':') && !written.contains('%') {
        return found;
    }
    for text in spellings(written) {
        for tidy in tidy_address(&text).into_iter().flatten() {
            add_new(&mut found, tidy);
        }
        let Ok(mut url) = Url::parse(&text) else {
            continue;
        };
        add_new(&mut found, url.to_string());
        // Both fail for an address without a host, which has no user either.
        if url.set_username("").is_ok() && url.set_password(None).is_ok() {
            add_new(&mut found, url.to_string());
        }
    }
    found
}

/// Returns an address without `.`, `..` and empty segments in two forms: one in which `..` cannot leave
/// the host, and one for servers that know no hosts. Returns `None` for text that is not an address.
fn tidy_address(text: &str) -> Option<[String; 2]> {
    let (scheme, behind) = text.split_once("://")?;
    let scheme = scheme.trim();
    let behind = behind.replace('\\', "/");
    let (host, path) = behind.split_once('/').unwrap_or((&behind, ""));
    Some([
        format!("{scheme}://{host}{}", tidy(path)),
        format!("{scheme}://{}", tidy_relative(&behind)),
    ])
}

/// Returns true if a text that is not an absolute path may still lead to another folder.
fn climbs(text: &str) -> bool {
    text.starts_with('~') || text.contains('\0') || text.split(['/', '\\']).any(|it| it == "..")
}

/// Returns true if a resolved path is the folder or inside it, without regard to case: some file
/// systems ignore case.
pub(crate) fn may_be_inside(path: &str, folder: &str) -> bool {
    is_inside(path, folder) || is_inside(&path.to_lowercase(), &folder.to_lowercase())
}

/// Returns true if a resolved path is the folder or inside it.
pub(crate) fn is_inside(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Percent-decodes a text once; bytes that are not UTF-8 become `\u{fffd}`.
fn decode(text: &str) -> String {
    decode_where(text, |_| true)
}

/// Like `decode`, but only for escapes such as `%2e` for which `is_decoded` returns true.
fn decode_where(text: &str, is_decoded: impl Fn(&str) -> bool) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| text.get(at..at + 3)).flatten();
        let escape = escape.filter(|escape| is_decoded(escape));
        let byte = escape.and_then(|escape| u8::from_str_radix(&escape[1..], 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Option<&str> = Some("/home/me");

    #[track_caller]
    fn check_reaches(text: &str, folder: &str) {
        let readings = Readings::of(text, HOME);
        let reaches = readings.whole.iter().any(|path| is_inside(path, folder));
        assert!(reaches, "{text:?}: {readings:?}");
    }

    #[track_caller]
    fn check_whole(text: &str, expected: &[&str]) {
        let readings = Readings::of(text, HOME);
        assert_eq!(readings.whole, expected, "{text:?}");
        assert_eq!(readings.relative, [""; 0], "{text:?}");
    }

    #[test]
    fn every_spelling_of_a_file_is_read() {
        for text in [
            "/home/me/.ssh/id",
            "/home/me/x/../.ssh//./id",
            "~/.ssh/id",
            " /home/me/.ssh/id\n",
            "\\home\\me\\.ssh\\id",
            "/../../home/me/.ssh/id/",
            "/home/me/.s\rsh/id",
            "/home/me/%2essh/id",
            "/home/me/%252essh/id",
            "%2fhome%2fme%2f.ssh%2fid",
            "//host/home/me/.ssh/id",
            "/home/me/.ssh;x",
            "/home/me/.ssh?x",
            "C:\\home\\me\\.ssh\\id",
            "file:///home/me/.ssh/id",
            "FILE://localhost/home/me/%2Essh/id",
            "file:/home/me/.ssh/id",
            "file:home/me/.ssh/id",
            "file://home/me/.ssh/id",
            "file://host/home/me/.ssh/id",
            "file:\\\\\\home\\me\\.ssh\\id",
            "file:/\\/home/me/.ssh/id",
            "file:////home/me/.ssh/id",
            "file:~/.ssh/id",
            "file:///x/%2e%2e/home/me/.ssh/id",
            "file:///x%2f..%2fhome/me/.ssh/id",
            "file:///x/.\t./home/me/.ssh/id",
            "file:///home/me/.ssh/id?x#y",
            "file:///C|/../home/me/.ssh/id",
            "fi\nle:///home/me/.ssh/id",
            "\u{1}file:///home/me/.ssh/id",
            "%66ile:///home/me/.ssh/id",
            "\u{feff}file:///home/me/.ssh/id",
            "<URL:file:///home/me/.ssh/id>",
        ] {
            check_reaches(text, "/home/me/.ssh");
        }
        let dots = Readings::of("file:///home/me/x/.../y", None);
        assert_eq!(dots.whole, ["/home/me/x/.../y"], "three dots are a name");
    }

    #[test]
    fn an_ordinary_path_has_one_reading() {
        check_whole("/srv/a b/ü.txt", &["/srv/a b/ü.txt"]);
        check_whole("/srv//a/", &["/srv/a"]);
        check_whole("/srv/12:30", &["/srv/12:30"]);
        check_whole("file:///srv/a", &["/srv/a"]);
        check_whole("file:///srv/a%20b", &["/srv/a%20b", "/srv/a b"]);
        for text in ["src/main.rs", "~root/x", "/a\0b", "https://h/srv/a"] {
            let readings = Readings::of(text, HOME);
            let is_relative = readings.relative.contains(&text.to_owned());
            assert!(is_relative, "{text:?}: {readings:?}");
        }
    }

    #[test]
    fn a_folder_is_read_as_it_is_written() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(resolve_folder(text, HOME).as_deref(), expected, "{text}");
        };
        check("~/jobs/", Some("/home/me/jobs"));
        check("~", Some("/home/me"));
        check("/srv/50%25", Some("/srv/50%25"));
        check("file:///srv/a%20b", Some("/srv/a b"));
        check("work", None);
        check("~other/x", None);
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
            "bank://%256fne/two",
        ] {
            let spellings = spellings_of_address(text);
            let is_found = spellings.contains(&"bank://one/two".to_owned());
            assert!(is_found, "{text}: {spellings:?}");
        }
        for text in [
            "https:\\\\user@h.example:443\\admin",
            "HTTPS:h.example/./admin",
        ] {
            let spellings = spellings_of_address(text);
            let is_found = spellings.contains(&"https://h.example/admin".to_owned());
            assert!(is_found, "{text}: {spellings:?}");
        }
        assert_eq!(spellings_of_address("one/two"), [""; 0]);
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
