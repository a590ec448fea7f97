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
use tool::ItemKind;

pub use announced::announces_resources;
pub(super) use announced::{Announced, ListState};
pub(super) use apps::has_apps;
pub(super) use error::ForwardError;
pub(super) use forwarder::Forwarder;
pub(super) use ledger::{Ledgers, UriLedger};
pub(super) use matching::{RESOURCE_KINDS, kinds_named, lines as matching_lines};
pub(super) use request::{Method, Params, json_text, text};
pub(super) use resources::UpdateSink;
pub(super) use seen::seen;
pub(super) use skills::{SkillOrigin, origin_of_skill, skill_lines};

use crate::{
    call_context::CallContext,
    reply::{COMPLETE, with_members},
};

/// The members of a list result in revisions from 2026-07-28 on: it may be kept for a minute, for this
/// client alone, since others may see other items.
const OF_LIST: &[(&str, &str)] = &[COMPLETE, ("ttlMs", "60000"), ("cacheScope", r#""private""#)];

/// The members of a read result: it is not known how long it is valid, or for whom.
const OF_READ: &[(&str, &str)] = &[COMPLETE, ("ttlMs", "0"), ("cacheScope", r#""private""#)];

impl Forwarder {
    /// Answers one request of a client that concerns no tool. The result is in pieces of bytes, in the
    /// form of the revisions with a handshake or without one.
    pub(super) async fn forward(
        &self,
        method: Method,
        params: &Params,
        context: &CallContext,
        is_stateless: bool,
    ) -> Result<Vec<Bytes>, ForwardError> {
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
        let with_resources = if context.policy.hides_resources {
            &[]
        } else {
            &*seen
        };
        let result = match method {
            Method::ListPrompts => prompts::list(&seen, params)?,
            Method::ListResources => resources::list(ItemKind::Resource, with_resources, params)?,
            Method::ListTemplates => resources::list(ItemKind::Template, with_resources, params)?,
            Method::ListSkills => skills::list(with_resources, params)?,
            Method::GetSkill => skills::get_skill(self, &generation, params, context).await?,
            Method::GetPrompt => self.get_prompt(&seen, params, context).await?,
            Method::ReadResource => {
                let uri = request::text(params, "uri")?;
                match apps::read_own(self, &generation, &uri, context).await {
                    Some(own) => own?,
                    None => {
                        let reading = self.read_resource(&generation, &uri, params, context);
                        reading.await?
                    }
                }
            }
            Method::Complete => completion::complete(self, &seen, params, context).await?,
        };
        let members = match method {
            _ if !is_stateless => &[],
            Method::ReadResource => OF_READ,
            Method::GetPrompt | Method::Complete => &[COMPLETE],
            _ => OF_LIST,
        };
        Ok(with_members(&result, members))
    }
}
