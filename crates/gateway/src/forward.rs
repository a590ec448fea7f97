//! Requests that are passed through besides tools: prompts, resources, their templates, skills
//! and completions.
//!
//! Lists come from snapshots and wait for no server. Everything else is sent to the one server that
//! it belongs to, and its response is returned byte for byte.

mod announced;
mod apps;
mod completion;
mod error;
mod forwarder;
mod ledger;
mod matching;
mod owner;
mod owner_for_client;
mod page;
mod prompt_names;
mod prompts;
mod request;
mod resources;
mod seen;
mod server_uri;
mod skills;
mod template;

use bytes::Bytes;
use jsonrpc::Json;

pub use announced::announces_resources;
pub(super) use announced::{Announced, ListState};
pub(super) use apps::has_apps;
pub(super) use error::ForwardError;
pub(super) use forwarder::Forwarder;
pub(super) use ledger::{Ledgers, UriLedger};
pub(super) use matching::{ItemKinds, lines as matching_lines};

pub(super) use request::{Method, Params, json_text, text};
pub(super) use resources::UpdateSink;
pub(super) use seen::seen;
pub(super) use skills::{SkillOrigin, origin_of_skill, skill_lines};

use crate::call_context::CallContext;

/// The answer to such a request.
#[derive(Debug)]
pub(super) struct ForwardedResult {
    result: Json,
    /// Members that the revisions from 2026-07-28 on want in a result of this kind.
    stateless: &'static [(&'static str, &'static str)],
}

const COMPLETE: (&str, &str) = ("resultType", r#""complete""#);

/// The members of a list result: it may be kept for a minute, for this client alone, since others
/// may see other items.
const OF_LIST: &[(&str, &str)] = &[COMPLETE, ("ttlMs", "60000"), ("cacheScope", r#""private""#)];

/// The members of a read result: it is not known how long it is valid, or for whom.
const OF_READ: &[(&str, &str)] = &[COMPLETE, ("ttlMs", "0"), ("cacheScope", r#""private""#)];

const OF_OTHER: &[(&str, &str)] = &[COMPLETE];

impl ForwardedResult {
    /// The result in pieces of bytes, in the form of the revision.
    pub(super) fn parts(&self, is_stateless: bool) -> Vec<Bytes> {
        let members = if is_stateless { self.stateless } else { &[] };
        crate::reply::with_members(&self.result, members)
    }
}

impl Forwarder {
    /// Answers one request of a client that concerns no tool.
    pub(super) async fn forward(
        &self,
        method: Method,
        params: &Params,
        context: &CallContext,
    ) -> Result<ForwardedResult, ForwardError> {
        let generation = self.known().await?;
        let is_list = matches!(
            method,
            Method::ListPrompts
                | Method::ListResources
                | Method::ListTemplates
                | Method::ListSkills
        );
        if !is_list {
            self.check_configured()?;
        }
        let seen = seen(&generation, &context.policy);
        let (result, stateless) = match method {
            Method::ListPrompts => (prompts::list(&seen, params)?, OF_LIST),
            Method::ListResources => (resources::list(&seen, context, params)?, OF_LIST),
            Method::ListTemplates => (resources::list_templates(&seen, context, params)?, OF_LIST),
            Method::ListSkills => (skills::list(&seen, context, params)?, OF_LIST),
            Method::GetSkill => (
                skills::get_skill(self, &generation, params, context).await?,
                OF_LIST,
            ),
            Method::GetPrompt => (self.get_prompt(&seen, params, context).await?, OF_OTHER),
            Method::ReadResource => {
                let uri = request::text(params, "uri")?;
                let read = match apps::read_own(self, &generation, &uri, context).await {
                    Some(own) => own,
                    None => self.read_resource(&generation, &uri, params, context).await,
                };
                (read?, OF_READ)
            }
            Method::Complete => (
                completion::complete(self, &seen, params, context).await?,
                OF_OTHER,
            ),
        };
        Ok(ForwardedResult { result, stateless })
    }
}
