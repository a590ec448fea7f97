//! `search_tools`: the few tools that match a request, one a line.

use files::clock::now_ms;

use registry::{MatchKind, Query, QueryText, Review, Subject};
use serde_json::{Value, value::RawValue};
use telemetry::Recorder;

use super::{describe_tool::describe, loose::Loose, server_marks::marks};
use crate::{
    call_context::CallContext,
    catalog::{Catalog, SearchAnswer, sees},
    error::ToolError,
    forward::{kinds_named, matching_lines, seen, skill_lines},
    policy::ClientPolicy,
    render::{
        describe::{self, Extent},
        search::{self, NoTools, SearchPage, text_of},
        search_json, whole_lines,
    },
    reply::ToolReply,
};

/// The default number of hits (interface, section 4).
const RESULTS_DEFAULT: usize = 5;

/// The longest reason per server if no tools are known, in characters.
const WHY_CHARS_MAX: usize = 400;

/// The most skills in one answer.
const SKILLS_MAX: usize = 3;

const READ_SKILL: &str =
    r#"read a skill: "tool_name":"proxy/read_resource","tool_input":{"uri":...}"#;

/// The most prompts and resources in one answer, if a request asks for them.
const ITEMS_MAX: usize = 5;

pub(crate) async fn search_tools(
    catalog: &Catalog,
    recorder: &Recorder,
    arguments: Option<&RawValue>,
    context: &CallContext,
) -> Result<ToolReply, ToolError> {
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
    let room = catalog.settings().room(policy);
    if arguments.text(&["format"]).as_deref() == Some("json") {
        let json = search_json::fit(search_json(catalog, &answer), room);
        return Ok(ToolReply::text(&json));
    }
    let text = search_text(catalog, &answer, policy).await?;
    let besides = besides(&answer, context);
    if besides.is_empty() {
        return Ok(ToolReply::text(&text));
    }
    let lines = format!("{text}\n{}", besides.join("\n"));
    Ok(ToolReply::text(&whole_lines(lines, room)))
}

/// The text form, in the room that the policy allows. The answer to an exact name is the tool's
/// description.
pub async fn search_text(
    catalog: &Catalog,
    answer: &SearchAnswer,
    policy: &ClientPolicy,
) -> Result<String, ToolError> {
    let room = catalog.settings().room(policy);
    if let (MatchKind::Exact, [hit]) = (answer.found.kind, answer.found.hits.as_slice()) {
        let extent = Extent {
            room,
            is_full: false,
        };
        return describe(catalog, &hit.entry, None, extent).await;
    }
    let text = search::text(&page(catalog, answer));
    Ok(whole_lines(text, room))
}

/// The JSON form, for scripts: complete at any length.
pub fn search_json(catalog: &Catalog, answer: &SearchAnswer) -> Value {
    search_json::json(&page(catalog, answer))
}

fn page<'a>(catalog: &Catalog, answer: &'a SearchAnswer) -> SearchPage<'a> {
    let found = &answer.found;
    let names_down = found.hits.is_empty() || found.kind == MatchKind::Nearest;
    let down = names_down.then(|| catalog.down(answer.query.view.as_deref()));
    let entries = || found.hits.iter().map(|hit| &hit.entry);
    SearchPage {
        query: &answer.query,
        found,
        missing: &answer.missing,
        marks: entries().map(|it| marks(catalog, it)).collect(),
        often_wrong: entries()
            .map(|it| catalog.usage.often_wrong(&it.at))
            .collect(),
        down: down.unwrap_or_default(),
        no_tools: (catalog.registry.catalog().tools() == 0)
            .then(|| find_why_no_tools(catalog, &answer.query)),
    }
}

fn find_why_no_tools(catalog: &Catalog, query: &Query) -> NoTools {
    if let Some(mistakes) = catalog.mistakes.lock().clone() {
        return NoTools::Misconfigured(mistakes);
    }
    let records = catalog.registry.catalog();
    let servers = records.servers.iter();
    let mut seen = servers.filter(|server| sees(query.view.as_deref(), server));
    let failed = seen.clone().filter_map(|server| {
        let why = server.stale.as_ref()?.to_string();
        let why = printable::one_line_of(&why, WHY_CHARS_MAX);
        Some((server.name.clone(), why))
    });
    let failed: Vec<_> = failed.collect();
    if !failed.is_empty() {
        return NoTools::Failed(failed);
    }
    let is_tool = |it: &Review| matches!(it.shown.subject, Subject::Tool(_));
    let is_held = seen.any(|server| {
        let reviews = catalog.registry.list_reviews(Some(&server.name)).list;
        reviews.iter().any(is_tool)
    });
    if is_held {
        NoTools::Held
    } else {
        NoTools::NoneOffered
    }
}

/// The lines after the hits: prompts and resources if a request asks for them, skills that match, and the instructions
/// of the first hit's server, once a session.
fn besides(answer: &SearchAnswer, context: &CallContext) -> Vec<String> {
    let asked = text_of(&answer.query);
    let kinds = kinds_named(&asked);
    let mut lines = Vec::new();
    if !kinds.is_empty() {
        let seen = seen(&answer.generation, &context.policy);
        lines = matching_lines(&seen, &kinds, &asked);
        lines.truncate(ITEMS_MAX);
    }
    let skills = skill_lines(&answer.generation, &asked, context, SKILLS_MAX);
    if !skills.is_empty() {
        lines.extend(skills);
        lines.push(READ_SKILL.to_owned());
    }
    let first = answer.found.hits.first();
    let server = first.and_then(|hit| answer.generation.server(&hit.entry.at.server));
    let instructions = server.and_then(|server| {
        let says = context.sent_instructions.as_ref()?.brief(server)?;
        Some(describe::instructions_line(server, &says))
    });
    lines.extend(instructions);
    lines
}

fn query(arguments: &Loose) -> Query {
    const QUERY_KEYS: [&str; 3] = ["query", "q", "queries"];
    let asked = match arguments.get(&QUERY_KEYS) {
        Some(Value::Array(_)) => match arguments.texts(&QUERY_KEYS).unwrap_or_default() {
            steps if steps.len() < 2 => QueryText::Words(steps.concat()),
            steps => QueryText::Steps(steps),
        },
        _ => QueryText::Words(arguments.text(&QUERY_KEYS).unwrap_or_default()),
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
