//! The single place in which a call of a tool, a prompt or a resource is allowed, asked about or
//! refused, for every kind of client.

pub(crate) mod permissions;
mod question;
pub(crate) mod refusal;
mod rules_at_start;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ::policy::{
    Allowance, Decision, Effects, NotAllowable, Policy, PolicyVerdict, RequestKind, Subject,
};
use fleet::{Asks as _, ClientAnswer, QuestionKind, ServerQuestion};
use jsonrpc::{Fields, Json, text_of};
use registry::{Entry, KnownServer};
use serde_json::{json, value::RawValue};
use telemetry::Recorder;
use tool::{Digest, ServerName, ToolRef};
use tracing::warn;

use crate::{
    authorize::permissions::QuestionTurn,
    authorize::question::{show_call, show_name},
    authorize::refusal::{CallRefusal, RefusalReason},
    built_in::is_own,
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::record::CallNote,
    elicitation::CallAsker,
    error::ToolError,
    policy::ClientPolicy,
    traces::Traces,
};

/// Longest name in an error or a command, in characters.
const NAME_CHARS_MAX: usize = 200;

const ONCE: &str = "once";
const SESSION: &str = "this session";
const ALWAYS: &str = "always";
const NO: &str = "no";

pub(crate) struct AuthorizationRequest<'a> {
    kind: RequestKind,
    server: Cow<'a, ServerName>,
    name: Cow<'a, str>,
    category: Cow<'a, str>,
    effects: Effects,
    arguments: Json,
    /// A call of a tool of ours. Only rules apply to it: each call that the tool makes is decided by
    /// itself.
    is_own: bool,
}

impl<'a> AuthorizationRequest<'a> {
    pub(crate) fn tool(entry: &'a Entry, arguments: &Json) -> Self {
        Self {
            kind: RequestKind::Tool,
            server: Cow::Borrowed(&entry.at.server),
            name: Cow::Borrowed(&entry.at.tool),
            category: Cow::Borrowed(&entry.category),
            effects: Effects {
                is_destructive: entry.is_destructive(),
                is_read_only: entry.is_read_only(),
                is_open_world: entry.tool.annotations().open_world != Some(false),
            },
            arguments: arguments.clone(),
            is_own: is_own(entry),
        }
    }

    /// A request for a prompt, or a completion of its argument.
    pub(crate) fn prompt(server: &'a KnownServer, name: &'a str, arguments: Json) -> Self {
        Self {
            kind: RequestKind::Prompt,
            arguments,
            ..Self::resource(server, name)
        }
    }

    pub(crate) fn resource(server: &'a KnownServer, uri: &'a str) -> Self {
        Self {
            kind: RequestKind::Resource,
            server: Cow::Borrowed(&server.name),
            name: Cow::Borrowed(uri),
            category: Cow::Borrowed(&server.category),
            effects: Effects {
                is_destructive: false,
                is_read_only: true,
                is_open_world: true,
            },
            arguments: Json::of_built(json!({ "uri": uri }).to_string()),
            is_own: false,
        }
    }

    fn to_owned(&self) -> AuthorizationRequest<'static> {
        AuthorizationRequest {
            kind: self.kind,
            server: Cow::Owned(self.server.clone().into_owned()),
            name: Cow::Owned(self.name.clone().into_owned()),
            category: Cow::Owned(self.category.clone().into_owned()),
            effects: self.effects,
            arguments: self.arguments.clone(),
            is_own: self.is_own,
        }
    }

    fn subject<'s>(&'s self, client: &'s str, profiles: &'s [Arc<str>]) -> Subject<'s> {
        Subject {
            client,
            profiles,
            server: self.server.as_str(),
            kind: self.kind,
            name: &self.name,
            category: &self.category,
            effects: self.effects,
            arguments: self.arguments.as_str(),
        }
    }

    /// The name for an error: a long one is cut.
    fn shown(&self) -> String {
        self.called(&printable::one_line_of(&self.name, NAME_CHARS_MAX))
    }

    fn called(&self, name: &str) -> String {
        match self.kind {
            RequestKind::Tool => format!("{}/{name}", self.server),
            RequestKind::Prompt => format!("prompt {name} of {}", self.server),
            RequestKind::Resource => format!("resource {name} of {}", self.server),
        }
    }

    /// The calls that "this session" covers, for as long as the same rule decides.
    fn session_key(&self, decided: &Decided) -> String {
        let arguments = if decided.decision.looks_at_arguments {
            self.arguments.as_str()
        } else {
            ""
        };
        let rule = decided.decision.decider(&decided.policy);
        let (kind, server, name) = (self.kind, &self.server, &self.name);
        format!("{kind:?} {server}/{name} {rule:?} {arguments}")
    }
}

pub(crate) fn no_arguments() -> Json {
    Json::of_built("{}".to_owned())
}

/// A decision, and the rules that led to it.
struct Decided {
    decision: Decision,
    policy: Arc<Policy>,
}

/// Writes an allowance to the configuration; the error is a text for a person. May block.
type OnAlways = Arc<dyn Fn(&Allowance) -> Result<(), String> + Send + Sync>;

/// Decides every call, by the rules and by asking the person: the single place of authorization.
pub struct Authorizer {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) traces: Arc<Traces>,
    pub(crate) on_always: OnceLock<OnAlways>,
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").finish_non_exhaustive()
    }
}

impl Authorizer {
    /// Sets the function that writes permanent permissions to the configuration; without it nobody can
    /// choose "always". Its error is a text for a person. It may block.
    pub fn set_on_always(
        &self,
        write: impl Fn(&Allowance) -> Result<(), String> + Send + Sync + 'static,
    ) {
        let _ = self.on_always.set(Arc::new(write));
    }

    /// Lets a call through, or returns why not; asks the person if a rule requires it.
    pub(crate) async fn authorize(
        &self,
        asked: &AuthorizationRequest<'_>,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<(), ToolError> {
        note.set_target(&asked.server, &asked.name);
        let decided = self.decide(asked, &context.policy);
        note.set_decision(&decided.decision);
        let allowed = match decided.decision.verdict {
            PolicyVerdict::Allow => Ok(()),
            PolicyVerdict::Deny => Err(refuse(asked, &decided.decision, RefusalReason::Denied)),
            PolicyVerdict::Ask => {
                let asking = Box::pin(self.ask_unless_allowed(asked, &decided, context));
                let asking = context.cancel.run_until_cancelled(asking).await;
                let said = asking.unwrap_or(Err(ToolError::Cancelled));
                said.and_then(|()| self.refuse_if_denied_meanwhile(asked, &context.policy, note))
            }
        };
        allowed.inspect_err(|error| note.set_failure(error.code()))?;
        note.record.node = self
            .catalog
            .servers
            .cluster()
            .and_then(|node| node.node_of(&asked.server));
        Ok(())
    }

    /// Refuses a call that the rules deny by now, and records the decision. They may have changed while a
    /// person was asked, or while the call waited for its start.
    pub(crate) fn refuse_if_denied_meanwhile(
        &self,
        asked: &AuthorizationRequest<'_>,
        client: &ClientPolicy,
        note: &mut CallNote,
    ) -> Result<(), ToolError> {
        let Decided { decision, .. } = self.decide(asked, client);
        if decision.verdict != PolicyVerdict::Deny {
            return Ok(());
        }
        note.set_decision(&decision);
        Err(refuse(asked, &decision, RefusalReason::Denied))
    }

    /// Begins the record of a call; it is written when the note is dropped.
    pub(crate) fn begin_note(&self, kind: &'static str, context: &CallContext) -> CallNote {
        CallNote::begin(&self.recorder, self.traces.begin(context), kind, context)
    }

    /// A line on the decision about a call; nobody is asked.
    pub(crate) fn explain_call(
        &self,
        asked: &AuthorizationRequest<'_>,
        context: &CallContext,
    ) -> Result<String, ToolError> {
        let Decided { decision, .. } = self.decide(asked, &context.policy);
        let arguments = asked.arguments.as_str();
        let call = format!("{}/{} {arguments}", asked.server, asked.name);
        match decision.verdict {
            PolicyVerdict::Allow => Ok(format!("would call {call}")),
            PolicyVerdict::Deny => Err(refuse(asked, &decision, RefusalReason::Denied)),
            PolicyVerdict::Ask => {
                let by = decision.by();
                Ok(format!("would ask a person, by {by}, and then call {call}"))
            }
        }
    }

    /// Decides a call of a tool by a client of this name without making it; `None` is a person at
    /// the command line. Nobody is asked, and nothing is called.
    pub async fn test_call(
        &self,
        name: &str,
        arguments: &str,
        client: Option<&str>,
    ) -> Result<(ToolRef, Decision), ToolError> {
        let policy = client.map(|client| self.catalog.settings().clients.of(Some(client)));
        let policy = policy.unwrap_or_else(ClientPolicy::of_command_line);
        let entry = self.catalog.resolve(name, &policy).await?;
        let arguments = Json::of_built(arguments.to_owned());
        let asked = AuthorizationRequest::tool(&entry, &arguments);
        let Decided { decision, .. } = self.decide(&asked, &policy);
        Ok((entry.at.clone(), decision))
    }

    /// The rule that allows something permanently: for the client of this name, or for every client
    /// unless rules name certain clients.
    pub async fn find_allowance(
        &self,
        thing: Thing<'_>,
        client: Option<&str>,
    ) -> Result<Result<Allowance, NotAllowable>, ToolError> {
        let policy = &self.catalog.settings().policy;
        let find = |asked: &AuthorizationRequest<'_>| find_allowance(asked, policy, client);
        Ok(match thing {
            Thing::Tool(name) => {
                let entry = self.catalog.resolve(name, &ClientPolicy::default()).await?;
                find(&AuthorizationRequest::tool(&entry, &no_arguments()))
            }
            Thing::Prompt(server, own) => {
                find(&AuthorizationRequest::prompt(server, own, no_arguments()))
            }
            Thing::Resource(server, uri) => find(&AuthorizationRequest::resource(server, uri)),
        })
    }

    fn decide(&self, asked: &AuthorizationRequest<'_>, client: &ClientPolicy) -> Decided {
        let policy = Arc::clone(&self.catalog.settings().policy);
        let subject = asked.subject(&client.name, &client.profiles);
        let mut decision = policy.decide(&subject);
        if asked.is_own && decision.rule.is_none() {
            decision = Policy::default().decide(&subject);
        }
        Decided { decision, policy }
    }

    async fn ask_unless_allowed(
        &self,
        asked: &AuthorizationRequest<'_>,
        decided: &Decided,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        let Some(arrival) = &context.arrival else {
            return self.ask_person(asked, decided, context, None).await;
        };
        let key = asked.session_key(decided);
        if arrival.allowed.has(&key) {
            return Ok(());
        }
        let _stopped = context.asks.as_ref().map(CallAsker::stop_clocks);
        // A script makes its calls one after another, so each of them arrives separately.
        let of_script = context.script.as_ref().map(|_| arrival.allowed.arrive());
        let arrival = of_script.as_ref().unwrap_or(arrival);
        let turn = arrival.take_turn(key).await;
        match turn.find_answer() {
            Some(true) => Ok(()),
            Some(false) => Err(refuse(asked, &decided.decision, RefusalReason::Declined)),
            None => self.ask_person(asked, decided, context, Some(turn)).await,
        }
    }

    async fn ask_person(
        &self,
        asked: &AuthorizationRequest<'_>,
        decided: &Decided,
        context: &CallContext,
        turn: Option<QuestionTurn<'_>>,
    ) -> Result<(), ToolError> {
        let Decided { decision, policy } = decided;
        let nobody = |lacks: &str| {
            let why = RefusalReason::CannotAsk {
                lacks: lacks.to_owned(),
                allow: find_command(asked, policy, context),
            };
            refuse(asked, decision, why)
        };
        let client = context.asks.as_ref();
        let client = client.ok_or_else(|| nobody("this command has nobody to ask"))?;
        let always = self.on_always.get().and_then(|on_always| {
            let allowance = find_allowance(asked, policy, Some(&context.policy.name));
            Some((on_always, allowance.ok()?))
        });
        let question = write_question(asked, decision, context, always.is_some())?;
        let person = client.for_server(&ServerName::built_in());
        let answer = match person.ask(question.clone()).await {
            ClientAnswer::Result(answer) => answer,
            ClientAnswer::Error(_) => {
                let wait = self.catalog.settings().approval_wait;
                if wait.is_zero() || !client.people().is_reachable() {
                    return Err(nobody("this client cannot ask its person"));
                }
                let answer = ask_outside(asked, context, client, question.params, wait).await;
                answer.ok_or_else(|| refuse(asked, decision, RefusalReason::Pending))?
            }
        };
        let is_remembered = match (read_answer(&answer).as_deref(), always) {
            (Some(ONCE), _) => false,
            (Some(SESSION), _) => true,
            // The call proceeds even if the rule cannot be written: the person allowed it.
            (Some(ALWAYS), Some((on_always, allowance))) => write_down(on_always, allowance).await,
            _ => {
                if let Some(turn) = turn {
                    turn.refuse();
                }
                return Err(refuse(asked, decision, RefusalReason::Declined));
            }
        };
        if let Some(turn) = turn.filter(|_| is_remembered) {
            turn.allow();
        }
        Ok(())
    }
}

/// Asks a person outside of the client, on the page or by a command, and reports to the client that the
/// call waits. Returns `None` if there is no answer in time.
async fn ask_outside(
    asked: &AuthorizationRequest<'_>,
    context: &CallContext,
    client: &CallAsker,
    params: Json,
    wait: Duration,
) -> Option<Json> {
    let caller = context.client.as_ref().map_or("", |it| &*it.name);
    let (kind, server, name) = (asked.kind, &asked.server, &asked.name);
    let arguments = asked.arguments.as_str();
    let call = format!("{caller}\n{kind:?} {server}/{name}\n{arguments}");
    let question = (&ServerName::built_in(), client.client_name(), params);
    let people = client.people();
    let answering = people.ask_outside(question, Digest::of_bytes(call.as_bytes()), wait);
    let reporting = async {
        for tick in 1_u32.. {
            report_wait(context, tick);
            tokio::time::sleep(WAIT_REPORTED_EVERY).await;
        }
    };
    tokio::select! {
        biased;
        answer = answering => match answer? {
            ClientAnswer::Result(answer) => Some(answer),
            ClientAnswer::Error(_) => None,
        },
        () = reporting => None,
    }
}

/// Many clients end a call that reports no progress.
const WAIT_REPORTED_EVERY: Duration = Duration::from_secs(10);

fn report_wait(context: &CallContext, tick: u32) {
    let Some(progress) = &context.progress else {
        return;
    };
    let message = "waits for a person: `proxy review --pending` or the page of `proxy web`";
    let report = json!({"progress": tick, "message": message}).to_string();
    if let Ok(report) = RawValue::from_string(report) {
        progress(&report);
    }
}

/// Something that a person allows.
#[derive(Debug, Clone, Copy)]
pub enum Thing<'a> {
    /// A tool by its name, in any spelling.
    Tool(&'a str),
    /// A prompt of a server, by its own name.
    Prompt(&'a KnownServer, &'a str),
    /// A resource of a server, by its own URI.
    Resource(&'a KnownServer, &'a str),
}

/// `client`: none for every client.
fn find_allowance(
    asked: &AuthorizationRequest<'_>,
    policy: &Policy,
    client: Option<&str>,
) -> Result<Allowance, NotAllowable> {
    let subject = Subject {
        arguments: "{}",
        ..asked.subject(client.unwrap_or_default(), &[])
    };
    let allowance = Allowance::new(policy, &subject, client.is_none())?;
    if asked.is_own && allowance.is_decided_by_preset() {
        return Err(NotAllowable::Allowed("being built in".to_owned()));
    }
    Ok(allowance)
}

async fn write_down(on_always: &OnAlways, allowance: Allowance) -> bool {
    let on_always = Arc::clone(on_always);
    let writing = tokio::task::spawn_blocking(move || on_always(&allowance));
    let written = writing.await.unwrap_or_else(|error| Err(error.to_string()));
    if let Err(why) = &written {
        warn!(
            why,
            "`always` was not written to the configuration; the call is allowed once"
        );
    }
    written.is_ok()
}

fn refuse(asked: &AuthorizationRequest<'_>, decision: &Decision, why: RefusalReason) -> ToolError {
    ToolError::Refused(Box::new(CallRefusal {
        called: asked.shown(),
        by: decision.by().to_string(),
        reason: decision.reason.clone(),
        why,
    }))
}

/// Writes the question about a call; fails if the call is too long to be shown whole.
fn write_question(
    asked: &AuthorizationRequest<'_>,
    decision: &Decision,
    context: &CallContext,
    has_always: bool,
) -> Result<ServerQuestion, ToolError> {
    let reason = decision.reason.as_deref().unwrap_or("a rule asks for it");
    let called = asked.called(&show_name(&asked.name));
    let shown = show_call(&called, asked.arguments.as_str())
        .map_err(|chars| refuse(asked, decision, RefusalReason::TooLong { chars }))?;
    let message = format!("{shown}\nwhy you are asked: {reason} ({})", decision.by());
    let arrival = context.arrival.as_ref();
    let has_session = arrival.is_some_and(|it| it.allowed.is_of_session());
    let mut answers = vec![ONCE];
    answers.extend(has_session.then_some(SESSION));
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
    Ok(ServerQuestion {
        kind: QuestionKind::Elicitation,
        params: Json::of_built(params.to_string()),
    })
}

/// The person's choice; `None` if not accepted, or not understood, which counts as no.
fn read_answer(answer: &Json) -> Option<String> {
    let fields = Fields::of(answer.as_str())?;
    if text_of(fields.get("action")?)? != "accept" {
        return None;
    }
    let content = Fields::of(fields.get("content")?.get())?;
    let said = text_of(content.get("allow")?)?;
    Some(said.into_owned())
}

/// The command by which a person allows the call; `None` if there is no such command.
fn find_command(
    asked: &AuthorizationRequest<'_>,
    policy: &Policy,
    context: &CallContext,
) -> Option<String> {
    let client = &context.policy.name;
    let client = match find_allowance(asked, policy, None) {
        Ok(_) => None,
        // A rule for certain clients may decide.
        Err(_) => {
            find_allowance(asked, policy, Some(client)).ok()?;
            Some(client)
        }
    };
    let switch = match asked.kind {
        RequestKind::Tool => "",
        RequestKind::Prompt => "--prompt ",
        RequestKind::Resource => "--resource ",
    };
    let name = quote(&format!("{}/{}", asked.server, asked.name))?;
    let command = format!("proxy policy allow {switch}{name}");
    Some(match client {
        Some(client) => format!("{command} --client {}", quote(client)?),
        None => command,
    })
}

/// A quoted word of a command line; `None` if nobody can type it.
fn quote(word: &str) -> Option<String> {
    let can_be_typed = !word.chars().any(printable::is_hidden);
    let is_short = word.chars().count() <= NAME_CHARS_MAX;
    (can_be_typed && is_short).then(|| printable::quote_word(word))
}
