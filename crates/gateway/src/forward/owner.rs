//! The server that a URI belongs to.

use registry::KnownServer;
use tool::{ItemKind, OfferItem};

use super::{
    error::{ForwardError, shown},
    ledger::UriLedger,
    server_uri, template,
};

/// A resource at its server: the server, and the server's own URI.
#[derive(Debug)]
pub(super) struct Owner<'g> {
    pub(super) server: &'g KnownServer,
    pub(super) uri: String,
}

/// The longest list of servers in an error.
const OWNERS_TOLD: usize = 5;

/// The owner of a URI, by the first of these that knows one: the explicit form, the skills, the URIs
/// sent to this client, the lists, `elsewhere`, the templates, the scheme.
pub(super) fn find<'g>(
    seen: &[&'g KnownServer],
    uri: &str,
    ledger: Option<&UriLedger>,
    elsewhere: impl FnOnce() -> Vec<&'g KnownServer>,
) -> Result<Owner<'g>, ForwardError> {
    let by_name = |name: &str| seen.iter().find(|it| it.name.as_str() == name).copied();
    if let Some((name, own)) = server_uri::read(uri)
        && let Some(server) = by_name(name)
    {
        let uri = own.to_owned();
        return Ok(Owner { server, uri });
    }
    let owner = |server| Owner {
        server,
        uri: uri.to_owned(),
    };
    // Text of another server does not take over a URI of a skill.
    let has_skill = |it: &&KnownServer| it.offer.skills.iter().any(|it| it.is_skill_file(uri));
    let mut listed: Vec<_> = seen.iter().copied().filter(has_skill).collect();
    if listed.is_empty() {
        let sender = ledger.and_then(|ledger| ledger.sender(uri));
        if let Some(server) = sender.and_then(|name| by_name(name.as_str())) {
            return Ok(owner(server));
        }
    }
    let others = owners_listed(seen, ItemKind::Resource, uri).into_iter();
    listed.extend(others.filter(|it| !has_skill(it)));
    let listed = or_else(listed, elsewhere);
    let fitting = or_else(listed, || owners_by_template(seen, uri));
    let found = or_else(fitting, || owners_by_scheme(seen, uri));
    match found.as_slice() {
        [one] => Ok(owner(one)),
        [] => Err(ForwardError::no_resource(
            uri,
            "No server lists it, and none has a template or the scheme for it",
        )),
        several => {
            let forms = several.iter().take(OWNERS_TOLD);
            let forms = forms.map(|it| shown(&server_uri::write(&it.name, uri)));
            let forms = forms.collect::<Vec<_>>().join(", ");
            let why = format!("Several servers may have it: read one of {forms}");
            Err(ForwardError::no_resource(uri, &why))
        }
    }
}

fn or_else<T>(found: Vec<T>, other: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if found.is_empty() { other() } else { found }
}

/// The owner of a template by its exact text, or by its explicit form.
pub(super) fn find_template<'g>(
    seen: &[&'g KnownServer],
    asked: &str,
) -> Result<Owner<'g>, ForwardError> {
    let (server, own) = server_uri::read(asked).unwrap_or(("", asked));
    let is_meant = |it: &&&KnownServer| server.is_empty() || it.name.as_str() == server;
    let meant: Vec<_> = seen.iter().filter(is_meant).copied().collect();
    let owners = owners_listed(&meant, ItemKind::Template, own);
    let owners = or_else(owners, || owners_listed(&meant, ItemKind::Resource, own));
    match owners.as_slice() {
        [one] => Ok(Owner {
            server: one,
            uri: own.to_owned(),
        }),
        [] => Err(ForwardError::params(format!(
            "Unknown resource template: {}",
            shown(asked)
        ))),
        several => {
            let forms = several.iter().take(OWNERS_TOLD);
            let forms: Vec<String> = forms.map(|it| server_uri::write(&it.name, own)).collect();
            let forms = shown(&forms.join(", "));
            Err(ForwardError::params(format!(
                "Several servers have this template: say one of {forms}"
            )))
        }
    }
}

/// The servers that list it.
pub(super) fn owners_listed<'g>(
    seen: &[&'g KnownServer],
    kind: ItemKind,
    id: &str,
) -> Vec<&'g KnownServer> {
    let lists = |server: &&&KnownServer| server.offer.list(kind).iter().any(|it| it.id() == id);
    seen.iter().filter(lists).copied().collect()
}

/// The servers with the template that matches best: the one with the most literal characters.
fn owners_by_template<'g>(seen: &[&'g KnownServer], uri: &str) -> Vec<&'g KnownServer> {
    let best = |server: &KnownServer| {
        let templates = server.offer.templates.iter();
        templates.filter_map(|it| template::fit(it.id(), uri)).max()
    };
    let fits = seen.iter().filter_map(|it| Some((best(it)?, *it)));
    let fits: Vec<(usize, &KnownServer)> = fits.collect();
    let most = fits.iter().map(|(literal, _)| *literal).max();
    let fits = fits.into_iter().filter(|(it, _)| Some(*it) == most);
    fits.map(|(_, server)| server).collect()
}

fn owners_by_scheme<'g>(seen: &[&'g KnownServer], uri: &str) -> Vec<&'g KnownServer> {
    let Some(scheme) = server_uri::scheme(uri) else {
        return Vec::new();
    };
    let is_of_scheme = |item: &OfferItem| {
        server_uri::scheme(item.id()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
    };
    let has_scheme = |server: &&&KnownServer| {
        let mut items = server.offer.resources.iter().chain(&server.offer.templates);
        items.any(is_of_scheme)
    };
    seen.iter().filter(has_scheme).copied().collect()
}
