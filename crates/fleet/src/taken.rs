//! The variables that a server gets from the client that calls it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use oauth::GrantKind;
use secrets::Reference;
use tool::{Digest, HttpCaller, ServerName};

use crate::{
    ServerSpec, Template, Variables,
    environment::{is_named, is_usual, select_named},
};

/// Variables that differ between terminals. `inherit_env = ["*"]` does not include them.
const OF_A_TERMINAL: [&str; 12] = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TTY",
    "WINDOWID",
    "TERM_SESSION_ID",
    "PROXY_CHILD",
];

/// The variable with the unique name of the caller. No template can contain it.
pub(crate) const CALLER: &str = "caller:";

/// The variables of a client that a server's specification refers to, as the server gets them at its
/// start.
#[derive(Debug, Clone)]
pub(crate) struct TakenVariables {
    pub(crate) values: Variables,
    /// Equal for two clients if the server gets the same values from both.
    pub(crate) key: Digest,
    /// Required variables that the client lacks. The server does not start without them.
    pub(crate) lacking: Vec<String>,
}

/// The difference of a server for one client because of the client's variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// The server.
    pub server: ServerName,
    /// The client.
    pub client: u64,
    /// The variables because of which the client has another instance of the server.
    pub differing: Vec<String>,
    /// Required variables that the client lacks. It cannot call the server.
    pub lacking: Vec<String>,
}

/// The variables of this process and of every client. No client gets the value of another.
#[derive(Debug, Default)]
pub(crate) struct Environments {
    own: Variables,
    /// Those that each client sent.
    pub(crate) clients: BTreeMap<u64, Arc<Variables>>,
}

impl TakenVariables {
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// Returns the caller over HTTP whose values they are.
    pub(crate) fn caller(&self) -> Option<&str> {
        self.values.get(CALLER)
    }
}

impl Environments {
    pub(crate) fn new(own: Variables) -> Self {
        Self {
            own,
            clients: BTreeMap::new(),
        }
    }

    /// Returns the variables of a server for this client, and the values of this caller; those of this process
    /// if there is no client, or if it sent none.
    pub(crate) fn take(
        &self,
        spec: &ServerSpec,
        client: Option<u64>,
        caller: Option<&HttpCaller>,
    ) -> TakenVariables {
        let client = client.and_then(|it| self.clients.get(&it));
        let source = client.map_or(&self.own, |it| &**it);
        // A child inherits these from this process anyway.
        let get = |name: &str| {
            if name.starts_with(HttpCaller::PREFIX) {
                return Some(caller?.values.get(name)?.as_str());
            }
            let usual = || self.own.get(name).filter(|_| is_usual(name));
            source.get(name).or_else(usual)
        };
        let mut values: Variables = select_named(source, &spec.inherit_env).collect();
        let mut lacking = BTreeSet::new();
        for (name, is_required) in templates(spec).flat_map(Template::needs) {
            match get(name) {
                Some(value) => values.set(name, value),
                None if is_required => drop(lacking.insert(name.to_owned())),
                None => {}
            }
        }
        // A caller without a token has no name, and so nothing but the values of its request.
        let named = caller.filter(|it| !it.name.is_empty() && is_of_callers(spec));
        if let Some(caller) = named {
            values.set(CALLER, &caller.name);
        }
        TakenVariables {
            key: key(spec, &values),
            values,
            lacking: lacking.into_iter().collect(),
        }
    }

    /// Returns the variables for the first client that lacks none.
    pub(crate) fn take_complete(&self, spec: &ServerSpec) -> Option<TakenVariables> {
        let clients = self.clients.keys();
        let mut all = clients.map(|client| self.take(spec, Some(*client), None));
        all.find(|it| !it.is_incomplete())
    }
}

/// Returns true if a server may get different values for different clients.
pub(crate) fn takes_variables(spec: &ServerSpec) -> bool {
    let mut needs = templates(spec).flat_map(Template::needs);
    !spec.inherit_env.is_empty() || needs.next().is_some()
}

impl ServerSpec {
    /// Returns true if the server gets the same values for every client and caller.
    pub fn is_alike_for_all(&self) -> bool {
        self.scope == crate::ServerScope::Shared && !takes_variables(self) && !is_of_callers(self)
    }
}

/// Returns true if each caller over HTTP has a process or connection of its own.
pub(crate) fn is_of_callers(spec: &ServerSpec) -> bool {
    let names_caller = |it: &Template| {
        let mut references = it.references();
        it.variables()
            .any(|name| name.starts_with(HttpCaller::PREFIX))
            || references.any(|(_, it)| matches!(it, Reference::CallerSecret(_)))
    };
    spec.login.is_of_callers || templates(spec).any(names_caller)
}

/// Lists the values of a caller that a server gets.
pub(crate) fn values_of_callers(spec: &ServerSpec) -> impl Iterator<Item = String> {
    let named = templates(spec).flat_map(Template::variables);
    let named = named.filter(|it| it.starts_with(HttpCaller::PREFIX));
    let exchanged = spec.login.settings.grant == GrantKind::TokenExchange;
    let token = exchanged.then_some(HttpCaller::AUTHORIZATION);
    named.chain(token).map(str::to_owned)
}

/// Returns every template of a server's specification.
pub(crate) fn templates(spec: &ServerSpec) -> impl Iterator<Item = &Template> {
    let texts = spec.launch.texts().into_iter().map(|(_, text)| text);
    let login = spec.login.templates();
    let roots = spec.roots.iter().flatten();
    let write = spec.sandbox.iter().flat_map(|it| &it.write);
    texts
        .chain(login)
        .chain(roots)
        .chain(&spec.image)
        .chain(write)
}

/// Returns a digest of the inputs of a server: its texts with these values, and its inherited variables.
fn key(spec: &ServerSpec, values: &Variables) -> Digest {
    let mut text = String::new();
    let mut add = |part: &str| {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    };
    for template in templates(spec) {
        // A secret is the same for all clients.
        let secrets: Vec<&str> = template.references().map(|(text, _)| text).collect();
        let lookup = |name: &str| match values.get(name) {
            _ if secrets.contains(&name) => Some(format!("${{{name}}}")),
            value => value.map(str::to_owned),
        };
        match template.expand(lookup) {
            Ok(filled) => add(&filled),
            Err(unset) => add(&unset.0),
        }
    }
    add(values.get(CALLER).unwrap_or_default());
    let is_said = |name: &str| spec.inherit_env.iter().any(|it| it == name);
    for (name, value) in values.iter() {
        let is_noise = OF_A_TERMINAL.contains(&name.as_str()) && !is_said(name);
        if is_named(name, &spec.inherit_env) && !is_noise {
            add(name);
            add(value);
        }
    }
    Digest::of_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool::HttpCaller;

    use super::{Environments, TakenVariables};
    use crate::{Launch, ServerSpec, Template, Variables};

    /// A server with this text in a variable, which inherits these.
    fn spec(text: &str, inherit_env: &[&str]) -> ServerSpec {
        let launch = Launch::Child {
            command: Template::parse("program").unwrap(),
            args: Vec::new(),
            env: vec![("IT".to_owned(), Template::parse(text).unwrap())],
            cwd: None,
        };
        let mut spec = ServerSpec::new("any".parse().unwrap(), launch);
        spec.inherit_env = inherit_env.iter().map(ToString::to_string).collect();
        spec
    }

    fn variables(all: &[(&str, &str)]) -> Arc<Variables> {
        let all = all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Arc::new(all.collect())
    }

    fn take(spec: &ServerSpec, clients: [&[(&str, &str)]; 2]) -> [TakenVariables; 2] {
        let mut all = Environments::new(Variables::default());
        all.clients.insert(1, variables(clients[0]));
        all.clients.insert(2, variables(clients[1]));
        [1, 2].map(|client| all.take(spec, Some(client), None))
    }

    #[track_caller]
    fn check(text: &str, inherit_env: &[&str], clients: [&[(&str, &str)]; 2], is_shared: bool) {
        let [one, two] = take(&spec(text, inherit_env), clients);
        assert_eq!(one.key == two.key, is_shared, "{text} {inherit_env:?}");
    }

    #[test]
    fn clients_share_a_server_that_gets_the_same_of_both() {
        let with = |name, value| [[("HOME", "/ada"), (name, value)]; 1];
        let (a, b) = (with("TOKEN", "a"), with("TOKEN", "b"));
        let [a, b] = [&a[0][..], &b[0][..]];
        check("fixed", &[], [a, b], true);
        check("${HOME}", &[], [a, b], true);
        check("${TOKEN}", &[], [a, b], false);
        check("${TOKEN}", &[], [a, a], true);
        check("fixed", &["TOKEN"], [a, b], false);
        check("fixed", &["TOK*"], [a, b], false);
        check("fixed", &["TOKEN_2"], [a, b], true);
        check("fixed", &["TOKEN"], [a, &[]], false);
        // A variable that equals the default gives the same as an unset one.
        check("${TOKEN:-a}", &[], [a, &[]], true);
        check("${TOKEN:-a}", &[], [b, &[]], false);
        let (here, there) = ([("PWD", "/here")], [("PWD", "/there")]);
        check("fixed", &["*"], [&here, &there], true);
        check("fixed", &["PWD"], [&here, &there], false);
    }

    #[test]
    fn no_client_gets_the_value_of_another_or_of_whoever_started_the_daemon() {
        let with = |value: &str| variables(&[("TOKEN", value)]);
        let spec = spec("${HOME}${TOKEN}", &[]);
        let own = variables(&[("TOKEN", "own"), ("HOME", "/ada")]);
        let mut all = Environments::new((*own).clone());
        all.clients.insert(1, variables(&[]));
        assert_eq!(all.take_complete(&spec).map(|it| it.key), None);
        all.clients.insert(2, with("two"));
        all.clients.insert(3, with("three"));
        let lacking = all.take(&spec, Some(1), None);
        assert_eq!(
            (lacking.values.get("TOKEN"), &*lacking.lacking),
            (None, &["TOKEN".to_owned()][..])
        );
        // Usual variables of a child are those of the daemon.
        assert_eq!(lacking.values.get("HOME"), Some("/ada"));
        for (client, has) in [
            (None, "own"),
            (Some(2), "two"),
            (Some(3), "three"),
            (Some(4), "own"),
        ] {
            let taken = all.take(&spec, client, None);
            assert_eq!(taken.values.get("TOKEN"), Some(has));
            assert!(!taken.is_incomplete());
        }
        let complete = all.take_complete(&spec).unwrap();
        assert_eq!(complete.values.get("TOKEN"), Some("two"));
    }

    #[test]
    fn the_headers_of_a_remote_server_count_as_well() {
        let mut spec = spec("fixed", &[]);
        let template = |text| Template::parse(text).unwrap();
        spec.launch = Launch::Remote {
            url: template("https://example.com/mcp"),
            headers: vec![("Authorization".to_owned(), template("Bearer ${TOKEN}"))],
        };
        assert!(super::takes_variables(&spec));
        let [one, two] = take(&spec, [&[("TOKEN", "a")], &[("TOKEN", "b")]]);
        assert_ne!(one.key, two.key);
        let [one, two] = take(&spec, [&[("TOKEN", "a")], &[]]);
        assert_ne!(one.key, two.key);
        assert_eq!(two.lacking, ["TOKEN"]);
    }

    #[test]
    fn a_secret_makes_no_difference_between_clients_and_hides_none() {
        let spec = spec("${secret:a}${REGION:-}", &[]);
        let [one, two] = take(&spec, [&[("REGION", "a")], &[("REGION", "b")]]);
        assert_ne!(one.key, two.key);
        assert!(!one.is_incomplete());
        let [one, two] = take(&spec, [&[("secret:a", "x")], &[]]);
        assert_eq!(one.key, two.key);
    }

    fn caller(name: &str, team: Option<&str>) -> HttpCaller {
        let team = team.map(|it| ("caller:x-team".to_owned(), it.to_owned()));
        let subject = (HttpCaller::SUBJECT.to_owned(), name.to_owned());
        HttpCaller {
            name: name.into(),
            values: team.into_iter().chain([subject]).collect(),
            origin: "http://127.0.0.1:1".into(),
        }
    }

    #[track_caller]
    fn check_callers(spec: &ServerSpec, callers: [HttpCaller; 2], is_shared: bool) {
        let all = Environments::new(Variables::default());
        let [one, two] = callers.map(|it| all.take(spec, None, Some(&it)));
        assert_eq!(one.key == two.key, is_shared, "{one:?} {two:?}");
    }

    #[test]
    fn callers_share_only_servers_that_get_nothing_of_them() {
        let callers = |teams: [Option<&str>; 2]| [caller("ann", teams[0]), caller("bob", teams[1])];
        let same = callers([Some("red"), Some("red")]);
        check_callers(&spec("fixed", &[]), same.clone(), true);
        check_callers(&spec("${caller:subject}", &[]), same.clone(), false);
        check_callers(&spec("${caller:x-team}", &[]), same.clone(), false);
        check_callers(&spec("${caller:secret:key}", &[]), same.clone(), false);
        let mut own_login = spec("fixed", &[]);
        own_login.login.is_of_callers = true;
        check_callers(&own_login, same, false);
        // A caller without a token has nothing but the values of its request.
        let unnamed = |teams: [Option<&str>; 2]| teams.map(|team| caller("", team));
        check_callers(
            &spec("${caller:x-team}", &[]),
            unnamed([Some("red"), Some("red")]),
            true,
        );
        check_callers(
            &spec("${caller:x-team}", &[]),
            unnamed([Some("red"), Some("blue")]),
            false,
        );
        check_callers(&own_login, unnamed([None, None]), true);
        // Two requests of one caller with different values do not mix.
        let one_caller = [caller("ann", Some("red")), caller("ann", Some("blue"))];
        check_callers(&spec("${caller:x-team:-}", &[]), one_caller, false);
    }

    #[test]
    fn a_value_that_a_caller_did_not_send_is_lacking_and_none_comes_from_the_environment() {
        let own = [("caller:x-team".to_owned(), "ours".to_owned())];
        let all = Environments::new(own.into_iter().collect());
        let spec = spec("${caller:x-team}", &[]);
        let lacking = |caller: Option<&HttpCaller>| all.take(&spec, None, caller).lacking;
        assert_eq!(lacking(None), ["caller:x-team"]);
        assert_eq!(lacking(Some(&caller("ann", None))), ["caller:x-team"]);
        assert!(lacking(Some(&caller("ann", Some("red")))).is_empty());
    }

    #[test]
    fn no_value_is_printed() {
        let [taken, _] = take(&spec("${TOKEN}", &["*"]), [&[("TOKEN", "hunter2")], &[]]);
        assert!(!format!("{taken:?}").contains("hunter2"), "{taken:?}");
    }
}
