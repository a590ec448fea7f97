//! Names of servers and addresses of tools, and the accepted misspellings.

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};

/// The longest server name, in characters (interface, section 2).
pub const SERVER_NAME_CHARS_MAX: usize = 32;

/// The key of a `[servers.NAME]` table: lower-case letters, digits and `-`.
///
/// The name is ours and not the server's, so it is strict, and a [`ToolRef`] needs no escaping. A clone
/// allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(Arc<str>);

impl TryFrom<String> for ServerName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<ServerName> for Arc<str> {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl ServerName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the built-in server, whose tools are our own (`proxy/read_result`).
    pub fn built_in() -> Self {
        static NAME: LazyLock<ServerName> = LazyLock::new(|| ServerName(BUILT_IN.into()));
        NAME.clone()
    }

    /// Returns true for the built-in server.
    pub fn is_built_in(&self) -> bool {
        *self.0 == *BUILT_IN
    }

    /// Returns the server whose tools are saved scripts. No other server may have its name.
    pub fn scripts() -> Self {
        Self(SCRIPTS.into())
    }

    /// Returns true for the server of saved scripts.
    pub fn is_scripts(&self) -> bool {
        *self.0 == *SCRIPTS
    }

    /// Returns the server whose tools are command-line programs, if the configuration has some.
    pub fn commands() -> Self {
        Self(COMMANDS.into())
    }
}

const BUILT_IN: &str = "proxy";
const COMMANDS: &str = "commands";
const SCRIPTS: &str = "scripts";

/// An invalid name, and why it is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// An empty name.
    #[error("a server name cannot be empty")]
    Empty,
    /// A server's name over [`SERVER_NAME_CHARS_MAX`].
    #[error("server name `{0}` is longer than {SERVER_NAME_CHARS_MAX} characters")]
    TooLong(String),
    /// A character that a server's name cannot hold.
    #[error("server name `{name}` contains {found:?}; use lower-case letters, digits and `-`")]
    Character {
        /// The whole name.
        name: String,
        /// The first such character.
        found: char,
    },
    /// A server's name that begins with `-`.
    #[error("server name `{0}` starts with `-`")]
    Start(String),
    /// The name of the built-in server.
    #[error("server name `proxy` is reserved for the built-in server")]
    Taken,
    /// A tool's address without a `/`.
    #[error("`{0}` has no server part; tools are named `server/tool`")]
    NoServer(String),
    /// A tool's address with nothing after its `/`.
    #[error("`{0}` has no tool part; tools are named `server/tool`")]
    NoTool(String),
}

impl FromStr for ServerName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.chars().count() > SERVER_NAME_CHARS_MAX {
            return Err(NameError::TooLong(name.to_owned()));
        }
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if let Some(found) = name.chars().find(|&c| !allowed(c)) {
            let name = name.to_owned();
            return Err(NameError::Character { name, found });
        }
        if name.starts_with('-') {
            return Err(NameError::Start(name.to_owned()));
        }
        if name == BUILT_IN {
            return Err(NameError::Taken);
        }
        Ok(Self(name.into()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tool's address in the registry, written `server/tool`.
///
/// The tool's own name comes from its server and may contain any character, including `/`, so the text
/// is split at the *first* slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolRef {
    /// The server that offers it.
    pub server: ServerName,
    /// The tool's own name, as its server lists it.
    pub tool: String,
}

impl ToolRef {
    /// Creates the address of a server's tool.
    pub fn new(server: ServerName, tool: impl Into<String>) -> Self {
        let tool = tool.into();
        Self { server, tool }
    }

    /// Returns the address as text, without the cost of formatting.
    pub fn full_name(&self) -> String {
        [self.server.as_str(), "/", &self.tool].concat()
    }
}

impl FromStr for ToolRef {
    type Err = NameError;

    /// Parses the exact spelling, as [`ToolRef`] prints it, including `proxy/...`.
    fn from_str(name: &str) -> Result<Self, NameError> {
        let parts = name.split_once('/');
        let (server, tool) = parts.ok_or_else(|| NameError::NoServer(name.to_owned()))?;
        if tool.is_empty() {
            return Err(NameError::NoTool(name.to_owned()));
        }
        let server = match server {
            BUILT_IN => ServerName::built_in(),
            _ => server.parse()?,
        };
        Ok(Self::new(server, tool))
    }
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server, self.tool)
    }
}

/// Normalizes a name: removes surrounding white space, lower-cases it, and replaces `-` by `_`.
pub fn fold(name: &str) -> String {
    name.trim()
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c == '-' { '_' } else { c })
        .collect()
}

/// Returns true if two names of members of a JSON object differ at most in letter case. Some servers, such as
/// those in Go, read one as the other, so rules for calls and settings of arguments do too (decision 0027).
pub fn is_same_member_name(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    // Upper case first, so that several letters with one upper-case form become the same.
    let fold_case = |text: &str| text.to_uppercase().to_lowercase();
    fold_case(one) == fold_case(other)
}

/// Returns at most `max` of the `names` that are similar to `unknown`, the most similar first.
/// Includes only names that a user would recognize as a typo or as a short form.
pub fn near<'a>(
    unknown: &str,
    names: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let unknown = fold(unknown);
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(&unknown, &fold(name)), name))
        .filter(|(score, _)| *score >= NEAR_SCORE_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(max).map(|(_, name)| name).collect()
}

/// The least similarity of a name and its typo.
const NEAR_SCORE_MIN: f64 = 0.75;
/// Longer names are not compared: the cost is the product of their lengths.
const NEAR_BYTES_MAX: usize = 256;

/// Computes a similarity from 0 to 1. Jaro-Winkler alone rates unrelated names with the same prefix too
/// high (`get_user`, `get_weather`), edit distance alone rates short names too low, so this is the mean
/// of both.
fn likeness(a: &str, b: &str) -> f64 {
    if a.len().max(b.len()) > NEAR_BYTES_MAX {
        return 0.0;
    }
    if is_short_form(a, b) || is_short_form(b, a) {
        return NEAR_SCORE_MIN;
    }
    f64::midpoint(
        strsim::jaro_winkler(a, b),
        strsim::normalized_damerau_levenshtein(a, b),
    )
}

/// Returns true for `repo` of `repository` and `path` of `file_path`, but not for `list` of
/// `list_notifications`.
fn is_short_form(short: &str, long: &str) -> bool {
    let is_end = long.starts_with(short) || long.ends_with(short);
    // Edit distance rates names better that differ by a letter or two.
    is_end && short.len() >= 4 && short.len() * 5 >= long.len() * 2 && long.len() - short.len() > 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn server_names_are_strict() {
        let long = "a".repeat(SERVER_NAME_CHARS_MAX + 1);
        let check = |name: &str, expected: Option<NameError>| {
            assert_eq!(name.parse::<ServerName>().err(), expected, "{name}");
        };
        let character = |name: &str, found| NameError::Character {
            name: name.to_owned(),
            found,
        };
        check("github", None);
        check("2-b", None);
        check(&long[1..], None);
        check("", Some(NameError::Empty));
        check(&long, Some(NameError::TooLong(long.clone())));
        check("Git", Some(character("Git", 'G')));
        check("a/b", Some(character("a/b", '/')));
        check("-a", Some(NameError::Start("-a".to_owned())));
        check("proxy", Some(NameError::Taken));
    }

    #[test]
    fn tools_are_addressed_by_server_and_name() {
        let check = |name: &str, tool: &str| {
            assert_eq!(name.parse::<ToolRef>().unwrap().tool, tool);
        };
        check("a/b/c", "b/c");
        check("a/ns.v2__list.items", "ns.v2__list.items");
        check("proxy/read_result", "read_result");
        assert_eq!(
            "a".parse::<ToolRef>(),
            Err(NameError::NoServer("a".to_owned()))
        );
        assert_eq!(
            "a/".parse::<ToolRef>(),
            Err(NameError::NoTool("a/".to_owned()))
        );
        assert_eq!("/a".parse::<ToolRef>(), Err(NameError::Empty));
    }

    #[test]
    fn names_of_members_have_no_letter_case() {
        for other in ["owner", "Owner", "OWNER"] {
            assert!(is_same_member_name("owner", other), "{other}");
        }
        // As Go compares: long s, and the sign for kelvin.
        assert!(is_same_member_name("token_is", "to\u{212a}en_i\u{17f}"));
        assert!(is_same_member_name("straße", "STRASSE"));
        for other in ["own-er", "owner ", "owners", "\u{43e}wner", ""] {
            assert!(!is_same_member_name("owner", other), "{other}");
        }
    }

    #[test]
    fn near_names_are_slips_not_cousins() {
        let names = [
            "create_issue",
            "list_issues",
            "get_user",
            "get_weather",
            "delete-file",
        ];
        let check = |asked: &str, expected: &[&str]| {
            assert_eq!(near(asked, names, 3), expected, "{asked}");
        };
        check("creat_issue", &["create_issue"]);
        check("createIssue", &["create_issue"]);
        check("Create-Issue", &["create_issue"]);
        check("get_users", &["get_user"]);
        check("delete_files", &["delete-file"]);
        check("issue", &["create_issue", "list_issues"][..1]);
        check("weather", &["get_weather"]);
        check("frobnicate", &[]);
        check("", &[]);
    }

    proptest! {
        #[test]
        fn an_address_is_read_as_it_is_printed(server in "[a-z0-9][a-z0-9-]{0,31}", tool in ".+") {
            prop_assume!(server != BUILT_IN);
            let address = ToolRef::new(server.parse().unwrap(), tool);
            prop_assert_eq!(address.to_string().parse::<ToolRef>(), Ok(address));
        }

        #[test]
        fn folding_twice_changes_nothing_more(name in ".*") {
            prop_assert_eq!(fold(&fold(&name)), fold(&name));
        }
    }
}
