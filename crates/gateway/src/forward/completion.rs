//! `completion/complete`: values for an argument of a prompt or a template, from the server that
//! has it.

use fleet::Request;
use jsonrpc::{Fields, Json, text_of};
use registry::KnownServer;
use tool::{Capability, ItemKind};

use super::{
    error::ForwardError,
    forwarder::Forwarder,
    owner::find_template,
    page::with_text,
    prompt_names,
    request::{Params, member, replaced},
};
use crate::{
    authorize::{AuthorizationRequest, no_arguments},
    call_context::CallContext,
};

/// The result without values, for a server that completes nothing.
const NONE: &str = r#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

/// The last revision without a capability for completions: such a server has to be asked.
const WITHOUT_CAPABILITY: &str = "2024-11-05";

const WRONG_REFERENCE: &str = "Invalid params: `ref` is {\"type\": \"ref/prompt\", \"name\"} or \
                               {\"type\": \"ref/resource\", \"uri\"}";

/// Sends `completion/complete` to the server that the reference names.
pub(super) async fn complete(
    forwarder: &Forwarder,
    seen: &[&KnownServer],
    params: &Params,
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let reference = member(params, "ref").map_or("", Json::as_str);
    let (server, kind, own) = resolve(seen, reference)?;
    let (key, asked) = match kind {
        ItemKind::Prompt => (
            "name",
            AuthorizationRequest::prompt(server, &own, no_arguments()),
        ),
        _ => ("uri", AuthorizationRequest::resource(server, &own)),
    };
    let mut authorized = forwarder.authorize("completion", &asked, context).await?;
    let may_complete =
        server.offer.has(Capability::Completions) || server.protocol.as_str() <= WITHOUT_CAPABILITY;
    if !may_complete {
        authorized.note.discard();
        return Ok(Json::of_built(NONE.to_owned()));
    }
    let reference = with_text(reference, key, &own);
    let params = replaced(params, "ref", Json::of_built(reference));
    let request = Request::new("completion/complete", params);
    forwarder.ask(server, request, authorized, context).await
}

/// The server that a reference names, and the server's own name or URI of what it names.
fn resolve<'g>(
    seen: &[&'g KnownServer],
    reference: &str,
) -> Result<(&'g KnownServer, ItemKind, String), ForwardError> {
    let refuse = || ForwardError::params(WRONG_REFERENCE);
    let fields = Fields::of(reference).ok_or_else(refuse)?;
    let types = fields.0.iter().filter(|(key, _)| key == "type").count();
    if types > 1 {
        // The server could read the other one: the reference would name something else to it.
        return Err(refuse());
    }
    let text = |key: &str| fields.get(key).and_then(text_of);
    match (text("type").as_deref(), text("name"), text("uri")) {
        (Some("ref/prompt"), Some(name), _) => {
            let (server, prompt) = prompt_names::find(seen, &name)?;
            Ok((server, ItemKind::Prompt, prompt.id().to_owned()))
        }
        (Some("ref/resource"), _, Some(uri)) => {
            let found = find_template(seen, &uri)?;
            Ok((found.server, ItemKind::Template, found.uri))
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_with_two_types_is_refused() {
        let twice = r#"{"type":"ref/prompt","type":"ref/resource","name":"a/b","uri":"c://d"}"#;
        let refused = resolve(&[], twice);
        let is_refused = matches!(
            &refused,
            Err(ForwardError::Own { message, .. }) if message == WRONG_REFERENCE
        );
        assert!(is_refused, "{refused:?}");
    }
}
