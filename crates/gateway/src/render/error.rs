//! The text of an error: its code, a sentence and the next step (interface, section 6).

use std::{borrow::Cow, fmt, sync::LazyLock, time::Duration};

use fleet::{Failure, HeldUp, LOGIN_OFFER_LIFE, LoginNeeded, Ran};
use jsonrpc::ProtocolError;
use printable::shorten_middle;
use tool::{ServerName, ToolRef, Violation};

use super::join;
use crate::error::{Audience, OtherThing, ToolError};

/// The longest error text, in characters (interface, section 6).
pub(crate) const ERROR_CHARS_MAX: usize = 2_000;

impl ToolError {
    /// The text, with a next step that its reader can take.
    pub fn text_for(&self, audience: Audience) -> String {
        let sentence = end_sentence(&sentence(self, audience));
        let mut text = format!("error {}: {sentence}", self.code());
        if audience == Audience::Model {
            text = shorten_home_paths(&text).into_owned();
        }
        shorten_middle(&printable::prose(&text), ERROR_CHARS_MAX).into_owned()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_for(Audience::Model))
    }
}

/// The text with `~` in place of the home folder, in paths for a model.
pub fn shorten_home_paths(text: &str) -> Cow<'_, str> {
    static HOME: LazyLock<Option<String>> =
        LazyLock::new(|| files::find_home()?.into_os_string().into_string().ok());
    match HOME.as_deref() {
        Some(home) => printable::shorten_home(text, home),
        None => Cow::Borrowed(text),
    }
}

fn sentence(error: &ToolError, audience: Audience) -> String {
    match error {
        ToolError::UnknownTool {
            asked,
            near,
            instead,
            missing,
        } => match instead {
            Some(thing) => explain_other_thing(asked, thing, near, audience),
            None => explain_unknown(asked, near, missing, audience),
        },
        ToolError::AmbiguousTool { asked, candidates } => explain_ambiguous(asked, candidates),
        ToolError::InvalidInput {
            tool,
            violations,
            signature,
        } => explain_invalid(tool, violations, signature),
        ToolError::ServerUnavailable {
            server,
            failure,
            tries,
            ran,
            available,
        } => explain_unavailable(server, failure, *tries, *ran, available),
        ToolError::ServerRestarted(server) => explain_restarted(server),
        ToolError::LoginRequired {
            server,
            needed,
            why,
        } => explain_login(server, needed, why),
        ToolError::Timeout {
            tool,
            limit,
            ran,
            held_up,
        } => explain_timeout(tool, *limit, *ran, held_up.as_ref(), audience),
        ToolError::Denied { tool, rule, table } => format!(
            "{tool} is kept out by {rule}. A person can change it under [{table}] in the \
             configuration"
        ),
        ToolError::Refused(refused) => refused.to_string(),
        ToolError::QuotaUsedUp(used_up) => used_up.to_string(),
        ToolError::HandleExpired { handle, why } => {
            format!("\"{handle}\": {why}. Call the tool that gave it again")
        }
        ToolError::ServerError {
            tool,
            error,
            signature,
        } => explain_server_error(tool, error, signature),
        ToolError::Cancelled => "the call was cancelled".to_owned(),
        ToolError::EndedByPerson => {
            "a person ended the call on the web page; it may have run. Ask before you call it again"
                .to_owned()
        }
        ToolError::InputRequired { tool, why } => format!(
            "{tool} asks for more before it goes on: {why}. The call is not done. Call it with all it \
             needs, if it takes that as arguments"
        ),
        ToolError::Misconfigured(mistakes) => format!(
            "the configuration cannot be used. {}",
            printable::prose(mistakes)
        ),
        ToolError::Script { text, .. } => text.clone(),
        ToolError::ScriptLimit(limit) => limit.to_string(),
        ToolError::Internal(why) => {
            format!("{why}. This is an error in the proxy, not in the tool")
        }
    }
}

fn explain_restarted(server: &ServerName) -> String {
    format!(
        "a person restarted {server} while the call ran; it may have run. Look whether it did before \
         you call it again"
    )
}

/// Ends a sentence with a full stop, unless it is a question.
fn end_sentence(text: &str) -> String {
    let text = text.trim_end();
    let stop = if text.ends_with('?') { "" } else { "." };
    format!("{text}{stop}")
}

fn explain_other_thing(
    asked: &str,
    thing: &OtherThing,
    some: &[String],
    audience: Audience,
) -> String {
    let asked = shorten_middle(asked, 200);
    match (thing, audience) {
        (OtherThing::OurThree, Audience::Model) => {
            format!("\"{asked}\" is one of the three tools of this gateway: call it by itself")
        }
        (OtherThing::OurThree, Audience::Person) => format!(
            "\"{asked}\" is for models; `proxy search`, `proxy describe` and `proxy call` do the same"
        ),
        (OtherThing::Server(server), _) => {
            let some = some.join(", ");
            let all = match audience {
                Audience::Model => format!("describe_tool {{\"name\":\"{server}\"}}"),
                Audience::Person => format!("`proxy search '*' --server {server}`"),
            };
            format!(
                "\"{asked}\" is a server, not a tool. Some of its tools: {some}. {all} lists all"
            )
        }
    }
}

fn explain_unknown(
    asked: &str,
    near: &[String],
    missing: &[ServerName],
    audience: Audience,
) -> String {
    let asked = shorten_middle(asked, 200);
    if !missing.is_empty() {
        return format!(
            "\"{asked}\" is on none of the servers known so far. Being asked for their tools right \
             now: {}. Try again in a few seconds",
            join(missing, ", ")
        );
    }
    let (search, otherwise) = match audience {
        Audience::Model => ("Use search_tools to find", "use search_tools"),
        Audience::Person => ("`proxy search WORDS` finds", "`proxy search WORDS`"),
    };
    if near.is_empty() {
        return format!("\"{asked}\". {search} the right name");
    }
    let near = near.join(" or ");
    format!("\"{asked}\". Did you mean {near}? Otherwise {otherwise}")
}

fn explain_invalid(tool: &str, violations: &[Violation], signature: &str) -> String {
    let list = end_sentence(&printable::prose(&join(violations, "; ")));
    format!("{list} Expected {tool}{signature}")
}

fn explain_ambiguous(asked: &str, candidates: &[String]) -> String {
    let list = candidates.join(" and ");
    format!("\"{asked}\" is on {list}. Call one of them by its whole name")
}

fn explain_unavailable(
    server: &ServerName,
    failure: &Failure,
    tries: u32,
    ran: Ran,
    available: &[ServerName],
) -> String {
    let mut text = format!("{server}: {failure}");
    match ran {
        Ran::No => text.push_str(". The call did not run"),
        Ran::Maybe => text.push_str(". The call may have run"),
    }
    match tries {
        0 => {}
        1 => text.push_str(". Tried once in a row"),
        _ => text.push_str(&format!(". Tried {tries} times in a row")),
    }
    if let Some(hint) = &failure.hint {
        text.push_str(&format!(". A person can fix it: {hint}"));
    }
    let names = match available {
        [] => "no other server".to_owned(),
        servers => join(servers, ", "),
    };
    text + ". Available: " + &names
}

fn explain_login(server: &ServerName, needed: &LoginNeeded, why: &str) -> String {
    let mut text = match &needed.address {
        Some(address) => {
            let minutes = LOGIN_OFFER_LIFE.as_secs() / 60;
            format!("{server}: ask the user to log in at {address} (valid for {minutes} minutes)")
        }
        None => format!("{server}: ask the user to run \"proxy login {server}\""),
    };
    if !needed.scopes.is_empty() {
        text.push_str(", the login lacks the scopes it asks for: ");
        text.push_str(&printable::one_line_of(&needed.scopes.join(" "), 200));
    } else if needed.again {
        text.push_str(" again, the login has ended");
    }
    let why = printable::one_line(why);
    text + ". Then call again; nothing ran. It said: " + &shorten_middle(&why, 200)
}

fn explain_timeout(
    tool: &ToolRef,
    limit: Duration,
    ran: Ran,
    held_up: Option<&HeldUp>,
    audience: Audience,
) -> String {
    let ms = limit.as_millis();
    let happened = match (ran, held_up) {
        _ if tool.server.is_built_in() => "it was stopped, and changed nothing".to_owned(),
        (Ran::No, Some(why)) => format!("its server {why}; the call did not run"),
        (Ran::No, None) => {
            "its server was still starting, or its arguments being checked; the call did not run"
                .to_owned()
        }
        (Ran::Maybe, _) => "the call was cancelled, and may have run".to_owned(),
    };
    let more = ms.saturating_mul(2);
    let longer = match audience {
        Audience::Model => format!("put \"proxy/timeout_ms\":{more} into tool_input"),
        Audience::Person => format!("give --timeout-ms {more}"),
    };
    format!("{tool} gave no answer within {ms} ms; {happened}. To wait longer, {longer}")
}

fn explain_server_error(tool: &ToolRef, error: &ProtocolError, signature: &str) -> String {
    let data = error.data.as_deref();
    let data = data.map(|it| format!(" ({})", shorten_middle(&printable::one_line(it), 600)));
    format!(
        "{} answered with error {}: {}{}. The tool was {tool}{signature}",
        tool.server,
        printable::one_line_of(&error.code, 40),
        shorten_middle(&printable::one_line(&error.message), 900),
        data.unwrap_or_default(),
    )
}
