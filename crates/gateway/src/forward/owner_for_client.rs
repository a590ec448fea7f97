//! The server that a URI belongs to, for one client: among those that it sees, and with what a person
//! holds back.

use registry::{Generation, KnownServer, Subject};

use super::{
    error::{ForwardError, shown},
    owner::{self, Owner},
    seen::seen,
};
use crate::{call_context::CallContext, error::ToolError, find::held};

pub(super) fn find_owner<'g>(
    generation: &'g Generation,
    uri: &str,
    context: &CallContext,
) -> Result<Owner<'g>, ForwardError> {
    let seen = seen(generation, &context.policy);
    let shown_by = || owners_of_page(generation, &seen, uri);
    let found = owner::find(&seen, uri, context.uris.as_deref(), shown_by);
    let refused = match &found {
        Ok(owner) => withheld_by(owner.server, &owner.uri),
        Err(_) => seen.iter().find_map(|server| withheld_by(server, uri)),
    };
    refused.map_or(found, |error| Err(error.into()))
}

/// The error for a URI that a person holds back: of a resource, of an app, or of a file of a skill.
pub(super) fn withheld_by(server: &KnownServer, uri: &str) -> Option<ToolError> {
    let mut withheld = server.withheld.iter();
    let (_, by) = withheld.find(|(subject, _)| match subject {
        Subject::Resource(held) | Subject::App(held) => held == uri,
        Subject::Skill(skill) => tool::is_in_skill(skill, uri),
        _ => false,
    })?;
    Some(held(format!("resource {}", shown(uri)), &server.name, *by))
}

/// The servers with a tool that is shown by this page (`_meta.ui.resourceUri`): such a page may be
/// in no list.
fn owners_of_page<'g>(
    generation: &'g Generation,
    seen: &[&'g KnownServer],
    uri: &str,
) -> Vec<&'g KnownServer> {
    if !uri.starts_with("ui://") {
        return Vec::new();
    }
    let said = serde_json::Value::from(uri).to_string();
    let names = |server: &&&KnownServer| {
        let mut entries = generation.entries();
        entries.any(|it| it.at.server == server.name && it.tool.json().contains(&said))
    };
    seen.iter().filter(names).copied().collect()
}
