//! The one place in which a call is allowed, asked about or refused: of a tool, a prompt or a
//! resource, by whatever way it came.

use ::policy::{Decision, Effects, Kind, Subject, Verdict};
use fleet::{Answer, Asks as _, Question, QuestionKind};
use jsonrpc::{Fields, Json, text_of};
use registry::{Entry, KnownServer};
use serde_json::{Value, json};
use tool::{ServerName, ToolRef};
use tracing::warn;

use crate::{
    allowed::{Allowance, OnAlways},
    asks::CallAsker,
    built_in::is_own,
    call_context::CallContext,
    call_note::CallNote,
    error::ToolError,
    gateway::Gateway,
    refused::{Refused, Why},
};

/// The most of a call's arguments that a person is shown, in characters.
const SHOWN_CHARS_MAX: usize = 2_000;

/// The most of a name.
const NAME_CHARS_MAX: usize = 200;

const ONCE: &str = "once";
const SESSION: &str = "this session";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// A call before it is decided.
pub(crate) struct Asked<'a> {
    kind: Kind,
    server: &'a ServerName,
    name: &'a str,
    category: &'a str,
    effects: Effects,
    arguments: std::borrow::Cow<'a, str>,
    /// Of our own tools only rules speak: each of the calls that one makes is decided by itself.
    is_own: bool,
}

impl<'a> Asked<'a> {
    pub(crate) fn tool(entry: &'a Entry, arguments: &'a str) -> Self {
        Self {
            kind: Kind::Tool,
            server: &entry.at.server,
            name: &entry.at.tool,
            category: &entry.category,
            effects: Effects {
                is_destructive: entry.is_destructive(),
                is_read_only: entry.is_read_only(),
                is_open_world: entry.tool.annotations().open_world != Some(false),
            },
            arguments: arguments.into(),
            is_own: is_own(entry),
        }
    }

    /// A prompt that is made, or an argument of it that is completed.
    pub(crate) fn prompt(server: &'a KnownServer, name: &'a str, arguments: &'a str) -> Self {
        Self {
            kind: Kind::Prompt,
            arguments: arguments.into(),
            ..Self::resource(server, name)
        }
    }

    pub(crate) fn resource(server: &'a KnownServer, uri: &'a str) -> Self {
        Self {
            kind: Kind::Resource,
            server: &server.name,
            name: uri,
            category: &server.category,
            effects: Effects {
                is_destructive: false,
                is_read_only: true,
                is_open_world: true,
            },
            arguments: json!({ "uri": uri }).to_string().into(),
            is_own: false,
        }
    }

    fn subject<'s>(&'s self, context: &'s CallContext) -> Subject<'s> {
        Subject {
            client: &context.policy.name,
            server: self.server.as_str(),
            kind: self.kind,
            name: self.name,
            category: self.category,
            effects: self.effects,
            arguments: &self.arguments,
        }
    }

    fn shown(&self) -> String {
        let name = printable::one_line_of(self.name, NAME_CHARS_MAX);
        match self.kind {
            Kind::Tool => format!("{}/{name}", self.server),
            Kind::Prompt => format!("prompt {name} of {}", self.server),
            Kind::Resource => format!("resource {name} of {}", self.server),
        }
    }

    fn allowance(&self, context: &CallContext) -> Allowance {
        Allowance {
            key: match self.kind {
                Kind::Tool => "tool",
                Kind::Prompt => "prompt",
                Kind::Resource => "resource",
            },
            server: self.server.to_string(),
            name: self.name.to_owned(),
            client: context.policy.name.clone(),
        }
    }

    /// What "this session" covers.
    fn session_key(&self, decision: &Decision) -> String {
        let arguments = if decision.looks_at_arguments {
            &*self.arguments
        } else {
            ""
        };
        format!("{:?} {}/{} {arguments}", self.kind, self.server, self.name)
    }
}

impl Gateway {
    /// Lets a call through, or says why not; asks the person where a rule says so.
    pub(crate) async fn authorize(
        &self,
        asked: &Asked<'_>,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<(), ToolError> {
        note.is_for(asked.server, asked.name);
        let decision = self.decide(asked, context);
        note.is_decided(&decision);
        let allowed = match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny => Err(refuse(asked, &decision, Why::Denied)),
            Verdict::Ask => {
                let asking = self.ask_unless_allowed(asked, &decision, context);
                let asking = context.cancel.run_until_cancelled(asking).await;
                asking.unwrap_or(Err(ToolError::Cancelled))
            }
        };
        allowed.inspect_err(|error| note.fails(error.code()))
    }

    /// Begins to take note of a call; it is recorded when the note is dropped.
    pub(crate) fn begin_note(&self, kind: &'static str, context: &CallContext) -> CallNote {
        let session = context.client.as_ref().and_then(|client| client.connection);
        CallNote::begin(&self.recorder, kind, &context.policy.name)
            .in_session(session)
            .traced(self.traces.begin(context))
    }

    /// A line on what would become of a call; nobody is asked.
    pub(crate) fn explain_call(
        &self,
        asked: &Asked<'_>,
        context: &CallContext,
    ) -> Result<String, ToolError> {
        let decision = self.decide(asked, context);
        let call = format!("{}/{} {}", asked.server, asked.name, asked.arguments);
        match decision.verdict {
            Verdict::Allow => Ok(format!("would call {call}")),
            Verdict::Deny => Err(refuse(asked, &decision, Why::Denied)),
            Verdict::Ask => {
                let by = decision.by();
                Ok(format!("would ask a person, by {by}, and then call {call}"))
            }
        }
    }

    /// What would become of a call of a tool by a client of this name; none: a person at the
    /// command line. Nobody is asked, and nothing is called.
    pub async fn test_call(
        &self,
        name: &str,
        arguments: &str,
        client: Option<&str>,
    ) -> Result<(ToolRef, Decision), ToolError> {
        let policy = client.map(|client| self.settings().clients.of(Some(client)));
        let policy = policy.unwrap_or_default();
        let entry = self.resolve(name, &policy).await?;
        let context = CallContext {
            policy: policy.into(),
            ..CallContext::default()
        };
        let decision = self.decide(&Asked::tool(&entry, arguments), &context);
        Ok((entry.at.clone(), decision))
    }

    fn decide(&self, asked: &Asked<'_>, context: &CallContext) -> Decision {
        let settings = self.settings();
        let subject = asked.subject(context);
        let decision = settings.policy.decide(&subject);
        if asked.is_own && decision.rule().is_none() {
            return ::policy::Policy::default().decide(&subject);
        }
        decision
    }

    async fn ask_unless_allowed(
        &self,
        asked: &Asked<'_>,
        decision: &Decision,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        let key = asked.session_key(decision);
        let Some(allowed) = &context.allowed else {
            return self.ask_person(asked, decision, context, key).await;
        };
        if allowed.has(&key) {
            return Ok(());
        }
        let _stopped = context.asks.as_ref().map(CallAsker::stop_clocks);
        let _turn = allowed.take_turn().await;
        if allowed.has(&key) {
            return Ok(());
        }
        self.ask_person(asked, decision, context, key).await
    }

    async fn ask_person(
        &self,
        asked: &Asked<'_>,
        decision: &Decision,
        context: &CallContext,
        key: String,
    ) -> Result<(), ToolError> {
        let allowance = asked.allowance(context);
        let nobody = |lacks: &str| {
            let why = Why::NobodyToAsk {
                lacks: lacks.to_owned(),
                allow: command_of(&allowance),
            };
            refuse(asked, decision, why)
        };
        let client = context.asks.as_ref();
        let client = client.ok_or_else(|| nobody("this command has nobody to ask"))?;
        let on_always = self
            .on_always
            .get()
            .filter(|_| !decision.looks_at_arguments);
        let question = question(asked, decision, context, on_always.is_some());
        let client = client.for_server(&ServerName::built_in());
        let answer = match client.ask(question).await {
            Answer::Result(answer) => answer,
            Answer::Error(_) => return Err(nobody("this client cannot ask its person")),
        };
        match read_answer(&answer).as_deref() {
            Some(ONCE) => {}
            Some(SESSION) => remember(context, key),
            Some(ALWAYS) => {
                remember(context, key);
                write_down(on_always, &allowance).await;
            }
            _ => return Err(refuse(asked, decision, Why::SaidNo)),
        }
        Ok(())
    }
}

fn remember(context: &CallContext, key: String) {
    if let Some(allowed) = &context.allowed {
        allowed.add(key);
    }
}

/// The call goes on where it cannot be written: the person allowed it.
async fn write_down(on_always: Option<&OnAlways>, allowance: &Allowance) {
    let Some(on_always) = on_always.cloned() else {
        return;
    };
    let allowance = allowance.clone();
    let writing = tokio::task::spawn_blocking(move || on_always.write(&allowance));
    match writing.await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => warn!(why, "what a person always allows was not written down"),
        Err(error) => warn!(%error, "what a person always allows was not written down"),
    }
}

fn refuse(asked: &Asked<'_>, decision: &Decision, why: Why) -> ToolError {
    ToolError::Refused(Box::new(Refused {
        called: asked.shown(),
        by: decision.by().to_string(),
        reason: decision.reason.clone(),
        why,
    }))
}

fn question(
    asked: &Asked<'_>,
    decision: &Decision,
    context: &CallContext,
    has_always: bool,
) -> Question {
    let reason = decision.reason.as_deref().unwrap_or("a rule asks for it");
    let arguments = printable::one_line_of(&asked.arguments, SHOWN_CHARS_MAX);
    let message = format!(
        "Allow {}?\narguments: {arguments}\nwhy you are asked: {reason} ({})",
        asked.shown(),
        decision.by()
    );
    let mut answers = vec![ONCE];
    answers.extend(context.allowed.as_ref().map(|_| SESSION));
    answers.extend(has_always.then_some(ALWAYS));
    answers.push(NO);
    let params = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {"allow": {"type": "string", "title": "Allow it", "enum": answers}},
            "required": ["allow"],
        },
    });
    Question {
        kind: QuestionKind::Elicitation,
        params: Json::of_built(params.to_string()),
    }
}

/// None: not accepted, or not understood, which is a no.
fn read_answer(answer: &Json) -> Option<String> {
    let fields = Fields::of(answer.as_str())?;
    if text_of(fields.get("action")?)? != "accept" {
        return None;
    }
    let content = Fields::of(fields.get("content")?.get())?;
    let said = text_of(content.get("allow")?)?;
    Some(said.into_owned())
}

/// The command by which a person allows it.
fn command_of(allowance: &Allowance) -> String {
    let Allowance {
        key, server, name, ..
    } = allowance;
    let what = match *key {
        "tool" => format!("{server}/{name}"),
        key => format!("--{key} {server}/{name}"),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if what.chars().all(|c| is_plain(c) || c == ' ') {
        format!("proxy allow {what}")
    } else {
        let quoted = Value::from(printable::one_line_of(&what, NAME_CHARS_MAX));
        format!("proxy allow {quoted}")
    }
}
