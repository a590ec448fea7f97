//! A login that is requested from the client of a call: the client shows its user the URL, and the
//! call continues afterwards.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jsonrpc::{Fields, Json, text_of};
use oauth::{AddressReceiver, LoginMethod, log_in};
use reqwest::Url;
use serde_json::json;
use tracing::{debug, info};

use crate::{
    CallerLogins, LoginPlace,
    asking::COMPLETE,
    question::{Asks, ClientAnswer, QuestionKind, ServerQuestion},
    roster::Roster,
    server::Server,
};

static ASKED: AtomicU64 = AtomicU64::new(1);

/// Returns true if the client can ask its user to visit a URL.
pub(crate) fn takes_addresses(asks: &Arc<dyn Asks>) -> bool {
    let capabilities = asks.capabilities();
    let elicitation =
        Fields::of(capabilities.as_str()).and_then(|all| Fields::of(all.get("elicitation")?.get()));
    elicitation.is_some_and(|it| it.get("url").is_some())
}

/// Asks the user of this client to log in, at our address if the login is a caller's own. Returns true if there is a login now. Logins of a server run
/// one at a time: a caller that waited finds the login made.
pub(crate) async fn log_in_by_asking(
    server: &Server,
    roster: &Roster,
    address: Option<String>,
    asks: &Arc<dyn Asks>,
) -> bool {
    let place = LoginPlace::resolve(&server.spec, &server.taken.values, &roster.surroundings);
    let Ok(Some(place)) = place.await else {
        return false;
    };
    let name = server.spec.name.as_str();
    let before = place.file.read_id();
    let _turn = server.login_turn.lock().await;
    if place.file.read_id() != before {
        return true;
    }
    match address {
        Some(address) => ask_caller(name, &address, &roster.logins, asks).await,
        None => ask(&place, name, asks).await,
    }
}

async fn ask(place: &LoginPlace, name: &str, asks: &Arc<dyn Asks>) -> bool {
    let (person, address) = AddressReceiver::new();
    let login = place.login(LoginMethod::Browser, &[]);
    let logging_in = async {
        match log_in(login, &person).await {
            Ok(_) => info!(server = name, "logged in"),
            Err(error) => {
                debug!(server = name, %error, "nobody logged in");
                return false;
            }
        }
        true
    };
    let mut logging_in = pin!(logging_in);
    let url = tokio::select! {
        biased;
        // It ended before it could show anything.
        is_done = &mut logging_in => return is_done,
        url = address => url,
    };
    match url {
        Ok(url) => ask_to_visit(name, &url, logging_in, asks).await,
        Err(_) => false,
    }
}

/// Shows the caller the address of ours at which its login begins, and waits for the login.
async fn ask_caller(
    name: &str,
    address: &str,
    logins: &CallerLogins,
    asks: &Arc<dyn Asks>,
) -> bool {
    let (Some(mut login), Ok(url)) = (logins.watch(address), Url::parse(address)) else {
        return false;
    };
    ask_to_visit(name, &url, pin!(login.wait()), asks).await
}

/// Asks the user to visit a URL, and waits for the login there. Some clients answer when the user comes back,
/// others when the page was opened.
async fn ask_to_visit(
    name: &str,
    url: &Url,
    mut login: Pin<&mut impl Future<Output = bool>>,
    asks: &Arc<dyn Asks>,
) -> bool {
    let host = url.host_str().unwrap_or_default();
    let id = format!("login-{name}-{}", ASKED.fetch_add(1, Ordering::Relaxed));
    let params = json!({
        "mode": "url",
        "message": format!("{name} wants you to log in at {host}. The call goes on afterwards."),
        "url": url.as_str(),
        "elicitationId": id,
    });
    let mut asking = asks.ask(ServerQuestion {
        kind: QuestionKind::Elicitation,
        params: Json::of_built(params.to_string()),
    });
    let is_done = tokio::select! {
        is_done = &mut login => is_done,
        answer = &mut asking => is_accepted(&answer) && login.await,
    };
    if is_done {
        asks.tell(COMPLETE, &json!({"elicitationId": id}).to_string());
    }
    is_done
}

fn is_accepted(answer: &ClientAnswer) -> bool {
    let ClientAnswer::Result(result) = answer else {
        return false;
    };
    let fields = Fields::of(result.as_str());
    fields.and_then(|it| text_of(it.get("action")?)).as_deref() == Some("accept")
}
