//! The variables that a server takes: of which client, and what it gets of another.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tool::{Digest, ServerName};

use crate::{Launch, ServerSpec, Template, Variables, environment::is_named};

/// These differ from terminal to terminal; who writes `inherit_env = ["*"]` does not mean them.
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

/// The part of a client's variables that a server's specification names, as the server gets it
/// when it is started.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) values: Variables,
    /// The same for two clients where the server gets the same of both.
    pub(crate) key: Digest,
    /// Those that the client lacks, and the client whose they are; none: our own.
    pub(crate) lent: BTreeMap<String, Option<u64>>,
    /// Nobody has a variable that is required: it does not start.
    pub(crate) is_incomplete: bool,
}

/// What one client, or whoever has told no variables, gets of a server in another way than others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// The server.
    pub server: ServerName,
    /// The client; none: whoever has told no variables.
    pub client: Option<u64>,
    /// The variables for which it has the server apart from the others.
    pub differing: Vec<String>,
    /// Variables that it lacks, and the client whose value it gets; none: our own.
    pub lent: Vec<(String, Option<u64>)>,
}

/// The variables of ourselves and of every client that is served, and those that one client has
/// for all who lack them.
#[derive(Debug)]
pub(crate) struct Environments {
    own: Variables,
    clients: BTreeMap<u64, Arc<Variables>>,
    /// Kept when the client is gone: its servers go on.
    lent: BTreeMap<String, (String, u64)>,
}

impl Environments {
    pub(crate) fn new(own: Variables) -> Self {
        Self {
            own,
            clients: BTreeMap::new(),
            lent: BTreeMap::new(),
        }
    }

    pub(crate) fn admit(&mut self, client: u64, variables: Arc<Variables>) {
        self.clients.insert(client, variables);
    }

    pub(crate) fn forget(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Those who told their variables, in the order in which they came.
    pub(crate) fn clients(&self) -> Vec<u64> {
        self.clients.keys().copied().collect()
    }

    /// What a server gets of this client; of ourselves where there is none, or it has told none.
    ///
    /// A variable that is required (`${VAR}`) and that it lacks is ours, else that of the first
    /// client that has it.
    pub(crate) fn take(&mut self, spec: &ServerSpec, client: Option<u64>) -> Taken {
        let client = client.and_then(|it| self.clients.get(&it)).cloned();
        let of_whom = client.as_deref().unwrap_or(&self.own);
        let named = of_whom
            .iter()
            .filter(|(name, _)| is_named(name, &spec.inherit_env));
        let mut values: Variables = named
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut missing = BTreeSet::new();
        for (name, is_required) in templates(spec).into_iter().flat_map(Template::needs) {
            match of_whom.get(name) {
                Some(value) => values.set(name, value),
                None if is_required => {
                    missing.insert(name);
                }
                None => {}
            }
        }
        let mut lent = BTreeMap::new();
        let mut is_incomplete = false;
        for name in missing {
            if let Some(value) = self.own.get(name) {
                values.set(name, value);
                lent.insert(name.to_owned(), None);
            } else if let Some((value, lender)) = self.lend(name) {
                values.set(name, &value);
                lent.insert(name.to_owned(), Some(lender));
            } else {
                is_incomplete = true;
            }
        }
        Taken {
            key: key(spec, &values),
            values,
            lent,
            is_incomplete,
        }
    }

    fn lend(&mut self, name: &str) -> Option<(String, u64)> {
        if let Some(lent) = self.lent.get(name) {
            return Some(lent.clone());
        }
        let mut having = self.clients.iter();
        let lent = having.find_map(|(client, it)| Some((it.get(name)?.to_owned(), *client)))?;
        self.lent.insert(name.to_owned(), lent.clone());
        Some(lent)
    }
}

/// Whether a server may get other things of other clients.
pub(crate) fn takes_variables(spec: &ServerSpec) -> bool {
    let mut needs = templates(spec).into_iter().flat_map(Template::needs);
    !spec.inherit_env.is_empty() || needs.next().is_some()
}

pub(crate) fn templates(spec: &ServerSpec) -> Vec<&Template> {
    let mut templates: Vec<&Template> = match &spec.launch {
        Launch::Child {
            command,
            args,
            env,
            cwd,
        } => {
            let env = env.iter().map(|(_, value)| value);
            let texts = [command].into_iter().chain(args).chain(env);
            texts.chain(cwd).collect()
        }
        Launch::Remote { url, headers } => {
            let headers = headers.iter().map(|(_, value)| value);
            let login = spec.login.templates();
            [url].into_iter().chain(headers).chain(login).collect()
        }
    };
    templates.extend(spec.roots.iter().flatten());
    templates.extend(&spec.image);
    templates.extend(spec.sandbox.iter().flat_map(|it| &it.write));
    templates
}

/// Names what a server gets: its texts with these values in them, and what it inherits.
fn key(spec: &ServerSpec, values: &Variables) -> Digest {
    let mut text = String::new();
    let mut add = |part: &str| {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    };
    for template in templates(spec) {
        // A secret is the same for all, whatever it is.
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

    use super::{Environments, Taken};
    use crate::{Launch, ServerSpec, Template, Variables};

    /// A server that takes this in a variable of its own, and inherits these.
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

    fn take(spec: &ServerSpec, clients: [&[(&str, &str)]; 2]) -> [Taken; 2] {
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
        // What it would get anyway is the same as being told so.
        check("${TOKEN:-a}", &[], [a, &[]], true);
        check("${TOKEN:-a}", &[], [b, &[]], false);
        let (here, there) = ([("PWD", "/here")], [("PWD", "/there")]);
        check("fixed", &["*"], [&here, &there], true);
        check("fixed", &["PWD"], [&here, &there], false);
    }

    #[test]
    fn what_a_client_lacks_is_that_of_the_first_who_has_it() {
        let with = |value: &str| variables(&[("TOKEN", value)]);
        let spec = spec("${TOKEN}", &[]);
        let mut all = Environments::new(Variables::default());
        all.admit(1, variables(&[]));
        assert!(all.take(&spec, Some(1)).is_incomplete);
        all.admit(2, with("two"));
        all.admit(3, with("three"));
        for client in [None, Some(1)] {
            let taken = all.take(&spec, client);
            assert_eq!(taken.values.get("TOKEN"), Some("two"));
            assert_eq!(taken.lent["TOKEN"], Some(2));
        }
        assert_eq!(all.take(&spec, Some(3)).values.get("TOKEN"), Some("three"));
        assert!(all.take(&spec, Some(3)).lent.is_empty());
        // It stays what it is when its client is gone.
        all.forget(2);
        assert_eq!(all.take(&spec, Some(1)).values.get("TOKEN"), Some("two"));

        let mut all = Environments::new((*with("own")).clone());
        all.admit(1, variables(&[]));
        all.admit(2, with("two"));
        let taken = all.take(&spec, Some(1));
        assert_eq!(taken.values.get("TOKEN"), Some("own"));
        assert_eq!(taken.lent["TOKEN"], None);
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
        assert_eq!(one.key, two.key);
    }

    #[test]
    fn a_secret_makes_no_difference_between_clients_and_hides_none() {
        let spec = spec("${secret:a}${REGION:-}", &[]);
        let [one, two] = take(&spec, [&[("REGION", "a")], &[("REGION", "b")]]);
        assert_ne!(one.key, two.key);
        assert!(!one.is_incomplete && one.lent.is_empty());
        let [one, two] = take(&spec, [&[("secret:a", "x")], &[]]);
        assert_eq!(one.key, two.key);
    }

    #[test]
    fn no_value_is_printed() {
        let [taken, _] = take(&spec("${TOKEN}", &["*"]), [&[("TOKEN", "hunter2")], &[]]);
        assert!(!format!("{taken:?}").contains("hunter2"), "{taken:?}");
    }
}
