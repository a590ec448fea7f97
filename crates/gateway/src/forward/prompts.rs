//! Prompts: listed from snapshots, and rendered by their server.

use fleet::Request;
use jsonrpc::Json;
use registry::KnownServer;
use tool::ItemKind;

use super::{
    error::ForwardError,
    forwarder::Forwarder,
    page,
    prompt_names::{find, listed_name},
    request::{Params, json_text, member, replaced, text},
};
use crate::{
    authorize::{AuthorizationRequest, no_arguments},
    call_context::CallContext,
};

pub(super) fn list(seen: &[&KnownServer], params: &Params) -> Result<Json, ForwardError> {
    let prompts = seen.iter().flat_map(|server| {
        let list = server.offer.prompts.iter();
        list.map(|it| page::with_text(it.json(), "name", &listed_name(&server.name, it.id())))
    });
    page::write(ItemKind::Prompt, seen, params, prompts)
}

impl Forwarder {
    /// Sends `prompts/get` to the server that has the prompt.
    pub(crate) async fn get_prompt(
        &self,
        seen: &[&KnownServer],
        params: &Params,
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let (server, prompt) = find(seen, &text(params, "name")?)?;
        let arguments = member(params, "arguments")
            .cloned()
            .unwrap_or_else(no_arguments);
        let asked = AuthorizationRequest::prompt(server, prompt.id(), arguments);
        let authorized = self.authorize("prompt", &asked, context).await?;
        let params = replaced(params, "name", json_text(prompt.id()));
        let request = Request::new("prompts/get", params);
        let result = self.ask(server, request, authorized, context).await?;
        context.note_uris(&server.name, &result);
        Ok(result)
    }
}
