//! Resolves a name that a client wrote to one tool.

use std::sync::Arc;

use fleet::{Failure, LoginNeeded};
use registry::{Entry, FindError, Generation, HeldBy};
use tokio::task::spawn_blocking;
use tool::{ServerName, ToolRef};

use crate::{
    authorize::refusal::{CallRefusal, RefusalReason},
    definitions::{DESCRIBE, EXECUTE, SEARCH},
    error::{OtherThing, ToolError},
    policy::ClientPolicy,
};

/// Resolves a name once; everything after uses the one result. A client is told of no tool that
/// it does not see, but for the one it names itself.
///
/// If the name matches no tool, titles are read and similar names searched for off the event loop: it
/// is a full search, with an encoder that may have to be loaded first.
pub(super) async fn find(
    generation: &Arc<Generation>,
    asked: &str,
    client: &ClientPolicy,
) -> Result<Arc<Entry>, ToolError> {
    if let Ok(entry) = generation.find_by_name(asked) {
        return admit(entry, client);
    }
    let (generation, asked) = (Arc::clone(generation), asked.to_owned());
    let client = client.clone();
    let finding = spawn_blocking(move || find_in_doubt(&generation, &asked, &client));
    finding.await.map_err(ToolError::internal)?
}

pub(super) fn admit(entry: &Arc<Entry>, client: &ClientPolicy) -> Result<Arc<Entry>, ToolError> {
    match client.refuses(&entry.at.server, &entry.category) {
        Some((rule, table)) => Err(ToolError::Denied {
            tool: entry.at.clone(),
            table: table.to_owned(),
            rule,
        }),
        None => Ok(Arc::clone(entry)),
    }
}

fn find_in_doubt(
    generation: &Generation,
    asked: &str,
    client: &ClientPolicy,
) -> Result<Arc<Entry>, ToolError> {
    let error = match generation.find(asked) {
        Ok(entry) => return admit(entry, client),
        Err(error) => error,
    };
    match error {
        FindError::Unknown { asked, server } => {
            let toolless = server.and_then(|server| toolless(generation, &server, client));
            Err(toolless.unwrap_or_else(|| unknown(generation, asked, client)))
        }
        FindError::Ambiguous {
            asked,
            mut candidates,
        } => {
            candidates.retain(|at| {
                let entry = generation.find(&at.to_string());
                entry.is_ok_and(|entry| client.sees(&entry.at.server, &entry.category))
            });
            if let [only] = candidates.as_slice()
                && let Ok(entry) = generation.find(&only.to_string())
            {
                return Ok(Arc::clone(entry));
            }
            let candidates = sign(generation, &candidates);
            Err(ToolError::AmbiguousTool { asked, candidates })
        }
        FindError::Held { at, by } => Err(held(at.to_string(), &at.server, by)),
        FindError::Denied { at, rule } => Err(ToolError::Denied {
            table: format!("servers.{}", at.server),
            tool: at,
            rule,
        }),
    }
}

fn unknown(generation: &Generation, asked: String, client: &ClientPolicy) -> ToolError {
    let servers = generation.servers_named(&asked).into_iter();
    let mut servers = servers.filter(|it| it.tools > 0 && client.sees(&it.name, &it.category));
    let (instead, near) = if [SEARCH, DESCRIBE, EXECUTE].contains(&asked.as_str()) {
        (Some(OtherThing::OurThree), Vec::new())
    } else if let Some(server) = servers.next() {
        let tools = generation.entries().map(|entry| &entry.at);
        let tools = tools.filter(|at| at.server == server.name).cloned();
        let thing = OtherThing::Server(server.name.clone());
        (Some(thing), tools.take(TOOLS_NAMED_MAX).collect())
    } else {
        (None, generation.nearest(&asked, client.view.clone()))
    };
    ToolError::UnknownTool {
        near: sign(generation, &near),
        asked,
        instead,
        missing: Vec::new(),
    }
}

/// The number of tools that are named for a server whose name was used as a tool's.
const TOOLS_NAMED_MAX: usize = 3;

/// The error for a call whose definition waits for a person's review, or was refused by a person.
pub(crate) fn held(called: String, server: &ServerName, by: HeldBy) -> ToolError {
    let (by, reason) = match by {
        HeldBy::Pin => ("pin = \"hold\"", "it is not as it was accepted"),
        HeldBy::Refusal => ("a review", "a person refused it as it is"),
        HeldBy::Sign => (
            "pin = \"warn\"",
            "its new text seems to steer the model, and the accepted one is not known",
        ),
    };
    ToolError::Refused(Box::new(CallRefusal {
        called,
        by: by.to_owned(),
        reason: Some(reason.to_owned()),
        why: RefusalReason::Held {
            review: format!("proxy review {server}"),
        },
    }))
}

/// The error for a name on a server whose snapshot is damaged: its tools are unknown until it was
/// asked again. `is_mending` is true if this process does so.
pub(super) fn damaged(
    generation: &Generation,
    asked: &str,
    client: &ClientPolicy,
    is_mending: bool,
) -> Option<ToolError> {
    let Err(FindError::Unknown { server, .. }) = generation.find(asked) else {
        return None;
    };
    let known = generation.server(&server?)?;
    let why = known.damaged.as_ref()?;
    if !client.sees(&known.name, &known.category) {
        return None;
    }
    let name = &known.name;
    let (asked_again, hint) = if is_mending {
        (
            ", and it was asked for its tools again",
            format!("try again; if it stays so, proxy reindex {name}"),
        )
    } else {
        ("", format!("proxy reindex {name}"))
    };
    let mut failure = Failure::new(format!("its snapshot is damaged ({why}){asked_again}"));
    failure.hint = Some(hint);
    Some(ToolError::unavailable(name.clone(), failure, Vec::new()))
}

/// Writes tools with their signatures, as hits show them.
fn sign(generation: &Generation, refs: &[ToolRef]) -> Vec<String> {
    let sign = |at: &ToolRef| match generation.find(&at.to_string()) {
        Ok(entry) => format!("{at}{}", entry.signature()),
        Err(_) => at.to_string(),
    };
    refs.iter().map(sign).collect()
}

/// The error for a name on a server that has never sent its tools: it gives the reason. A client
/// gets no information about a server that it does not see.
fn toolless(
    generation: &Generation,
    server: &ServerName,
    client: &ClientPolicy,
) -> Option<ToolError> {
    let servers = generation.servers().iter();
    let mut seen = servers.filter(|known| client.sees(&known.name, &known.category));
    let others = seen.clone();
    let known = seen.find(|known| known.surveyed_at.is_none() && known.name == *server)?;
    let others = others.filter(|known| known.tools > 0 && known.stale.is_none());
    let why = known.stale.clone()?;
    if why.needs_login {
        return Some(ToolError::LoginRequired {
            server: known.name.clone(),
            needed: Box::new(LoginNeeded {
                again: false,
                scopes: Vec::new(),
                address: None,
            }),
            why: why.why,
        });
    }
    let mut failure = Failure::new(why.why);
    failure.hint = why.hint;
    let available = others.map(|known| known.name.clone()).collect();
    Some(ToolError::unavailable(
        known.name.clone(),
        failure,
        available,
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use registry::{News, Options, Registry, Rules, ServerRules, SurveyFailure};

    use super::*;
    use crate::policy::{ClientPolicies, ClientRule};

    fn rules() -> Rules {
        let plain = |name: &str| ServerRules::plain(name.parse().unwrap());
        Rules {
            servers: vec![plain("down"), plain("other")],
            ..Rules::default()
        }
    }

    /// Polls the search once: if it is done by then, it ran on the event loop.
    fn is_found_at_once(generation: &Arc<Generation>, asked: &str) -> bool {
        let client = ClientPolicy::default();
        let mut finding = std::pin::pin!(find(generation, asked, &client));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        finding.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn a_name_that_is_none_is_looked_for_beside_the_event_loop() {
        let folder = tempfile::tempdir().unwrap();
        let tool = tool::Tool::parse(r#"{"name":"t","inputSchema":{}}"#).unwrap();
        let options = Options {
            built_in: vec![tool.into()],
            ..Options::default()
        };
        let registry = Registry::open_with(folder.path(), rules(), options).unwrap();
        let generation = registry.generation().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let error = runtime.block_on(async {
            // The only thread besides the event loop is busy until it is released.
            let (let_go, held) = tokio::sync::oneshot::channel::<()>();
            let busy = spawn_blocking(move || held.blocking_recv());
            assert!(is_found_at_once(&generation, "proxy/t"));
            for asked in ["proxy/tt", "t t", "other/t", "nothing like it"] {
                assert!(!is_found_at_once(&generation, asked), "{asked}");
            }
            let_go.send(()).unwrap();
            busy.await.unwrap().unwrap();
            find(&generation, "proxy/tt", &ClientPolicy::default()).await
        });
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("error unknown_tool: "), "{error}");
    }

    /// Checks the error for a server that never sent its tools, for a client that may not see
    /// `hidden`.
    #[track_caller]
    fn check(asked: &str, hidden: &[&str], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open_with(folder.path(), rules(), Options::default()).unwrap();
        let news = News {
            server: "down".parse().unwrap(),
            asked_ms: 0,
            outcome: Err(SurveyFailure::new("it ended at once")),
        };
        registry.commit(vec![news], true, 1).unwrap();
        let hidden: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let rule = ClientRule {
            deny: hidden,
            ..ClientRule::default()
        };
        let clients = ClientPolicies::new([("*".to_owned(), rule)]).unwrap();
        let client = clients.of(None);
        let generation = registry.generation().unwrap();
        let error = find_in_doubt(&generation, asked, &client)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{asked}: {error}");
    }

    #[test]
    fn a_failure_says_by_its_type_whether_a_login_is_wanted_whatever_its_words() {
        let told = |needs_login: bool| {
            let folder = tempfile::tempdir().unwrap();
            let registry = Registry::open_with(folder.path(), rules(), Options::default()).unwrap();
            let failure = SurveyFailure {
                why: "it says (hint: proxy login down)".to_owned(),
                hint: Some("look at `url`".to_owned()),
                needs_login,
            };
            let news = News {
                server: "down".parse().unwrap(),
                asked_ms: 0,
                outcome: Err(failure),
            };
            registry.commit(vec![news], true, 1).unwrap();
            let generation = registry.generation().unwrap();
            let found = find_in_doubt(&generation, "down/x", &ClientPolicy::default());
            found.unwrap_err().to_string()
        };
        let error = told(true);
        assert!(error.starts_with("error login_required: "), "{error}");
        let error = told(false);
        assert!(error.starts_with("error server_unavailable: "), "{error}");
        assert!(
            error.contains("A person can fix it: look at `url`"),
            "{error}"
        );
    }

    #[test]
    fn a_server_without_tools_says_why_in_every_spelling_but_to_who_does_not_see_it() {
        let why = "error server_unavailable: down: it ended at once";
        for asked in [
            "down/x",
            "Down/x",
            "down__x",
            "mcp__down__x",
            "down.x",
            "down:x",
        ] {
            check(asked, &[], why);
            check(asked, &["down"], "error unknown_tool: ");
        }
        check("other/x", &[], "error unknown_tool: ");
    }
}
