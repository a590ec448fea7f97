//! The resources of ours that show an app: the page that a host shows for every call, the app of one
//! tool, and a whole result (decision 0041). Only a client that shows apps can read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonrpc::{Json, mcp::APP_TYPE};
use registry::{Generation, KnownServer};
use results::ResultStore;
use serde_json::{Value, json, value::RawValue};

use super::{
    error::ForwardError, forwarder::Forwarder, owner::Owner, owner_for_client::withheld_by,
    seen::seen,
};
use crate::{
    app_use::FRAME, call_context::CallContext, json_text::list_member, policy::ClientPolicy,
};

/// The resources of ours.
const OURS: &str = "ui://proxy/";

const NO_SUCH: &str = "proxy has none of this URI";

/// The page that a host shows for a call.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>app</title><style>{}</style>\
         <body><script>{}</script>",
        "html,body,iframe{margin:0;border:0;width:100%;height:100%;display:block;overflow:hidden}\
         p{margin:8px;font:13px sans-serif}",
        include_str!("../../assets/frame.js")
    )
});

/// Domains of one kind that our page declares; a host puts them into a header.
const DOMAINS_MAX: usize = 200;

/// Those of one app, so that one server leaves room for others.
const APP_DOMAINS_MAX: usize = 20;

/// The longest domain, in bytes.
const DOMAIN_BYTES_MAX: usize = 300;

const DOMAIN_KINDS: [&str; 4] = [
    "connectDomains",
    "resourceDomains",
    "frameDomains",
    "baseUriDomains",
];

const PERMISSIONS: [&str; 4] = ["camera", "microphone", "geolocation", "clipboardWrite"];

/// Returns true if a client of these rules sees a tool with an app.
pub(crate) fn has_apps(generation: &Generation, policy: &ClientPolicy) -> bool {
    let has_app = |server: &&KnownServer| !server.offer.apps.is_empty();
    !policy.hides_resources && seen(generation, policy).iter().any(has_app)
}

/// Reads a resource of ours; `None` for a URI of a server, and for a client that shows no apps.
pub(super) async fn read_own(
    forwarder: &Forwarder,
    generation: &Generation,
    uri: &str,
    context: &CallContext,
) -> Option<Result<Json, ForwardError>> {
    let own = uri.strip_prefix(OURS)?;
    if !context.shows_apps() {
        return None;
    }
    Some(match own.split_once('/') {
        None if uri == FRAME => Ok(frame(generation, &context.policy)),
        Some(("tool", name)) => read_app(forwarder, generation, (uri, name), context).await,
        Some(("result", handle)) => read_whole(&forwarder.results, uri, handle, context).await,
        _ => Err(ForwardError::no_resource(uri, NO_SUCH)),
    })
}

/// Reads the app of a tool: first the tool, its server and the needs of the app, then the page.
/// An object without a tool if there is none. `name` is the tool's name in base64.
async fn read_app(
    forwarder: &Forwarder,
    generation: &Generation,
    (asked, name): (&str, &str),
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let none = || Ok(contents(asked, "{}", &[]));
    let name = BASE64_URL_SAFE_NO_PAD.decode(name).unwrap_or_default();
    let name = String::from_utf8(name).unwrap_or_default();
    let Ok(entry) = forwarder.catalog.resolve(&name, &context.policy).await else {
        return none();
    };
    let seen = seen(generation, &context.policy);
    let server = seen.into_iter().find(|it| it.name == entry.at.server);
    let (Some(server), Some(uri)) = (server, entry.tool.app()) else {
        return none();
    };
    if let Some(refused) = withheld_by(server, &uri) {
        return Err(refused.into());
    }
    let needs = server.offer.apps.iter().find(|it| it.id() == uri);
    let needs = needs.map_or(Value::Null, |it| read_needs(it.json()));
    let owner = Owner { server, uri };
    let read = forwarder.read_of(owner, &Vec::new(), context).await?;
    let pages = list_member(read.as_str(), "contents");
    let Some([page]) = pages.as_deref() else {
        let why = format!("the app of {} is not one page", entry.at);
        return Err(ForwardError::internal(why));
    };
    let about = format!(
        r#"{{"server":"{}","needs":{needs},"tool":{}}}"#,
        entry.at.server,
        entry.tool.json()
    );
    Ok(contents(asked, &about, &[page]))
}

/// Reads a result as its server sent it, of which the client's model got another form.
async fn read_whole(
    results: &ResultStore,
    uri: &str,
    handle: &str,
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let opened = results.open(handle, context.client.as_ref()).await;
    let gone = |why: String| ForwardError::no_resource(uri, &why);
    let mut kept = opened.map_err(|error| gone(error.to_string()))?;
    let reading = tokio::task::spawn_blocking(move || {
        let mut whole = Vec::new();
        kept.write_json(&mut whole).map(|()| whole)
    });
    let read = reading
        .await
        .map_err(|error| ForwardError::internal(error.to_string()))?;
    let whole = read.map_err(|error| gone(error.kind().to_string()))?;
    let whole = String::from_utf8(whole).map_err(|error| gone(error.to_string()))?;
    Ok(contents(uri, &whole, &[]))
}

/// The page for every call. A host shows it with the domains that it declares, before it is known
/// which app it shows: it declares those of all apps that the client can see, and narrows itself to
/// those of the one that it shows.
fn frame(generation: &Generation, policy: &ClientPolicy) -> Json {
    let mut domains: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut permissions = BTreeMap::new();
    let servers = seen(generation, policy).into_iter();
    for app in servers.flat_map(|server| &server.offer.apps) {
        let needs = read_needs(app.json());
        for kind in DOMAIN_KINDS {
            let all = domains.entry(kind).or_default();
            let room = DOMAINS_MAX.saturating_sub(all.len());
            all.extend(domains_of(&needs, kind).take(room));
        }
        let granted = PERMISSIONS.into_iter();
        let granted = granted.filter(|it| needs["permissions"].get(*it).is_some());
        permissions.extend(granted.map(|it| (it, json!({}))));
    }
    domains.retain(|_, all| !all.is_empty());
    let ui = json!({"csp": domains, "permissions": permissions, "prefersBorder": false});
    let content = json!({"uri": FRAME, "mimeType": APP_TYPE, "text": *PAGE, "_meta": {"ui": ui}});
    Json::of_built(json!({"contents": [content]}).to_string())
}

fn read_needs(app: &str) -> Value {
    let app: Value = serde_json::from_str(app).unwrap_or_default();
    app["needs"].clone()
}

/// The domains of one kind, without any text that is no source of a content security policy.
fn domains_of(needs: &Value, kind: &str) -> impl Iterator<Item = String> {
    let all = needs["csp"][kind].as_array().into_iter().flatten();
    let is_source = |it: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/*[]?=&%".contains(c);
        !it.is_empty() && it.len() <= DOMAIN_BYTES_MAX && it.chars().all(is_plain)
    };
    let all = all.filter_map(Value::as_str).filter(is_source);
    all.take(APP_DOMAINS_MAX).map(str::to_owned)
}

/// A result of a read: a text of ours, which is JSON, then contents of a server as they are.
fn contents(uri: &str, text: &str, others: &[&RawValue]) -> Json {
    let own = json!({"uri": uri, "mimeType": "application/json", "text": text}).to_string();
    let others = others.iter().map(|it| it.get().to_owned());
    let all: Vec<String> = std::iter::once(own).chain(others).collect();
    Json::of_built(format!(r#"{{"contents":[{}]}}"#, all.join(",")))
}
