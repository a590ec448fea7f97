//! A login that is requested from the client of a call: the client shows its user the URL, and the
//! call continues afterwards.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jsonrpc::{Fields, Json, text_of};
use oauth::{AddressReceiver, LoginError, LoginMethod, log_in};
use serde_json::json;
use tracing::{debug, info};

use crate::{
    CallerLogins, LoginPlace,
    asking::COMPLETE,
    question::{Asks, ClientAnswer, QuestionKind, ServerQuestion},
    roster::Roster,
    secrets_named::with_secrets,
    server::Server,
    taken::templates,
};

/// Numbers the questions.
static ASKED: AtomicU64 = AtomicU64::new(1);

/// Returns true if the client can ask its user to visit a URL.
pub(crate) fn takes_addresses(asks: &Arc<dyn Asks>) -> bool {
    let capabilities = asks.capabilities();
    let elicitation = Fields::of(capabilities.as_str()).and_then(|all| {
        let elicitation = all.get("elicitation")?;
        Fields::of(elicitation.get())?.get("url").map(|_| ())
    });
    elicitation.is_some()
}

/// Asks the user of this client to log in, at our address if the login is a caller's own. Returns true if there is a login now. Logins of a server run
/// one at a time: a caller that waited finds the login made.
pub(crate) async fn log_in_by_asking(
    server: &Server,
    roster: &Roster,
    address: Option<String>,
    asks: &Arc<dyn Asks>,
) -> bool {
    let (surroundings, logins) = (&*roster.surroundings, &*roster.logins);
    let name = &server.spec.name;
    let resolver = surroundings.secrets.as_ref();
    let (wanted, values) = (templates(&server.spec), &server.taken.values);
    let Ok(variables) = with_secrets(wanted, values, resolver.map(Arc::as_ref)).await else {
        return false;
    };
    let place = surroundings.private.as_ref();
    let callers = &surroundings.callers;
    let place =
        place.map(|files| LoginPlace::of(&server.spec, &variables, resolver, files, callers));
    let Some(Ok(Some(place))) = place else {
        return false;
    };
    let before = place.file.read_id();
    let _turn = server.login_turn.lock().await;
    if place.file.read_id() != before {
        return true;
    }
    if let Some(address) = address {
        return ask_caller(name.as_str(), &address, logins, asks).await;
    }
    match ask(&place, name.as_str(), asks).await {
        Ok(true) => {
            info!(server = name.as_str(), "logged in");
            true
        }
        Ok(false) => false,
        Err(error) => {
            debug!(server = name.as_str(), %error, "nobody logged in");
            false
        }
    }
}

async fn ask(place: &LoginPlace, name: &str, asks: &Arc<dyn Asks>) -> Result<bool, LoginError> {
    let (person, address) = AddressReceiver::new();
    let login = place.login(LoginMethod::Browser, &[]);
    let mut logging_in = Box::pin(log_in(login, &person));
    let url = tokio::select! {
        biased;
        // It ended before it could show anything.
        ended = &mut logging_in => return ended.map(|_| true),
        url = address => match url {
            Ok(url) => url,
            Err(_) => return Ok(false),
        },
    };
    let host = url.host_str().unwrap_or_default();
    let (id, question) = visit_question(name, host, url.as_str());
    let mut asking = asks.ask(question);
    let is_accepted = tokio::select! {
        // Some clients answer when the user comes back, others when the page was opened.
        ended = &mut logging_in => {
            ended?;
            return Ok(complete(asks, &id));
        }
        answer = &mut asking => is_accepted(&answer),
    };
    if !is_accepted {
        return Ok(false);
    }
    logging_in.await?;
    Ok(complete(asks, &id))
}

/// Shows the caller the address of ours at which its login begins, and waits for the login.
async fn ask_caller(
    name: &str,
    address: &str,
    logins: &CallerLogins,
    asks: &Arc<dyn Asks>,
) -> bool {
    let Some(mut login) = logins.watch(address) else {
        return false;
    };
    let host = reqwest::Url::parse(address).ok();
    let host = host.as_ref().and_then(|it| it.host_str());
    let (id, question) = visit_question(name, host.unwrap_or_default(), address);
    let mut asking = asks.ask(question);
    let is_done = tokio::select! {
        is_done = login.wait() => is_done,
        answer = &mut asking => is_accepted(&answer) && login.wait().await,
    };
    is_done && complete(asks, &id)
}

fn visit_question(name: &str, host: &str, url: &str) -> (String, ServerQuestion) {
    let id = format!("login-{name}-{}", ASKED.fetch_add(1, Ordering::Relaxed));
    let params = json!({
        "mode": "url",
        "message": format!("{name} wants you to log in at {host}. The call goes on afterwards."),
        "url": url,
        "elicitationId": id,
    });
    let question = ServerQuestion {
        kind: QuestionKind::Elicitation,
        params: Json::of_built(params.to_string()),
    };
    (id, question)
}

fn complete(asks: &Arc<dyn Asks>, id: &str) -> bool {
    asks.tell(COMPLETE, &json!({"elicitationId": id}).to_string());
    true
}

fn is_accepted(answer: &ClientAnswer) -> bool {
    let ClientAnswer::Result(result) = answer else {
        return false;
    };
    let fields = Fields::of(result.as_str());
    let action = fields.and_then(|fields| text_of(fields.get("action")?).map(|it| it == "accept"));
    action.unwrap_or_default()
}
