//! The variables that a server gets from the client that calls it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tool::{Digest, ServerName};

use crate::{
    ServerSpec, Template, Variables,
    environment::{is_named, is_usual},
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
#[derive(Debug)]
pub(crate) struct Environments {
    own: Variables,
    clients: BTreeMap<u64, Arc<Variables>>,
}

impl TakenVariables {
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.lacking.is_empty()
    }
}

impl Environments {
    pub(crate) fn new(own: Variables) -> Self {
        Self {
            own,
            clients: BTreeMap::new(),
        }
    }

    pub(crate) fn admit(&mut self, client: u64, variables: Arc<Variables>) {
        self.clients.insert(client, variables);
    }

    pub(crate) fn forget(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Lists the clients that sent their variables, in the order of their arrival.
    pub(crate) fn clients(&self) -> impl Iterator<Item = u64> {
        self.clients.keys().copied()
    }

    /// Returns the variables of a server for this client; those of this process if there is no client, or
    /// if it sent none.
    pub(crate) fn take(&self, spec: &ServerSpec, client: Option<u64>) -> TakenVariables {
        let client = client.and_then(|it| self.clients.get(&it));
        let source = client.map_or(&self.own, |it| &**it);
        // A child inherits these from this process anyway.
        let get = |name: &str| {
            let usual = || self.own.get(name).filter(|_| is_usual(name));
            source.get(name).or_else(usual)
        };
        let inherited = source.iter();
        let inherited = inherited.filter(|(name, _)| is_named(name, &spec.inherit_env));
        let mut values: Variables = inherited
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut lacking = BTreeSet::new();
        for (name, is_required) in templates(spec).into_iter().flat_map(Template::needs) {
            match get(name) {
                Some(value) => values.set(name, value),
                None if is_required => drop(lacking.insert(name.to_owned())),
                None => {}
            }
        }
        TakenVariables {
            key: key(spec, &values),
            values,
            lacking: lacking.into_iter().collect(),
        }
    }

    /// Returns the variables for the first client that lacks none.
    pub(crate) fn take_complete(&self, spec: &ServerSpec) -> Option<TakenVariables> {
        let mut all = self.clients().map(|client| self.take(spec, Some(client)));
        all.find(|it| !it.is_incomplete())
    }
}

/// Returns true if a server may get different values for different clients.
pub(crate) fn takes_variables(spec: &ServerSpec) -> bool {
    let mut needs = templates(spec).into_iter().flat_map(Template::needs);
    !spec.inherit_env.is_empty() || needs.next().is_some()
}

/// Returns every template of a server's specification.
pub(crate) fn templates(spec: &ServerSpec) -> Vec<&Template> {
    let texts = spec.launch.texts().into_iter().map(|(_, text)| text);
    let login = spec.login.templates();
    let roots = spec.roots.iter().flatten();
    let write = spec.sandbox.iter().flat_map(|it| &it.write);
    texts
        .chain(login)
        .chain(roots)
        .chain(&spec.image)
        .chain(write)
        .collect()
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
        all.admit(1, variables(clients[0]));
        all.admit(2, variables(clients[1]));
        [1, 2].map(|client| all.take(spec, Some(client)))
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
        all.admit(1, variables(&[]));
        assert_eq!(all.take_complete(&spec).map(|it| it.key), None);
        all.admit(2, with("two"));
        all.admit(3, with("three"));
        let lacking = all.take(&spec, Some(1));
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
            let taken = all.take(&spec, client);
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

    #[test]
    fn no_value_is_printed() {
        let [taken, _] = take(&spec("${TOKEN}", &["*"]), [&[("TOKEN", "hunter2")], &[]]);
        assert!(!format!("{taken:?}").contains("hunter2"), "{taken:?}");
    }
}
