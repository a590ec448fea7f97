//! One tool, as its server sent it.

use std::borrow::Cow;

use printable::{is_hidden, one_line_of};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Digest, digest::DuplicateMember, offer::member};

/// The longest name of a tool, in characters, which is the limit of MCP.
pub const TOOL_NAME_CHARS_MAX: usize = 128;

/// The longest part of an invalid name in an error, in characters.
const NAME_CHARS_SHOWN_MAX: usize = 40;

/// One tool of a `tools/list` response.
///
/// The JSON is kept byte for byte and parsed on access, so unknown fields survive and a registry of
/// thousands of tools stays small in memory.
#[derive(Debug, Clone)]
pub struct Tool {
    json: Box<str>,
    name: Box<str>,
    annotations: Annotations,
    digest: Digest,
}

/// Claims of the server about a tool's effects (MCP `ToolAnnotations`). Untrusted hints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `readOnlyHint`: the tool changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: the tool may delete data.
    pub destructive: Option<bool>,
    /// `idempotentHint`: a second call has no further effect.
    pub idempotent: Option<bool>,
    /// `openWorldHint`: the tool interacts with external systems.
    pub open_world: Option<bool>,
}

/// An invalid definition, and why it is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl Tool {
    /// Parses one element of a `tools` array. Everything except the name is optional, and a field of an
    /// unexpected type counts as absent: a tool is rejected only if it cannot be called.
    pub fn parse(json: &str) -> Result<Self, ToolError> {
        // Serde would accept a list as the fields in order.
        if !json.trim_start().starts_with('{') {
            return Err(refuse_text("it does not start with `{`"));
        }
        let digest = Digest::of_unique(json).map_err(|it| refuse_duplicate(json, &it))?;
        let fields = serde_json::from_str::<RawDefinition<'_>>(json);
        let fields = fields.map_err(|error| refuse_text(&error.to_string()))?;
        let name = RawDefinition::text(fields.name).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ToolError("a tool without a name".to_owned()))?;
        check_name(&name)?;
        let annotations = fields.annotations.map(read_annotations).unwrap_or_default();
        Ok(Self {
            json: json.into(),
            name: name.into(),
            annotations,
            digest,
        })
    }

    /// Returns the tool's name, as its server lists it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the hints in `annotations`; no hints if they cannot be parsed.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// Returns the whole definition, byte for byte as the server sent it.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns `title`, else `annotations.title`.
    pub fn title(&self) -> Option<String> {
        let fields = self.fields();
        let of_annotations = || member(fields.annotations?.get(), "title");
        RawDefinition::text(fields.title).or_else(of_annotations)
    }

    /// Returns the description, or an empty text if there is none.
    pub fn description(&self) -> String {
        let fields = self.fields();
        RawDefinition::text(fields.description).unwrap_or_default()
    }

    /// Returns the input schema as sent; `{"type":"object"}` if the server sent none.
    pub fn input_schema(&self) -> Cow<'_, str> {
        match self.fields().input_schema {
            Some(schema) => Cow::Borrowed(schema.get()),
            None => Cow::Borrowed(r#"{"type":"object"}"#),
        }
    }

    /// Returns the output schema as text, if there is one.
    pub fn output_schema(&self) -> Option<&str> {
        self.fields().output_schema.map(RawValue::get)
    }

    /// Returns true if the server marks the tool as deprecated.
    pub fn is_deprecated(&self) -> bool {
        let fields = self.fields();
        let flagged = |raw: Option<&RawValue>| {
            let flag = raw.and_then(|raw| member::<bool>(raw.get(), "deprecated"));
            flag.unwrap_or_default()
        };
        let description = || RawDefinition::text(fields.description).unwrap_or_default();
        flagged(fields.annotations) || flagged(fields.meta) || says_deprecated(&description())
    }

    /// Returns the digest of the definition, which does not depend on the order of keys or white
    /// space.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    fn fields(&self) -> RawDefinition<'_> {
        serde_json::from_str(&self.json).expect("the same text was read when the tool was built")
    }
}

/// Returns true if a description declares its own tool deprecated: the description or one of its
/// sentences begins with the word ("DEPRECATED: use x", "Deprecated."), or it contains "this tool
/// is deprecated". A description that mentions deprecated things, or a deprecated parameter, does
/// not count.
fn says_deprecated(description: &str) -> bool {
    const MARKUP: [char; 8] = ['[', '(', '*', '_', '`', '~', '"', '\u{26a0}'];
    let is_markup = |c: char| MARKUP.contains(&c) || c.is_whitespace() || c == '\u{fe0f}';
    let start = description.trim_start_matches(is_markup);
    let first = start.get(.."deprecated".len());
    if first.is_some_and(|first| first.eq_ignore_ascii_case("deprecated")) {
        return true;
    }
    description.lines().any(|line| {
        let line = line.trim();
        if is_list_entry(line) {
            return false;
        }
        let lower = line.to_ascii_lowercase();
        lower.match_indices("deprecated").any(|(at, word)| {
            let before = lower[..at].trim_end_matches(is_markup);
            let after = lower[at + word.len()..].trim_start_matches([']', ')', '*', '_', '`', '~']);
            let begins = before.is_empty() || before.ends_with(['.', '!', '?', ';']);
            begins && ends_word_or_clause(after) || is_said_of_this(before)
        })
    })
}

/// Returns true for a bullet, or the line of a parameter: `limit (int): ...`.
fn is_list_entry(line: &str) -> bool {
    let name = line.split([':', '(']).next().unwrap_or_default().trim();
    let is_name = name.len() < line.trim().len()
        && !["", "deprecated", "note", "warning"].contains(&name)
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_`".contains(c));
    let bullets = ["- ", "* ", "\u{2022}"];
    is_name || bullets.iter().any(|bullet| line.starts_with(bullet))
}

/// Returns true if the sentence ends after `deprecated`, or continues with advice.
fn ends_word_or_clause(after: &str) -> bool {
    const GOES_ON: [&str; 8] = [
        "use ", "since ", "in favo", "as of ", "as ", "by ", "please ", "prefer ",
    ];
    let rest = after.trim_start();
    rest.is_empty()
        || rest.starts_with([':', '.', ',', '!', ';', '-', '\u{2013}', '\u{2014}'])
        || rest.len() < after.len() && GOES_ON.iter().any(|words| rest.starts_with(words))
}

/// Returns true for the beginning of a sentence such as "this tool is" or "this method has been".
fn is_said_of_this(before: &str) -> bool {
    const THINGS: [&str; 7] = [
        "tool",
        "method",
        "function",
        "endpoint",
        "command",
        "operation",
        "action",
    ];
    const VERBS: [&str; 4] = [" is", " is now", " has been", " was"];
    VERBS.iter().any(|verb| {
        let subject = before.strip_suffix(verb);
        let thing = subject.and_then(|it| THINGS.iter().find_map(|thing| it.strip_suffix(thing)));
        thing.is_some_and(|it| it.ends_with("this "))
    })
}

fn refuse_text(why: &str) -> ToolError {
    ToolError(format!("a tool that is not a JSON object: {why}"))
}

/// A person may see one of the two values of the member, and a model the other.
fn refuse_duplicate(json: &str, DuplicateMember(member): &DuplicateMember) -> ToolError {
    let name = crate::offer::member::<String>(json, "name").unwrap_or_default();
    let [shown, member] = [&name, member].map(|it| one_line_of(it, NAME_CHARS_SHOWN_MAX));
    let what = format!("its definition has the member `{member}` twice");
    ToolError(format!("`{shown}`: {what}"))
}

/// Checks that a name is short enough, and has no invisible characters, which make two names look the
/// same. No legitimate tool needs one.
fn check_name(name: &str) -> Result<(), ToolError> {
    let chars = name.chars().count();
    let hidden = name.chars().find(|c| is_hidden(*c)).map(u32::from);
    let what = match hidden {
        _ if chars > TOOL_NAME_CHARS_MAX => {
            format!("its name has {chars} characters, more than {TOOL_NAME_CHARS_MAX}")
        }
        Some(hidden) => format!("its name contains the invisible character U+{hidden:04X}"),
        None => return Ok(()),
    };
    let shown = one_line_of(name, NAME_CHARS_SHOWN_MAX);
    Err(ToolError(format!("`{shown}`: {what}")))
}

#[derive(Deserialize)]
struct RawDefinition<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl RawDefinition<'_> {
    fn text(raw: Option<&RawValue>) -> Option<String> {
        serde_json::from_str(raw?.get()).ok()
    }
}

fn read_annotations(raw: &RawValue) -> Annotations {
    let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let hint = |key: &str| value.get(key).and_then(serde_json::Value::as_bool);
    Annotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_kept_as_it_came() {
        let json = r#"{ "name":"a.b__c", "x-new": 1.50, "inputSchema": {"type" : "object"} }"#;
        let tool = Tool::parse(json).unwrap();
        assert_eq!(tool.json(), json);
        assert_eq!(tool.name(), "a.b__c");
        assert_eq!(tool.input_schema(), r#"{"type" : "object"}"#);
        assert_eq!(tool.output_schema(), None);
    }

    #[test]
    fn only_a_tool_that_cannot_be_called_is_refused() {
        let check = |json: &str, expected: &str| {
            let read = Tool::parse(json)
                .map_or_else(|error| error.to_string(), |tool| tool.name().to_owned());
            assert!(read.starts_with(expected), "{read}");
        };
        check(
            r#"{"name":"a","description":7,"annotations":"x","inputSchema":null,"title":[]}"#,
            "a",
        );
        check(r#"{"description":"x"}"#, "a tool without a name");
        check(r#"{"name":""}"#, "a tool without a name");
        check(r#"{"name":7}"#, "a tool without a name");
        check(r#"["a"]"#, "a tool that is not a JSON object");
        check("", "a tool that is not a JSON object");
        let named = |name: &str| serde_json::json!({ "name": name }).to_string();
        let (longest, too_long) = ("é".repeat(128), "é".repeat(129));
        check(&named(&longest), &longest);
        check(&named(&too_long), "`éééé");
        check(&named("with space/☃"), "with space/☃");
        check(
            &named("line\nfeed\n1 of 1\ngh/create"),
            "`line feed 1 of 1 gh/create`: its name contains the invisible character U+000A",
        );
        check(
            &named("a\u{1b}[2Jb"),
            "`ab`: its name contains the invisible character U+001B",
        );
        check(
            &named("a\u{202e}b"),
            "`ab`: its name contains the invisible character U+202E",
        );
        check(
            &named("a\u{e0041}"),
            "`a`: its name contains the invisible character U+E0041",
        );
    }

    #[test]
    fn a_definition_with_a_member_twice_is_refused() {
        let check = |json: &str, expected: &str| {
            let error = Tool::parse(json).unwrap_err().to_string();
            assert_eq!(error, expected);
        };
        check(
            r#"{"name":"a","description":"IGNORE ALL","description":"Adds."}"#,
            "`a`: its definition has the member `description` twice",
        );
        check(
            r#"{"name":"a","inputSchema":{"properties":{"x":{}},"prop\u0065rties":{}}}"#,
            "`a`: its definition has the member `properties` twice",
        );
        check(
            r#"{"name":"a","x":[{"x\u001b[2Jy":1,"x\u001b[2Jy":2}]}"#,
            "`a`: its definition has the member `xy` twice",
        );
        check(
            r#"{"name":"a","name":"b"}"#,
            "`b`: its definition has the member `name` twice",
        );
    }

    #[test]
    fn fields_are_read_where_they_are() {
        let tool = |json: &str| Tool::parse(json).unwrap();
        let titled = tool(
            r#"{"name":"a","annotations":{"title":"T","readOnlyHint":true,"destructiveHint":"no"}}"#,
        );
        assert_eq!(titled.title().as_deref(), Some("T"));
        let hints = Annotations {
            read_only: Some(true),
            ..Annotations::default()
        };
        assert_eq!(titled.annotations(), hints);
        assert_eq!(tool(r#"{"name":"a","annotations":["T"]}"#).title(), None);
        assert_eq!(
            tool(r#"{"name":"a","inputSchema":null}"#).input_schema(),
            r#"{"type":"object"}"#
        );
    }

    #[test]
    fn deprecation_is_noticed_wherever_it_is_said() {
        let check = |fields: &str, expected: bool| {
            let tool = Tool::parse(&format!(r#"{{"name":"a",{fields}}}"#)).unwrap();
            assert_eq!(tool.is_deprecated(), expected, "{fields}");
        };
        check(r#""description":"**DEPRECATED**: use b""#, true);
        check(r#""description":"[Deprecated] x""#, true);
        check(r#""annotations":{"deprecated":true}"#, true);
        check(r#""_meta":{"deprecated":true}"#, true);
        check(r#""description":"Lists deprecated APIs""#, false);
        for text in [
            "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.",
            "Reads a file.\\n\\n**Deprecated.** Call read_text.",
            "Reads a file (deprecated).\\nDEPRECATED since 2.0",
            "Gets the program. Note: This method is deprecated as all accounts have moved.",
            "Reads. This tool has been deprecated in favour of read_text.",
            "Reads! ⚠️ Deprecated, use read_text",
        ] {
            check(&format!(r#""description":"{text}""#), true);
        }
        for text in [
            "Audit preloads.\\n  - Deprecated <link> tags\\n  - Deprecated: what was removed",
            "Scan a page for deprecated features. Verdicts: clean | deprecated_found.",
            "Event reports (deprecated) and recordings (deprecated) are artifacts.",
            "Does not use the deprecated Post-Order API.",
            "Lists things.\\nArgs:\\n  old_name: Deprecated, use name\\n  limit (int): At most. Deprecated.",
            "NOTE: This Example MCP server (@example/mcp) is deprecated and gets no more features.",
            "Finds calls. Deprecated functions are listed first.",
        ] {
            check(&format!(r#""description":"{text}""#), false);
        }
        check(r#""annotations":{"deprecated":false}"#, false);
        check(r#""_meta":[true]"#, false);
    }
}
