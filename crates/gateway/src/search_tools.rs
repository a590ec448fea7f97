//! `search_tools`: the few tools that match a request, one a line.

use files::clock::now_ms;
use std::sync::Arc;

use registry::{Asked, Evidence, Found, Generation, Hit, Kind, Query, Review, Subject};
use serde_json::{Value, json, value::RawValue};
use telemetry::Recorder;
use tool::ServerName;

use crate::{
    built_in::is_own,
    call_context::CallContext,
    catalog::{Catalog, sees},
    describe_tool,
    error::ToolError,
    forward::{Wanted, matching_lines, seen},
    loose::Loose,
    policy::ClientPolicy,
    render::hit_line,
    reply::Reply,
};

/// The default number of hits, and the maximum (interface, section 4).
const RESULTS_DEFAULT: usize = 5;
pub(crate) const RESULTS_MAX: usize = 20;

/// The longest reason per server if no tools are known, in characters.
const WHY_CHARS_MAX: usize = 400;

/// The longest part of a query that is repeated in an answer, in characters.
const QUERY_CHARS_SHOWN: usize = 120;

/// The outcome of a search; [`search_text`] and [`search_json`] write it.
#[derive(Debug)]
pub struct SearchAnswer {
    pub(crate) generation: Arc<Generation>,
    pub(crate) query: Query,
    pub(crate) found: Found,
    /// Servers whose tools may be missing: they were still being asked for them.
    pub(crate) missing: Vec<ServerName>,
}

impl SearchAnswer {
    /// Returns true if anything matches; the nearest tools are no match.
    pub fn has_hits(&self) -> bool {
        !self.found.hits.is_empty() && self.found.kind != Kind::Nearest
    }

    /// Returns true if the answer has a tool of a server for everything that was asked for, and that
    /// tool is no guess.
    pub(crate) fn is_sure(&self) -> bool {
        let Self { found, query, .. } = self;
        if found.kind == Kind::Exact {
            return true;
        }
        let has_hit = |step: Option<usize>| {
            let mut hits = found.hits.iter();
            hits.any(|hit| {
                let is_for_it = step.is_none_or(|step| hit.step == step);
                !is_own(&hit.entry) && !hit.is_guess && is_for_it
            })
        };
        let is_whole = match &query.asked {
            Asked::Steps(steps) => (0..steps.len()).all(|step| has_hit(Some(step))),
            Asked::Words(_) => has_hit(None),
        };
        let lacks_names = found.kind == Kind::Selected && !found.unknown_words.is_empty();
        is_whole && !found.without_filter && !lacks_names
    }
}

pub(crate) async fn search_tools(
    catalog: &Catalog,
    recorder: &Recorder,
    arguments: Option<&RawValue>,
    context: &CallContext,
) -> Result<Reply, ToolError> {
    let (policy, searches) = (&*context.policy, context.searches.as_deref());
    let arguments = Loose::read(arguments);
    let query = Query {
        view: policy.view.clone(),
        ..query(&arguments)
    };
    let answer = catalog.search(query, searches).await?;
    recorder.record(telemetry::Event::Search {
        at_ms: now_ms(),
        words: arguments.text(&["query"]).unwrap_or_default(),
        hits: answer.found.hits.len(),
    });
    if let Some(searches) = searches {
        searches.push(&answer.generation, &answer.query, &answer.found);
    }
    let wants_json = arguments
        .text(&["format"])
        .is_some_and(|format| format == "json");
    Ok(Reply::text(&if wants_json {
        describe_tool::fit_hits(
            search_json(catalog, &answer),
            catalog.settings().room(policy),
        )
    } else {
        let text = search_text(catalog, &answer, policy).await?;
        let besides = besides(&answer, context);
        if besides.is_empty() {
            text
        } else {
            let lines = format!("{text}\n{}", besides.join("\n"));
            describe_tool::whole_lines(lines, catalog.settings().room(policy))
        }
    }))
}

/// The text form (interface, section 4), in the room that the policy allows.
pub async fn search_text(
    catalog: &Catalog,
    answer: &SearchAnswer,
    policy: &ClientPolicy,
) -> Result<String, ToolError> {
    let SearchAnswer {
        query,
        found,
        missing,
        ..
    } = answer;
    let room = catalog.settings().room(policy);
    let text = match (found.kind, found.hits.as_slice(), missing.as_slice()) {
        (Kind::Exact, [hit], _) => {
            return describe_tool::describe(catalog, &hit.entry, None, room).await;
        }
        (_, [], []) => explain_no_hit(catalog, query, found),
        (_, [], missing) => explain_no_hit_yet(query, missing),
        (_, _, []) => list(catalog, answer),
        (_, _, missing) => list(catalog, answer) + "\n" + &list_missing(missing),
    };
    Ok(describe_tool::whole_lines(text, room))
}

/// The JSON form, for scripts: complete at any length.
pub fn search_json(catalog: &Catalog, answer: &SearchAnswer) -> Value {
    let mut json = json_of_known(catalog, answer);
    if !answer.missing.is_empty() {
        json["being_asked"] = answer.missing.iter().map(ServerName::as_str).collect();
    }
    json
}

fn json_of_known(catalog: &Catalog, answer: &SearchAnswer) -> Value {
    let SearchAnswer { query, found, .. } = answer;
    if found.hits.is_empty() {
        let message = match answer.missing.as_slice() {
            [] => explain_no_hit(catalog, query, found),
            missing => explain_no_hit_yet(query, missing),
        };
        let suggestion = "Try different keywords or search without a category filter.";
        return json!({
            "found": 0,
            "message": message,
            "suggestion": suggestion,
        });
    }
    let hit = |hit: &Hit| hit_json(hit, found.parts.get(hit.step));
    let tools: Vec<Value> = found.hits.iter().map(hit).collect();
    let mut json = json!({"found": tools.len(), "total": found.total, "tools": tools});
    if found.is_guess {
        json["perhaps"] = true.into();
    }
    if found.kind == Kind::Nearest {
        json["message"] = write_doubt(answer).into();
    }
    json
}

fn list(catalog: &Catalog, answer: &SearchAnswer) -> String {
    let SearchAnswer { query, found, .. } = answer;
    let mut lines = vec![match found.kind {
        Kind::Nearest => format!("perhaps: {}. {}:", write_doubt(answer), write_choice(found)),
        _ => write_heading(query, found),
    }];
    let steps = match &query.asked {
        Asked::Steps(steps) => steps,
        Asked::Words(_) => &found.parts,
    };
    let mut hits: Vec<&Hit> = found.hits.iter().collect();
    hits.sort_by_key(|hit| hit.step);
    let mut step = None;
    for hit in hits {
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
        lines.push(hit_line(catalog, &hit.entry) + &list_twins(hit));
        lines.extend(hit.evidence.iter().map(write_evidence));
    }
    let end = query.offset + found.hits.len();
    if found.kind == Kind::Browse && end < found.total {
        lines.push(format!("more: \"offset\":{end}"));
    }
    if found.kind == Kind::Nearest {
        let down = catalog.down(query.view.as_deref());
        if !down.is_empty() {
            lines.push(format!("Down: {}.", down.join(", ")));
        }
    }
    lines.join("\n")
}

/// Explains that nothing matches, which words caused it, and what exists instead.
fn explain_no_hit(catalog: &Catalog, query: &Query, found: &Found) -> String {
    if catalog.registry.catalog().tools() == 0 {
        return explain_no_tools(catalog, query);
    }
    let mut text = format!("No tool matches \"{}\"", one_line(&text_of(query)));
    text.push_str(&list_unknown(found));
    if !found.nearest.is_empty() {
        let names: Vec<String> = found.nearest.iter().map(ToString::to_string).collect();
        text.push_str(&format!(". Nearest: {}", names.join(", ")));
    }
    text.push_str(". Try different keywords or search without a category filter.");
    if !found.categories.is_empty() {
        text.push_str(&format!(
            " Categories: {}.",
            list_counts(&found.categories, CATEGORIES_COUNTED_MAX)
        ));
    }
    let down = catalog.down(query.view.as_deref());
    if !down.is_empty() {
        text.push_str(&format!(" Down: {}.", down.join(", ")));
    }
    text
}

fn explain_no_tools(catalog: &Catalog, query: &Query) -> String {
    if let Some(mistakes) = catalog.settings.mistakes() {
        let mistakes = printable::prose(&mistakes);
        return format!("No tools are known: the configuration cannot be used.\n{mistakes}");
    }
    let records = catalog.registry.catalog();
    let whys: Vec<String> = records
        .servers
        .iter()
        .filter(|server| sees(query.view.as_deref(), server))
        .filter_map(|server| {
            let why = printable::one_line_of(&server.stale.as_ref()?.to_string(), WHY_CHARS_MAX);
            Some(format!("{}: {why}", server.name))
        })
        .collect();
    match whys.as_slice() {
        [] if holds_tools(catalog, query) => {
            "No tools are known: those of the servers are held until a person has reviewed them. A \
             person can run `proxy review`."
                .to_owned()
        }
        [] => "No tools are known: no server offers any. A person can add servers to the \
               configuration and run `proxy reindex`."
            .to_owned(),
        whys => format!("No tools are known. {}.", whys.join(". ")),
    }
}

/// Returns true if a review holds back tools of a server that the client sees.
fn holds_tools(catalog: &Catalog, query: &Query) -> bool {
    let records = catalog.registry.catalog();
    let servers = records.servers.iter();
    let mut seen = servers.filter(|server| sees(query.view.as_deref(), server));
    seen.any(|server| {
        let reviews = catalog.registry.list_reviews(Some(&server.name)).list;
        let is_tool = |it: &Review| matches!(it.shown.subject, Subject::Tool(_));
        reviews.iter().any(is_tool)
    })
}

/// The most prompts and resources in one answer, if a request asks for them.
const ITEMS_MAX: usize = 5;

/// The lines after the hits: prompts and resources if a request asks for them, and the instructions
/// of the first hit's server, once a session.
fn besides(answer: &SearchAnswer, context: &CallContext) -> Vec<String> {
    let asked = text_of(&answer.query);
    let wanted = Wanted::read(&asked);
    let mut lines = Vec::new();
    if wanted.is_any() {
        let seen = seen(&answer.generation, &context.policy);
        lines = matching_lines(&seen, wanted, &asked);
        lines.truncate(ITEMS_MAX);
    }
    let first = answer.found.hits.first();
    let server = first.and_then(|hit| answer.generation.server(&hit.entry.at.server));
    let told = server.and_then(|server| {
        let says = context.told.as_ref()?.brief(server)?;
        Some(format!("instructions of {}: {says}", server.name))
    });
    lines.extend(told);
    lines
}

/// The text if no known tool matches, and servers have not sent their tools yet.
fn explain_no_hit_yet(query: &Query, missing: &[ServerName]) -> String {
    let asked = one_line(&text_of(query));
    let missing = list_missing(missing);
    format!("No tool known so far matches \"{asked}\". {missing}")
}

/// Explains that nothing matches for sure, and which words caused it once every server has sent its
/// tools.
fn write_doubt(answer: &SearchAnswer) -> String {
    let SearchAnswer {
        query,
        found,
        missing,
        ..
    } = answer;
    let asked = one_line(&text_of(query));
    let filter = if found.without_filter {
        describe_empty_filter(query, found) + "; "
    } else {
        String::new()
    };
    if missing.is_empty() {
        let unknown = list_unknown(found);
        format!("{filter}no tool surely matches \"{asked}\"{unknown}")
    } else {
        format!("{filter}no tool known so far surely matches \"{asked}\"")
    }
}

/// The reason why hits are shown although none matches. Categories are counted if the hits are only
/// some of their tools.
fn write_choice(found: &Found) -> String {
    if found.categories.is_empty() || found.without_filter {
        return "Nearest".to_owned();
    }
    let all = list_counts(&found.categories, CATEGORIES_COUNTED_MAX);
    format!("There are {all}; some of them")
}

/// The words of a query that match nothing, as text after the query.
fn list_unknown(found: &Found) -> String {
    let words = found.unknown_words.iter();
    let words: Vec<String> = words
        .map(|word| format!("\"{}\"", one_line(word)))
        .collect();
    match words.as_slice() {
        [] => String::new(),
        [word] => format!(": {word} matches nothing"),
        words => format!(": {} match nothing", words.join(", ")),
    }
}

/// The last line of an answer from which tools may be missing.
fn list_missing(missing: &[ServerName]) -> String {
    let names: Vec<&str> = missing.iter().map(ServerName::as_str).collect();
    let names = names.join(", ");
    format!("Being asked for their tools right now: {names}. Search again in a few seconds.")
}

/// The most other servers with the same tool that are named; a hit has 90 tokens (interface, section
/// 4).
const ALSO_NAMED_MAX: usize = 3;

fn query(arguments: &Loose) -> Query {
    const QUERY_KEYS: [&str; 3] = ["query", "q", "queries"];
    let asked = match arguments.get(&QUERY_KEYS) {
        Some(Value::Array(_)) => Asked::Steps(arguments.texts(&QUERY_KEYS).unwrap_or_default()),
        _ => Asked::Words(arguments.text(&QUERY_KEYS).unwrap_or_default()),
    };
    let asked = match asked {
        Asked::Steps(steps) if steps.len() < 2 => Asked::Words(steps.concat()),
        other => other,
    };
    let limit = arguments
        .number(&["max_results", "limit", "top_k"])
        .unwrap_or(RESULTS_DEFAULT);
    Query {
        asked,
        category: arguments.text(&["category"]),
        server: arguments.text(&["server"]),
        tags: arguments.texts(&["tags"]).unwrap_or_default(),
        limit,
        offset: arguments.number(&["offset"]).unwrap_or(0),
        learned: None,
        why: arguments.get(&["why"]) == Some(&Value::Bool(true)),
        view: None,
    }
}

fn write_heading(query: &Query, found: &Found) -> String {
    let sure = if found.is_guess { "perhaps: " } else { "" };
    let counted = format!("{sure}{} of {}", found.hits.len(), found.total);
    let is_cut = found.hits.len() < found.total;
    let by_server: Vec<(String, usize)> = found
        .by_server
        .iter()
        .map(|(server, count)| (server.to_string(), *count))
        .collect();
    let by_server = if is_cut {
        format!(" ({})", list_counts(&by_server, SERVERS_COUNTED_MAX))
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
fn describe_empty_filter(query: &Query, found: &Found) -> String {
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

/// The servers counted in the heading, which costs tokens in every answer.
const SERVERS_COUNTED_MAX: usize = 3;

/// The categories counted if nothing matches and the model has to search elsewhere.
const CATEGORIES_COUNTED_MAX: usize = 8;

fn list_counts(counts: &[(String, usize)], max: usize) -> String {
    let mut parts: Vec<String> = counts
        .iter()
        .take(max)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if counts.len() > max {
        parts.push(format!("{} more", counts.len() - max));
    }
    parts.join(", ")
}

fn text_of(query: &Query) -> String {
    match &query.asked {
        Asked::Words(text) => text.clone(),
        Asked::Steps(steps) => steps.join("; "),
    }
}

fn write_evidence(evidence: &Evidence) -> String {
    format!("    {:6.3}  {}", evidence.amount, evidence.label)
}

/// Other servers that have the same tool.
fn list_twins(hit: &Hit) -> String {
    if hit.also.is_empty() {
        return String::new();
    }
    let first = hit.also.iter().take(ALSO_NAMED_MAX);
    let mut names: Vec<String> = first.map(|at| at.server.to_string()).collect();
    if hit.also.len() > ALSO_NAMED_MAX {
        names.push(format!("{} more", hit.also.len() - ALSO_NAMED_MAX));
    }
    format!(" (also on {})", names.join(", "))
}

/// A text of the client on one line, shortened.
fn one_line(text: &str) -> String {
    printable::one_line_of(text, QUERY_CHARS_SHOWN)
}

fn hit_json(hit: &Hit, part: Option<&String>) -> Value {
    let entry = &hit.entry;
    let schema: Value = serde_json::from_str(&entry.tool.input_schema()).unwrap_or_default();
    let mut json = json!({
        "name": entry.at.to_string(),
        "server": entry.at.server.as_str(),
        "description": printable::prose(&entry.description()),
        "signature": format!("{}{}", entry.at, entry.signature()),
        "category": entry.category,
        "tags": entry.tags,
        "input_schema": schema,
        "relevance_score": hit.score,
    });
    if hit.is_guess {
        json["perhaps"] = true.into();
    }
    if !hit.also.is_empty() {
        let also: Vec<String> = hit.also.iter().map(ToString::to_string).collect();
        json["also_on"] = also.into();
    }
    if !hit.evidence.is_empty() {
        let evidence = hit.evidence.iter();
        let evidence = evidence.map(|it| json!({"label": it.label, "amount": it.amount}));
        json["evidence"] = evidence.collect();
    }
    if let Some(part) = part {
        json["part"] = part.as_str().into();
    }
    json
}
