//! Finds a tool by its name, in every accepted spelling.

use std::collections::{BTreeSet, HashMap};

use tool::{SERVER_NAME_CHARS_MAX, ServerName, ToolRef, fold, near};

use crate::limits::NEAREST_MAX;
use crate::pins::HeldBy;

/// A name that refers to no tool, or to several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No known tool has this name.
    #[error("no tool `{asked}`")]
    Unknown {
        /// The name without surrounding white space.
        asked: String,
        /// The configured server that the name begins with.
        server: Option<ServerName>,
    },
    /// The name refers to several tools.
    #[error("`{asked}` names several tools")]
    Ambiguous {
        /// The name without surrounding white space.
        asked: String,
        /// The tools that the name may refer to.
        candidates: Vec<ToolRef>,
    },
    /// The configuration denies the tool.
    #[error("`{at}` is kept out by {rule}")]
    Denied {
        /// The tool that the name refers to.
        at: ToolRef,
        /// The rule, as it appears in the configuration.
        rule: String,
    },
    /// The tool is blocked until a user accepts it.
    #[error("`{at}` is held back until it is accepted")]
    Held {
        /// The tool that the name refers to.
        at: ToolRef,
        /// The reason why the tool is blocked.
        by: HeldBy,
    },
}

/// Maps every spelling of a name to the positions of the tools that it may refer to.
///
/// A name that begins with a configured server, in any spelling, refers to a tool of that server or
/// to none: the tool names of another server are untrusted.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    /// Every configured server by its folded name, including servers without tools.
    servers: HashMap<String, ServerName>,
    refs: Vec<ToolRef>,
    full: HashMap<String, usize>,
    bare: HashMap<String, Vec<usize>>,
    full_folded: HashMap<String, Vec<usize>>,
    bare_folded: HashMap<String, Vec<usize>>,
}

/// Normalizes a title: like a name, and a space is the same as `_`.
pub(crate) fn fold_title(title: &str) -> String {
    fold(title).replace(' ', "_")
}

/// A name split into a configured server and the rest.
#[derive(Debug)]
struct Claim<'n, 't> {
    server: &'n ServerName,
    /// The text after the server and the separator.
    rest: &'t str,
    /// The whole text, because a server may begin the names of its tools with its own name.
    whole: &'t str,
}

impl NameIndex {
    pub(crate) fn new<'a>(
        refs: impl IntoIterator<Item = &'a ToolRef>,
        servers: impl IntoIterator<Item = &'a ServerName>,
    ) -> Self {
        let by_name = |server: &ServerName| (fold(server.as_str()), server.clone());
        let mut names = Self {
            refs: refs.into_iter().cloned().collect(),
            servers: servers.into_iter().map(by_name).collect(),
            ..Self::default()
        };
        for (place, at) in names.refs.iter().enumerate() {
            let full = at.to_string();
            for (places, name) in [
                (&mut names.full_folded, fold(&full)),
                (&mut names.bare, at.tool.clone()),
                (&mut names.bare_folded, fold(&at.tool)),
            ] {
                places.entry(name).or_default().push(place);
            }
            names.full.insert(full, place);
        }
        names
    }

    pub(crate) fn at(&self, place: usize) -> &ToolRef {
        &self.refs[place]
    }

    /// Returns the tool with this canonical name, `server/tool`.
    pub(crate) fn full(&self, asked: &str) -> Option<usize> {
        self.full.get(asked).copied()
    }

    /// Returns the tool whose server and tool name are spelled exactly, with any separator.
    pub(crate) fn exact(&self, asked: &str) -> Option<usize> {
        if let Some(place) = self.full(asked) {
            return Some(place);
        }
        let claims = self.list_claims(asked.trim());
        let mut claims = claims.iter();
        claims.find_map(|claim| self.find_spelled(claim.server, claim.rest))
    }

    /// Returns the tools of the most exact interpretation that matches any tool.
    pub(crate) fn mean(&self, asked: &str) -> Vec<usize> {
        let asked = asked.trim();
        // The canonical name, which most callers use.
        if let Some(place) = self.full(asked) {
            return vec![place];
        }
        let claims = self.list_claims(asked);
        if !claims.is_empty() {
            return self.find_claimed(&claims);
        }
        let bare = self.bare.get(asked);
        let bare = bare.or_else(|| self.bare_folded.get(&fold(asked)));
        bare.cloned().unwrap_or_default()
    }

    /// Returns the configured server that a name begins with or equals.
    pub(crate) fn server(&self, asked: &str) -> Option<&ServerName> {
        let claims = self.list_claims(asked.trim());
        Some(claims.first()?.server)
    }

    /// Returns the configured server that a name begins with, and the text after it.
    pub(crate) fn claimed(&self, asked: &str) -> Option<ToolRef> {
        let claims = self.list_claims(asked.trim());
        let claim = claims.iter().find(|claim| !claim.rest.is_empty());
        let claim = claim.or(claims.first())?;
        Some(ToolRef::new(claim.server.clone(), claim.rest))
    }

    /// Returns the tools with this title; `titles` has their positions by [`fold_title`]. A name that
    /// begins with a configured server refers to a title of that server only.
    pub(crate) fn mean_title(
        &self,
        asked: &str,
        titles: &HashMap<String, Vec<usize>>,
    ) -> Vec<usize> {
        let asked = asked.trim();
        let claims = self.list_claims(asked);
        let places = move |text: &str| titles.get(&fold_title(text)).into_iter().flatten().copied();
        let found: BTreeSet<usize> = if claims.is_empty() {
            places(asked).collect()
        } else {
            let claimed = claims.iter().filter(|claim| !claim.rest.is_empty());
            let claimed = claimed.flat_map(|claim| {
                let places = places(claim.rest).chain(places(claim.whole));
                places.filter(move |place| self.refs[*place].server == *claim.server)
            });
            claimed.collect()
        };
        found.into_iter().collect()
    }

    /// Tries the interpretations in order: the text after the server as written, the whole text as
    /// written, then both folded.
    fn find_claimed(&self, claims: &[Claim<'_, '_>]) -> Vec<usize> {
        let orders = [(false, false), (false, true), (true, false), (true, true)];
        let mut found = orders.into_iter().map(|(is_folded, is_whole)| {
            let places = claims.iter().flat_map(|claim| {
                let tool = if is_whole { claim.whole } else { claim.rest };
                if is_folded {
                    self.list_folded(claim.server, tool)
                } else {
                    self.find_spelled(claim.server, tool).into_iter().collect()
                }
            });
            places.collect::<BTreeSet<usize>>()
        });
        let places = found.find(|places| !places.is_empty());
        places.into_iter().flatten().collect()
    }

    fn list_folded(&self, server: &ServerName, tool: &str) -> Vec<usize> {
        let full = fold(&format!("{server}/{tool}"));
        self.full_folded.get(&full).cloned().unwrap_or_default()
    }

    fn find_spelled(&self, server: &ServerName, tool: &str) -> Option<usize> {
        self.full(&format!("{server}/{tool}"))
    }

    fn list_claims<'n, 't>(&'n self, asked: &'t str) -> Vec<Claim<'n, 't>> {
        let prefix = asked
            .get(..PREFIX.len())
            .filter(|start| start.eq_ignore_ascii_case(PREFIX));
        let without = prefix.map(|_| asked[PREFIX.len()..].trim());
        let mut claims = Vec::new();
        for whole in without.into_iter().chain([asked]) {
            let alone = [(whole, "")].into_iter();
            let cuts = SEPARATORS.into_iter().flat_map(|separator| {
                let cuts = whole.match_indices(separator);
                cuts.map(move |(cut, _)| (&whole[..cut], &whole[cut + separator.len()..]))
            });
            for (server, rest) in alone.chain(cuts) {
                let server = may_be_a_server(server).then(|| self.servers.get(&fold(server)));
                if let Some(server) = server.flatten() {
                    let rest = rest.trim();
                    claims.push(Claim {
                        server,
                        rest,
                        whole,
                    });
                }
            }
        }
        claims
    }

    /// Returns names similar to this one. A server that the name begins with counts in any spelling.
    pub(crate) fn near(&self, asked: &str) -> Vec<ToolRef> {
        let claimed = self.claimed(asked).filter(|at| !at.tool.is_empty());
        let spelled = claimed.as_ref().map(ToString::to_string);
        let own = claimed.as_ref().map_or(bare_of(asked), |at| &at.tool);
        let asked = spelled.as_deref().unwrap_or(asked);
        let bare = self.bare.keys().map(String::as_str);
        let bare = near(own, list_alike(own, bare), NEAREST_MAX);
        let bare: Vec<&usize> = bare.iter().flat_map(|name| &self.bare[*name]).collect();
        let full = self.full.keys().map(String::as_str);
        let full = near(asked, list_alike(asked, full), NEAREST_MAX);
        let full: Vec<&usize> = full.iter().map(|name| &self.full[*name]).collect();
        let mut found: Vec<ToolRef> = Vec::new();
        for nth in 0..full.len().max(bare.len()) {
            for place in [full.get(nth), bare.get(nth)].into_iter().flatten() {
                let at = self.at(**place);
                if !found.contains(at) {
                    found.push(at.clone());
                }
            }
        }
        found.truncate(NEAREST_MAX);
        found
    }
}

/// Selects names with about the same letters and length, since a full comparison of thousands of
/// names takes tens of milliseconds. One letter in place of another is a typo in a short name too.
fn list_alike<'a>(
    asked: &str,
    names: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let (length, mask) = (asked.len(), letters(asked));
    names.filter(move |name| {
        let known = letters(name);
        let (common, all) = ((known & mask).count_ones(), (known | mask).count_ones());
        let lengths = name.len().min(length) * 2 >= name.len().max(length);
        lengths && (common * 3 >= all * 2 || all - common <= 2)
    })
}

/// Returns a bit set of the letters in a name, case-insensitive.
fn letters(name: &str) -> u32 {
    let letters = name.bytes().filter(u8::is_ascii_alphabetic);
    letters.fold(0, |mask, letter| mask | 1 << (letter & 31))
}

/// The prefix that some clients add to server names.
const PREFIX: &str = "mcp__";
/// The separators between a server and its tool.
const SEPARATORS: [&str; 4] = ["/", "__", ".", ":"];

/// Returns false if a text is too long for the name of a server.
fn may_be_a_server(text: &str) -> bool {
    text.trim().chars().nth(SERVER_NAME_CHARS_MAX).is_none()
}

fn bare_of(asked: &str) -> &str {
    let cut = asked.rsplit(['/', ':', '.']).next().unwrap_or(asked);
    cut.rsplit_once("__").map_or(cut, |(_, bare)| bare).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> NameIndex {
        let at = |(server, tool): &(&str, &str)| ToolRef::new(server.parse().unwrap(), *tool);
        let refs: Vec<ToolRef> = [
            ("github", "create_issue"),
            ("files", "read_file"),
            ("my-db", "read_file"),
            ("my-db", "Query.All"),
            ("odd", "a/b__c"),
            ("odd", "Twice"),
            ("odd", "twice"),
            ("two", "get-x"),
            ("two", "get_x"),
        ]
        .iter()
        .map(at)
        .collect();
        let servers = ["github", "files", "my-db", "odd", "two"].map(|name| name.parse().unwrap());
        NameIndex::new(&refs, &servers)
    }

    #[track_caller]
    fn check(asked: &str, expected: &str) {
        let names = names();
        let meant = names.mean(asked).into_iter();
        let meant: Vec<String> = meant.map(|place| names.at(place).to_string()).collect();
        assert_eq!(meant.join(" or "), expected);
    }

    #[test]
    fn every_forgiven_spelling_means_the_tool() {
        for asked in [
            "github/create_issue",
            "github__create_issue",
            "mcp__github__create_issue",
            "MCP__GitHub__create-issue",
            "github.create_issue",
            "github:create_issue",
            "GitHub/Create-Issue",
            "  github/create_issue\n",
            "github / create_issue",
            "create_issue",
            "Create-Issue",
        ] {
            check(asked, "github/create_issue");
        }
        check("my_db/read_file", "my-db/read_file");
        check("my-db.query.all", "my-db/Query.All");
        check("odd__a/b__c", "odd/a/b__c");
        check("a/b__c", "odd/a/b__c");
    }

    #[test]
    fn exact_wins_over_folded_and_doubt_is_said() {
        check("odd/Twice", "odd/Twice");
        check("twice", "odd/twice");
        check("odd/TWICE", "odd/Twice or odd/twice");
        check("read_file", "files/read_file or my-db/read_file");
        check("two/get-x", "two/get-x");
        check("two/Get-x", "two/get-x or two/get_x");
        check("", "");
        check("github/", "");
        check("nowhere/create_issue", "");
    }

    #[test]
    fn slips_are_near() {
        let near = names().near("github/creat_issue");
        assert_eq!(
            near.first().map(ToString::to_string).as_deref(),
            Some("github/create_issue")
        );
        assert_eq!(names().near("zzzz"), []);
    }

    #[test]
    fn a_slip_is_near_in_every_spelling_of_a_short_name() {
        let at = ToolRef::new("fx".parse().unwrap(), "echo");
        let names = NameIndex::new([&at], [&at.server]);
        for asked in ["fx/ecko", "fx__ecko", "mcp__fx__ecko", "FX.Ecko", "ecko"] {
            assert_eq!(names.near(asked), std::slice::from_ref(&at), "{asked}");
        }
        assert_eq!(names.near("mcp__fy__ecko"), std::slice::from_ref(&at));
        for asked in ["fx/wall", "fx__add", "wall"] {
            assert_eq!(names.near(asked), [], "{asked}");
        }
    }
}
