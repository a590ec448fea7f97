//! The answer to a search as text (interface, section 4).

use std::fmt::Display;

use registry::{Evidence, Hit, MatchKind, Query, QueryText, SearchResult};
use tool::ServerName;

use super::{
    hit::{self, ServerMarks},
    join,
};

/// The longest part of a query that is repeated in an answer, in characters.
const QUERY_CHARS_SHOWN: usize = 120;

/// The most other servers with the same tool that are named; a hit has 90 tokens (interface, section
/// 4).
const ALSO_NAMED_MAX: usize = 3;

/// The servers counted in the heading, which costs tokens in every answer.
const SERVERS_COUNTED_MAX: usize = 3;

/// The categories counted if nothing matches and the model has to search elsewhere.
pub(super) const CATEGORIES_COUNTED_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct SearchPage<'a> {
    pub(crate) query: &'a Query,
    pub(crate) found: &'a SearchResult,
    /// Servers whose tools may be missing: they were still being asked for them.
    pub(crate) missing: &'a [ServerName],
    /// The state of each hit's server, in the order of the hits.
    pub(crate) marks: Vec<ServerMarks>,
    /// The arguments that calls of each hit often have wrong.
    pub(crate) often_wrong: Vec<Vec<String>>,
    /// Servers that failed when they were last started or surveyed, for an answer without a sure hit.
    pub(crate) down: Vec<String>,
    pub(crate) no_tools: Option<NoTools>,
}

/// The reason why no tool is known.
#[derive(Debug)]
pub(crate) enum NoTools {
    Misconfigured(String),
    /// Why each server could not be surveyed.
    Failed(Vec<(ServerName, String)>),
    /// A review holds the tools back.
    Held,
    NoneOffered,
}

/// The hits, one a line, or an explanation why there are none.
pub(crate) fn text(page: &SearchPage<'_>) -> String {
    match (page.found.hits.as_slice(), page.missing) {
        ([], _) => explain_no_hit(page),
        (_, []) => list(page),
        (_, missing) => list(page) + "\n" + &list_missing(missing),
    }
}

pub(super) fn explain_no_hit(page: &SearchPage<'_>) -> String {
    let asked = one_line(&text_of(page.query));
    if !page.missing.is_empty() {
        let missing = list_missing(page.missing);
        return format!("No tool known so far matches \"{asked}\". {missing}");
    }
    if let Some(why) = &page.no_tools {
        return explain_no_tools(why);
    }
    let found = page.found;
    let mut text = format!("No tool matches \"{asked}\"");
    text.push_str(&list_unknown(found));
    if !found.nearest.is_empty() {
        text.push_str(&format!(". Nearest: {}", join(&found.nearest, ", ")));
    }
    text.push_str(". Try different keywords or search without a category filter.");
    if !found.categories.is_empty() {
        let categories = list_counts(&found.categories, CATEGORIES_COUNTED_MAX);
        text.push_str(&format!(" Categories: {categories}."));
    }
    if !page.down.is_empty() {
        text.push_str(&format!(" Down: {}.", page.down.join(", ")));
    }
    text
}

fn explain_no_tools(why: &NoTools) -> String {
    match why {
        NoTools::Misconfigured(mistakes) => {
            let mistakes = printable::prose(mistakes);
            format!("No tools are known: the configuration cannot be used.\n{mistakes}")
        }
        NoTools::Failed(servers) => {
            let whys = servers.iter().map(|(name, why)| format!("{name}: {why}"));
            format!("No tools are known. {}.", join(whys, ". "))
        }
        NoTools::Held => "No tools are known: those of the servers are held until a person has \
                          reviewed them. A person can run `proxy review`."
            .to_owned(),
        NoTools::NoneOffered => {
            "No tools are known: no server offers any. A person can add servers \
                                 to the configuration and run `proxy reindex`."
                .to_owned()
        }
    }
}

fn list(page: &SearchPage<'_>) -> String {
    let SearchPage { query, found, .. } = page;
    let mut lines = vec![match found.kind {
        MatchKind::Nearest => format!("perhaps: {}. {}:", write_doubt(page), write_choice(found)),
        _ => write_heading(query, found),
    }];
    let steps = match &query.asked {
        QueryText::Steps(steps) => steps,
        QueryText::Words(_) => &found.parts,
    };
    let hits = found.hits.iter().zip(&page.marks).zip(&page.often_wrong);
    let mut hits: Vec<_> = hits.collect();
    hits.sort_by_key(|((hit, _), _)| hit.step);
    let mut step = None;
    for ((hit, marks), wrong) in hits {
        if let Some(text) = steps.get(hit.step)
            && step != Some(hit.step)
        {
            step = Some(hit.step);
            let perhaps = if hit.is_guess && !found.is_guess {
                " perhaps:"
            } else {
                ""
            };
            lines.push(format!("{}:{perhaps}", one_line(text)));
        }
        let line = hit::line(&hit.entry, marks) + &list_twins(hit);
        lines.push(hit::with_notes(line, &hit.entry, wrong));
        lines.extend(hit.evidence.iter().map(write_evidence));
    }
    lines.extend(write_unserved(query, found));
    let end = query.offset + found.hits.len();
    if found.kind == MatchKind::Browse && end < found.total {
        lines.push(format!("more: \"offset\":{end}"));
    }
    if found.kind == MatchKind::Nearest && !page.down.is_empty() {
        lines.push(format!("Down: {}.", page.down.join(", ")));
    }
    lines.join("\n")
}

/// Explains that nothing matches for sure, and which words caused it once every server has sent its
/// tools.
pub(super) fn write_doubt(page: &SearchPage<'_>) -> String {
    let SearchPage { query, found, .. } = page;
    let asked = one_line(&text_of(query));
    let filter = if found.without_filter {
        describe_empty_filter(query, found) + "; "
    } else {
        String::new()
    };
    if page.missing.is_empty() {
        let unknown = list_unknown(found);
        format!("{filter}no tool surely matches \"{asked}\"{unknown}")
    } else {
        format!("{filter}no tool known so far surely matches \"{asked}\"")
    }
}

/// Names the steps of a request for which there is no hit.
pub(super) fn write_unserved(query: &Query, found: &SearchResult) -> Option<String> {
    let steps = quote_all(&found.unserved);
    let hint = match &query.asked {
        QueryText::Steps(_) => "",
        QueryText::Words(_) => " \"queries\" takes a list, one query for each step.",
    };
    (!steps.is_empty()).then(|| format!("No tool matches {}.{hint}", steps.join(", ")))
}

/// The reason why hits are shown although none matches. Categories are counted if the hits are only
/// some of their tools.
fn write_choice(found: &SearchResult) -> String {
    if found.categories.is_empty() || found.without_filter {
        return "Nearest".to_owned();
    }
    let all = list_counts(&found.categories, CATEGORIES_COUNTED_MAX);
    format!("There are {all}; some of them")
}

/// The words of a query that match nothing, as text after the query.
fn list_unknown(found: &SearchResult) -> String {
    let words = quote_all(&found.unknown_words);
    match words.as_slice() {
        [] => String::new(),
        [word] => format!(": {word} matches nothing"),
        words => format!(": {} match nothing", words.join(", ")),
    }
}

/// The last line of an answer from which tools may be missing.
fn list_missing(missing: &[ServerName]) -> String {
    let names = join(missing, ", ");
    format!("Being asked for their tools right now: {names}. Search again in a few seconds.")
}

fn write_heading(query: &Query, found: &SearchResult) -> String {
    let sure = if found.is_guess { "perhaps: " } else { "" };
    let counted = format!("{sure}{} of {}", found.hits.len(), found.total);
    let by_server = if found.hits.len() < found.total {
        format!(" ({})", list_counts(&found.by_server, SERVERS_COUNTED_MAX))
    } else {
        String::new()
    };
    if !found.without_filter {
        return format!("{counted}{by_server}");
    }
    format!(
        "{}; without that filter {counted}{by_server}",
        describe_empty_filter(query, found)
    )
}

/// The text if the filter matches no tool; if the filter names nothing known, the text lists the
/// known names.
pub(super) fn describe_empty_filter(query: &Query, found: &SearchResult) -> String {
    let filter = [query.category.as_deref(), query.server.as_deref()];
    let filter = filter.into_iter().flatten().next();
    let filter = filter.map_or_else(|| query.tags.join(", "), str::to_owned);
    let known = if found.categories.is_empty() {
        String::new()
    } else {
        let known = list_counts(&found.categories, CATEGORIES_COUNTED_MAX);
        format!(" (there are {known})")
    };
    format!("nothing in \"{}\"{known}", one_line(&filter))
}

pub(crate) fn list_counts(counts: &[(impl Display, usize)], max: usize) -> String {
    let counts = counts.iter();
    join_first(counts.map(|(name, count)| format!("{name} {count}")), max)
}

/// Writes at most `max` elements of a list, and the number of the others.
fn join_first(list: impl ExactSizeIterator<Item: Display>, max: usize) -> String {
    let more = list.len().saturating_sub(max);
    let shown = join(list.take(max), ", ");
    match more {
        0 => shown,
        more => format!("{shown}, {more} more"),
    }
}

pub(crate) fn text_of(query: &Query) -> String {
    match &query.asked {
        QueryText::Words(text) => text.clone(),
        QueryText::Steps(steps) => steps.join("; "),
    }
}

fn write_evidence(evidence: &Evidence) -> String {
    format!("    {:6.3}  {}", evidence.amount, evidence.label)
}

fn list_twins(hit: &Hit) -> String {
    if hit.also.is_empty() {
        return String::new();
    }
    let names = hit.also.iter().map(|at| &at.server);
    format!(" (also on {})", join_first(names, ALSO_NAMED_MAX))
}

fn quote_all(texts: &[String]) -> Vec<String> {
    let texts = texts.iter();
    texts.map(|it| format!("\"{}\"", one_line(it))).collect()
}

/// A text of the client on one line, shortened.
fn one_line(text: &str) -> String {
    printable::one_line_of(text, QUERY_CHARS_SHOWN)
}
