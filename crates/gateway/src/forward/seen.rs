//! The servers that a client may see.

use registry::{Generation, KnownServer};

use crate::policy::ClientPolicy;

pub(crate) fn seen<'g>(generation: &'g Generation, policy: &ClientPolicy) -> Vec<&'g KnownServer> {
    let servers = generation.servers().iter();
    let seen = servers.filter(|server| policy.sees(&server.name, &server.category));
    seen.map(AsRef::as_ref).collect()
}
