//! `completion/complete`: values for an argument of a prompt or a template, from the server that
//! has it.

use fleet::Request;
use jsonrpc::{Fields, Json, text_of};
use registry::KnownServer;
use tool::Capability;

use super::{
    error::ForwardError,
    forwarder::Forwarder,
    owner::find_template,
    page::with_text,
    prompt_names,
    request::{Params, member, replaced},
};
use crate::{authorize::AuthorizationRequest, call_context::CallContext};

/// The result without values, for a server that completes nothing.
const NONE: &str = r#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

/// The last revision without a capability for completions: such a server has to be asked.
const WITHOUT_CAPABILITY: &str = "2024-11-05";

/// Sends `completion/complete` to the server that the reference names.
pub(super) async fn complete(
    forwarder: &Forwarder,
    seen: &[&KnownServer],
    params: &Params,
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let reference = member(params, "ref").map_or("", Json::as_str);
    let (server, reference) = resolve(seen, reference)?;
    let fields = Fields::of(reference.as_str());
    let text = |key: &str| fields.as_ref().and_then(|it| text_of(it.get(key)?));
    let (name, uri) = (text("name"), text("uri"));
    let asked = match (&name, &uri) {
        (_, Some(uri)) => AuthorizationRequest::resource(server, uri),
        (name, None) => {
            AuthorizationRequest::prompt(server, name.as_deref().unwrap_or_default(), "{}")
        }
    };
    let mut note = forwarder.authorizer.begin_note("completion", context);
    forwarder
        .authorizer
        .authorize(&asked, context, &mut note)
        .await?;
    let may_complete =
        server.offer.has(Capability::Completions) || server.protocol.as_str() <= WITHOUT_CAPABILITY;
    if !may_complete {
        note.discard();
        return Ok(Json::of_built(NONE.to_owned()));
    }
    let params = replaced(params, "ref", reference);
    let request = Request::new("completion/complete", params);
    let within = context.below(note.trace());
    let answer = forwarder.ask(server, request, &within);
    note.end(answer.await)
}

/// The server that a reference names, and the reference in the form of that server.
fn resolve<'g>(
    seen: &[&'g KnownServer],
    reference: &str,
) -> Result<(&'g KnownServer, Json), ForwardError> {
    let refuse = || {
        ForwardError::params(
            "Invalid params: `ref` is {\"type\": \"ref/prompt\", \"name\"} or \
                                     {\"type\": \"ref/resource\", \"uri\"}",
        )
    };
    let fields = Fields::of(reference).ok_or_else(refuse)?;
    let text = |key: &str| fields.get(key).and_then(text_of);
    let (server, key, own) = match (text("type").as_deref(), text("name"), text("uri")) {
        (Some("ref/prompt"), Some(name), _) => {
            let (server, prompt) = prompt_names::find(seen, &name)?;
            (server, "name", prompt.id().to_owned())
        }
        (Some("ref/resource"), _, Some(uri)) => {
            let found = find_template(seen, &uri)?;
            (found.server, "uri", found.uri)
        }
        _ => return Err(refuse()),
    };
    Ok((server, Json::of_built(with_text(reference, key, &own))))
}
