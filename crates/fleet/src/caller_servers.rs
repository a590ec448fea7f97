//! The instances of servers that callers over HTTP have for themselves.

use std::collections::HashMap;

use oauth::GrantKind;
use secrets::Reference;
use tokio::time::Instant;
use tool::ServerName;

use crate::{
    LoginPlace, ServerSpec, Surroundings, Template,
    server::{ProcessKey, Server},
    taken::{CALLER, TakenVariables, templates},
};

/// The instances of callers by their keys. Each server has at most `callers_max`: the one that was not
/// used for longest ends for another.
#[derive(Debug, Default)]
pub(crate) struct CallerServers(HashMap<ProcessKey, (Server, Instant)>);

impl CallerServers {
    /// Returns the instance with this key, for a use now.
    pub(crate) fn get(&mut self, key: &ProcessKey) -> Option<Server> {
        let (server, used_at) = self.0.get_mut(key)?;
        if server.is_retired() {
            return None;
        }
        *used_at = Instant::now();
        Some(server.clone())
    }

    pub(crate) fn insert(&mut self, key: ProcessKey, server: Server) {
        self.0.insert(key, (server, Instant::now()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.values().map(|(server, _)| server)
    }

    pub(crate) fn find_open(&self, name: &ServerName) -> Option<Server> {
        let mut own = self.iter().filter(|it| it.spec.name == *name);
        own.find(|it| it.is_open()).cloned()
    }

    /// Makes room for another instance of a server. Returns false if all are in use.
    pub(crate) fn make_room(&mut self, spec: &ServerSpec) -> bool {
        self.0.retain(|_, (it, _)| !it.is_retired());
        let all = self.0.iter();
        let own = all.filter(|(_, (it, _))| it.spec.name == spec.name);
        if own.clone().count() < spec.callers_max().get() {
            return true;
        }
        let unused = own.filter(|(_, (it, _))| !it.is_in_use());
        let longest = unused.min_by_key(|(_, (_, used_at))| *used_at);
        let Some(key) = longest.map(|(key, _)| key.clone()) else {
            return false;
        };
        if let Some((server, _)) = self.0.remove(&key) {
            server.retire();
        }
        true
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&ProcessKey, &Server) -> bool) {
        self.0.retain(|key, (server, _)| keep(key, server));
    }
}

/// Returns true if a server may accept these variables: each secret of its caller is stored, and there is
/// a login, or it needs none of a person.
pub(crate) fn has_credential(
    shared: &Server,
    taken: &TakenVariables,
    surroundings: &Surroundings,
) -> bool {
    let (spec, values) = (&shared.spec, &taken.values);
    let has_login = match spec.login.settings.grant {
        _ if !spec.login.is_of_callers => true,
        GrantKind::AuthorizationCode => {
            let files = surroundings.private.as_ref();
            let file = files.and_then(|files| LoginPlace::find_file(spec, values, files));
            let grant = file.and_then(|file| file.read().ok()?.grant);
            grant.is_some_and(|it| it.ended.is_none())
        }
        GrantKind::TokenExchange => taken.caller().is_some(),
        _ => true,
    };
    has_login && has_secrets(spec, values.get(CALLER), surroundings)
}

fn has_secrets(spec: &ServerSpec, caller: Option<&str>, surroundings: &Surroundings) -> bool {
    let named = templates(spec).flat_map(Template::references);
    let mut of_callers = named.filter_map(|(_, reference)| match reference {
        Reference::CallerSecret(name) => Some(name),
        _ => None,
    });
    let Some(resolver) = &surroundings.secrets else {
        return true;
    };
    of_callers.all(|name| {
        let kept = caller.map_or_else(|| name.clone(), |caller| name.of_caller(caller));
        resolver.store().get(&kept).is_ok_and(|it| it.is_some())
    })
}
