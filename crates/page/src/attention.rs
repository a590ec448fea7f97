//! Everything that needs a person, as rows.

use std::collections::BTreeMap;

use files::clock::to_s;
use fleet::{Availability, QuestionKind, ServerState, WaitingQuestion};
use gateway::{Gateway, PersonQuestion, api::ServerRow, list_idle_rules};
use serde_json::Value;

use crate::{
    limits::QUESTION_BYTES_MAX,
    state::{AttentionRow, QuestionForm},
};

pub(crate) type Attention = BTreeMap<String, AttentionRow>;

impl AttentionRow {
    fn new(kind: &'static str, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            server: None,
            title: title.into(),
            detail: detail.into(),
            next_step: None,
            since_at: None,
            count: None,
            question: None,
        }
    }
}

/// Adds the questions that a page can answer.
pub(crate) fn add_questions(attention: &mut Attention, gateway: &Gateway, states: &[ServerState]) {
    for question in gateway.clients.questions.list() {
        let PersonQuestion { id, client, .. } = &*question;
        let server = &question.server;
        let is_ours = server.is_built_in();
        let title = if is_ours {
            let ended = if question.has_left() {
                "; it goes on when it is called again"
            } else {
                ""
            };
            format!("A call of {client} waits for your approval{ended}")
        } else {
            let mut states = states.iter().filter(|it| it.name == *server);
            let holds_up = |it: &&WaitingQuestion| it.holds_up_others && it.client == *client;
            let holds_up = states.any(|it| it.questions.iter().any(|it| holds_up(&it)));
            let others = if holds_up { "; other calls wait" } else { "" };
            format!("{server} asks the person of {client}{others}")
        };
        let params = Some(question.params()).filter(|it| it.len() <= QUESTION_BYTES_MAX);
        let params: Value = params
            .and_then(|it| serde_json::from_str(it).ok())
            .unwrap_or_default();
        let detail = params["message"].as_str().unwrap_or_default();
        let address = params["url"].as_str().map(str::to_owned);
        let schema = Some(params["requestedSchema"].clone()).filter(Value::is_object);
        let row = AttentionRow {
            server: (!is_ours).then(|| server.to_string()),
            since_at: Some(question.since_ms / 1_000),
            question: (schema.is_some() || address.is_some()).then_some(QuestionForm {
                id: *id,
                schema,
                address,
            }),
            ..AttentionRow::new("question", title, detail)
        };
        attention.insert(format!("question {id}"), row);
    }
}

/// Adds the questions that only the client can answer.
pub(crate) fn add_other_questions(attention: &mut Attention, state: &ServerState) {
    let asked = state.questions.iter().enumerate();
    for (at, question) in asked.filter(|(_, it)| it.method != QuestionKind::Elicitation.method()) {
        let (server, client) = (&state.name, &question.client);
        let row = AttentionRow {
            server: Some(server.to_string()),
            since_at: Some(to_s(question.since)),
            ..AttentionRow::new(
                "question",
                format!("{server} waits for an answer"),
                format!("{client} is asked ({})", question.method),
            )
        };
        attention.insert(format!("question {server} {client} {at}"), row);
    }
}

pub(crate) fn add_server(attention: &mut Attention, row: &ServerRow) {
    let kind = match row.state {
        Availability::LoginRequired => "login",
        Availability::Down | Availability::Stale => "down",
        _ => return,
    };
    let title = format!("{}: {}", row.name, row.state.label());
    let needed = AttentionRow {
        server: Some(row.name.clone()),
        next_step: row.next_step.clone(),
        since_at: row
            .processes
            .iter()
            .filter_map(|it| it.last_failure_at)
            .max(),
        ..AttentionRow::new(kind, title, row.why.clone().unwrap_or_default())
    };
    attention.insert(format!("{kind} {}", row.name), needed);
}

pub(crate) fn add_mistakes(attention: &mut Attention, mistakes: Option<&str>, pins: Option<&str>) {
    let title = "The configuration has mistakes; the previous one is in effect";
    let mistakes = mistakes.map(|it| ("mistakes", title, it, "proxy config check"));
    let pins = pins.map(|it| ("pins", "Nothing counts as accepted", it, "proxy review"));
    for (kind, title, detail, next) in mistakes.into_iter().chain(pins) {
        let row = AttentionRow {
            next_step: Some(next.to_owned()),
            ..AttentionRow::new(kind, title, detail)
        };
        attention.insert(kind.to_owned(), row);
    }
}

pub(crate) fn add_reviews(attention: &mut Attention, gateway: &Gateway) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for review in gateway.catalog.registry.list_reviews(None).list {
        if !review.is_refused {
            *counts.entry(review.shown.server.to_string()).or_default() += 1;
        }
    }
    for (server, count) in counts {
        let definitions = printable::count_of(count, "definition");
        let title = format!("{server} changed {definitions}");
        let row = AttentionRow {
            next_step: Some(format!("proxy review {server}")),
            count: Some(count),
            server: Some(server.clone()),
            ..AttentionRow::new("review", title, "They are not accepted yet.")
        };
        attention.insert(format!("review {server}"), row);
    }
}

pub(crate) fn add_idle_rules(attention: &mut Attention, gateway: &Gateway) {
    for rule in list_idle_rules(gateway) {
        let title = format!("{} matches nothing", rule.about);
        let row = AttentionRow {
            next_step: Some(rule.next),
            ..AttentionRow::new("rule", title, rule.found)
        };
        attention.insert(format!("rule {}", rule.about), row);
    }
}
