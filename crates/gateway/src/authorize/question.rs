//! The question whether a call may be made: it shows everything that its person approves.

use std::borrow::Cow;

use jsonrpc::{Fields, quote};
use printable::{is_hidden, seen_json};

/// The longest name and arguments that a person is asked about, in characters: a file of some
/// kilobytes fits, and nobody reads a longer dialog.
pub(crate) const SHOWN_CHARS_MAX: usize = 20_000;

/// A call in the form for its person, with one member of its arguments on each line. The error is
/// its length in characters, if that is more than [`SHOWN_CHARS_MAX`].
pub(crate) fn show_call(called: &str, arguments: &str) -> Result<String, usize> {
    let mut shown = format!("Allow {called}?\narguments:");
    match Fields::of(arguments) {
        Some(fields) if fields.0.is_empty() => shown.push_str(" none"),
        Some(fields) => shown.extend(fields.0.iter().map(|(name, value)| {
            let (name, value) = (quote(name), show_json(value.get()));
            format!("\n  {}: {value}", seen_json(&name))
        })),
        None => shown.extend(["\n  ", &show_json(arguments)]),
    }
    match shown.chars().count() {
        chars if chars > SHOWN_CHARS_MAX => Err(chars),
        _ => Ok(shown),
    }
}

/// A name or an address with nothing hidden in it: as JSON if a character would be invisible.
pub(crate) fn show_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_whitespace() && !is_hidden(c) && !matches!(c, '"' | '\\');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(seen_json(&quote(name)).into_owned())
}

/// JSON on one line, so that no value looks like a further member.
fn show_json(json: &str) -> String {
    seen_json(&tool::minified(json)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_shown_whole_on_a_line_of_its_own() {
        let text = "x".repeat(8_000);
        let arguments = format!(
            "{{ \"content\" : \"{text}\",\n \"path\": \"/a\\npath: /b\", \"path\": [1,\n {{\"a b\": \"c  d\\\"\\n\"}}],\
             \"b\u{202e}\": \"\u{200b}\" }}"
        );
        let shown = show_call("fs/write", &arguments).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        let content = format!("  \"content\": \"{text}\"");
        let expected = [
            "Allow fs/write?",
            "arguments:",
            &content,
            r#"  "path": "/a\npath: /b""#,
            r#"  "path": [1,{"a b":"c  d\"\n"}]"#,
            r#"  "b\u202e": "\u200b""#,
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            show_call("a/b", "{}").unwrap(),
            "Allow a/b?\narguments: none"
        );
    }

    #[test]
    fn nothing_is_cut() {
        let call = |chars: usize| show_call("a/b", &format!("{{\"t\":\"{}\"}}", "ü".repeat(chars)));
        let around = call(0).unwrap().chars().count();
        assert!(call(SHOWN_CHARS_MAX - around).is_ok());
        assert_eq!(call(SHOWN_CHARS_MAX - around + 1), Err(SHOWN_CHARS_MAX + 1));
        let name = "n".repeat(SHOWN_CHARS_MAX);
        assert!(show_call(&name, "{}").is_err());
    }

    #[test]
    fn a_name_hides_nothing() {
        assert_eq!(show_name("file:///a/ü?x=1"), "file:///a/ü?x=1");
        assert_eq!(show_name("wipe\u{200b}"), r#""wipe\u200b""#);
        assert_eq!(show_name("a b"), r#""a b""#);
        assert_eq!(show_name("wipe\\"), r#""wipe\\""#);
        assert_eq!(show_name("a\n?"), r#""a\n?""#);
    }
}
