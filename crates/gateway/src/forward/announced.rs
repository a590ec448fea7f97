//! The capabilities that we announce to a client besides tools.

use registry::{CatalogServer, OfferNote, ServerCatalog};
use tool::{Capability, Digest};

use crate::policy::ClientPolicy;

/// The capabilities besides tools of one session. They are those of the servers that its client
/// sees; a server that was not asked yet may have any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own"
)]
pub(crate) struct Announced {
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) subscribe: bool,
    pub(crate) completions: bool,
    pub(crate) skills: bool,
}

impl Announced {
    pub(crate) fn of(catalog: &ServerCatalog, policy: &ClientPolicy) -> Self {
        let has = |capability: Capability| {
            let mut seen = seen(catalog, policy);
            seen.any(|server| match &server.offer {
                Some(note) => note.has(capability),
                // A server that cannot be asked has nothing to offer now.
                None => server.stale.is_none(),
            })
        };
        let skills = !policy.hides_resources && has(Capability::Skills);
        Self {
            prompts: has(Capability::Prompts),
            // Files of skills are read as resources.
            resources: skills || !policy.hides_resources && has(Capability::Resources),
            subscribe: !policy.hides_resources && has(Capability::Subscribe),
            completions: has(Capability::Completions),
            skills,
        }
    }
}

/// Returns true if resources are announced to a client of these rules.
pub fn announces_resources(catalog: &ServerCatalog, policy: &ClientPolicy) -> bool {
    Announced::of(catalog, policy).resources
}

fn seen<'c>(
    catalog: &'c ServerCatalog,
    policy: &ClientPolicy,
) -> impl Iterator<Item = &'c CatalogServer> {
    let servers = catalog.servers.iter();
    servers.filter(|server| policy.sees(&server.name, &server.category))
}

/// The lists of a client at one time; two equal states have the same lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListState {
    pub(crate) prompts: String,
    pub(crate) resources: String,
}

impl ListState {
    pub(crate) fn of(catalog: &ServerCatalog, policy: &ClientPolicy) -> Self {
        let digest = |of: fn(&OfferNote) -> &str| {
            let notes = seen(catalog, policy).filter_map(|server| {
                let digest = of(server.offer.as_ref()?);
                (!digest.is_empty()).then(|| format!("{}:{digest}", server.name))
            });
            let notes: Vec<String> = notes.collect();
            Digest::of_bytes(notes.join(",").as_bytes()).short(16)
        };
        Self {
            prompts: digest(|note| &note.prompts.digest),
            resources: digest(|note| &note.resources.digest),
        }
    }
}
