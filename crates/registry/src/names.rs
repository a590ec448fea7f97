//! A tool by its name, in every spelling we forgive.

use std::collections::HashMap;

use tool::{ToolRef, fold, near};

use crate::limits::NEAREST_MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("no tool `{asked}`")]
    Unknown { asked: String, near: Vec<ToolRef> },
    #[error("`{asked}` names several tools")]
    Ambiguous {
        asked: String,
        candidates: Vec<ToolRef>,
    },
    /// `rule` is what a person looks for in the configuration.
    #[error("`{at}` is kept out by {rule}")]
    Denied { at: ToolRef, rule: String },
}

/// Maps from every way to write a name to the places of the tools it may mean.
#[derive(Debug, Default)]
pub(crate) struct Names {
    refs: Vec<ToolRef>,
    full: HashMap<String, usize>,
    bare: HashMap<String, Vec<usize>>,
    full_folded: HashMap<String, Vec<usize>>,
    bare_folded: HashMap<String, Vec<usize>>,
}

/// What a name means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    One(usize),
    Several(Vec<usize>),
    Nothing,
}

impl Names {
    pub(crate) fn new<'a>(refs: impl IntoIterator<Item = &'a ToolRef>) -> Self {
        let mut names = Self {
            refs: refs.into_iter().cloned().collect(),
            ..Self::default()
        };
        for (place, at) in names.refs.iter().enumerate() {
            let full = at.to_string();
            names
                .full_folded
                .entry(fold(&full))
                .or_default()
                .push(place);
            names.full.insert(full, place);
            names.bare.entry(at.tool.clone()).or_default().push(place);
            names
                .bare_folded
                .entry(fold(&at.tool))
                .or_default()
                .push(place);
        }
        names
    }

    pub(crate) fn at(&self, place: usize) -> &ToolRef {
        &self.refs[place]
    }

    /// The most exact reading that means anything at all.
    pub(crate) fn mean(&self, asked: &str) -> Meant {
        let asked = asked.trim();
        let exact = self.full.get(asked).copied().map(|place| vec![place]);
        let spelled = || {
            let spellings = spellings(asked);
            spellings
                .iter()
                .find_map(|full| self.full.get(full))
                .map(|place| vec![*place])
        };
        let bare = || self.bare.get(asked).cloned();
        let folded = || {
            let spellings = spellings(asked);
            spellings
                .iter()
                .find_map(|full| self.full_folded.get(&fold(full)))
                .cloned()
        };
        let bare_folded = || self.bare_folded.get(&fold(asked)).cloned();
        let found = exact
            .or_else(spelled)
            .or_else(bare)
            .or_else(folded)
            .or_else(bare_folded);
        match found.as_deref() {
            None => Meant::Nothing,
            Some([one]) => Meant::One(*one),
            Some(several) => Meant::Several(several.to_vec()),
        }
    }

    /// Names that a person may have meant.
    pub(crate) fn near(&self, asked: &str) -> Vec<ToolRef> {
        let bare = self.bare.keys().map(String::as_str);
        let bare = near(bare_of(asked), alike(bare_of(asked), bare), NEAREST_MAX);
        let bare = bare
            .into_iter()
            .filter_map(|name| self.bare.get(name))
            .flatten()
            .copied();
        let full = self.full.keys().map(String::as_str);
        let full = near(asked, alike(asked, full), NEAREST_MAX);
        let full = full
            .into_iter()
            .filter_map(|name| self.full.get(name))
            .copied();
        let mut found: Vec<ToolRef> = Vec::new();
        for place in interleave(full, bare) {
            let at = self.at(place);
            if !found.contains(at) {
                found.push(at.clone());
            }
        }
        found.truncate(NEAREST_MAX);
        found
    }
}

/// Names of about the same letters and length: comparing thousands of names in earnest takes
/// tens of milliseconds.
fn alike<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let (length, mask) = (asked.len(), letters(asked));
    names.filter(move |name| {
        let known = letters(name);
        let common = (known & mask).count_ones();
        let lengths = name.len().min(length) * 2 >= name.len().max(length);
        lengths && common * 3 >= (known | mask).count_ones() * 2
    })
}

/// A bit a letter, whatever its case.
fn letters(name: &str) -> u32 {
    let letters = name.bytes().filter(u8::is_ascii_alphabetic);
    letters.fold(0, |mask, letter| mask | 1 << (letter & 31))
}

/// `server/tool` for each way the asked text may be cut into a server and a tool.
fn spellings(asked: &str) -> Vec<String> {
    let plain = asked
        .get(..5)
        .filter(|start| start.eq_ignore_ascii_case("mcp__"));
    let without = plain.map(|start| &asked[start.len()..]);
    let mut spellings = Vec::new();
    for text in without.into_iter().chain([asked]) {
        for separator in ["/", "__", ".", ":"] {
            for (cut, _) in text.match_indices(separator).take(CUTS_MAX) {
                let tool = &text[cut + separator.len()..];
                spellings.push(format!("{}/{}", text[..cut].trim(), tool.trim()));
            }
        }
    }
    spellings
}

/// Separators tried in one name; real names hold one or two.
const CUTS_MAX: usize = 4;

fn bare_of(asked: &str) -> &str {
    let cut = asked.rsplit(['/', ':', '.']).next().unwrap_or(asked);
    cut.rsplit_once("__").map_or(cut, |(_, bare)| bare).trim()
}

fn interleave(
    first: impl Iterator<Item = usize>,
    second: impl Iterator<Item = usize>,
) -> impl Iterator<Item = usize> {
    let mut second = second.fuse();
    let mut first = first.fuse();
    let pairs = std::iter::from_fn(move || {
        let pair = [first.next(), second.next()];
        pair.iter().any(Option::is_some).then_some(pair)
    });
    pairs.flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
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
        Names::new(&refs)
    }

    #[track_caller]
    fn check(asked: &str, expected: &str) {
        let names = names();
        let meant = match names.mean(asked) {
            Meant::One(place) => names.at(place).to_string(),
            Meant::Several(places) => {
                let refs: Vec<_> = places
                    .iter()
                    .map(|place| names.at(*place).to_string())
                    .collect();
                refs.join(" or ")
            }
            Meant::Nothing => "nothing".to_owned(),
        };
        assert_eq!(meant, expected);
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
        check("", "nothing");
        check("github/", "nothing");
        check("nowhere/create_issue", "nothing");
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
}
