//! The file as it is written, and its conversion to recipes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::recipe::{
    Alternative, Auth, Distribution, Example, Parameter, Pin, Recipe, RecipeScope, ServerFacts,
    StartMethod, Started, Transport, Variable,
};

/// The parsed file.
#[derive(Debug)]
pub(crate) struct RecipeFile {
    pub(crate) known: Vec<ServerFacts>,
    pub(crate) recipes: Vec<Recipe>,
}

/// Parses the whole file as the build script wrote it. The error names the table.
pub(crate) fn parse(json: &str) -> Result<RecipeFile, String> {
    let categories: BTreeMap<String, BTreeMap<String, Raw>> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut file = RecipeFile {
        known: Vec::new(),
        recipes: Vec::new(),
    };
    for (category, servers) in categories {
        for (name, raw) in servers {
            let place = format!("{category}.{name}");
            let (known, details) = raw.split(name, category.clone());
            match details.map(|details| details.make(known.clone())) {
                None => file.known.push(known),
                Some(Ok(recipe)) => file.recipes.push(recipe),
                Some(Err(why)) => return Err(format!("{place}: {why}")),
            }
        }
    }
    Ok(file)
}

/// One server with every key that it may have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    tags: Vec<String>,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    mixed: bool,

    what: Option<String>,
    #[serde(default)]
    verbs: Vec<String>,
    npm: Option<String>,
    pypi: Option<String>,
    docker: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    transport: Transport,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    auth: Option<Auth>,
    #[serde(default)]
    scope: RecipeScope,
    start_timeout_s: Option<u64>,
    #[serde(default)]
    variables: Vec<Variable>,
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default)]
    pins: Vec<Pin>,
    node: Option<String>,
    python: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    notes: Option<String>,
    example: Option<Example>,
    #[serde(default)]
    alternatives: Vec<RawAlternative>,
    deprecated: Option<String>,
    #[serde(default)]
    replaces: Vec<String>,
    source: Option<String>,
    started: Option<Started>,
    newest: Option<String>,
    not_started: Option<String>,
    checked: Option<String>,
}

impl Raw {
    /// Splits a server into its search data and the data of its recipe, if it has one.
    fn split(mut self, name: String, category: String) -> (ServerFacts, Option<Self>) {
        let known = ServerFacts {
            name,
            category,
            tags: std::mem::take(&mut self.tags),
            aliases: std::mem::take(&mut self.aliases),
            names: std::mem::take(&mut self.names),
            whole: self.whole,
            mixed: self.mixed,
        };
        let can_be_added = self.url.is_some() || !self.command.is_empty();
        (known, (can_be_added || self.what.is_some()).then_some(self))
    }

    fn make(self, known: ServerFacts) -> Result<Recipe, &'static str> {
        let packages = [
            (Distribution::Npm, self.npm),
            (Distribution::PyPi, self.pypi),
            (Distribution::Docker, self.docker),
        ];
        let mut packages = packages
            .into_iter()
            .filter_map(|(kind, package)| Some((kind, package?)));
        let (kind, package) = match (packages.next(), packages.next(), self.url.is_some()) {
            (Some((kind, package)), None, false) => (kind, Some(package)),
            (None, None, true) => (Distribution::Remote, None),
            _ => return Err("one of npm, pypi, docker and url is needed"),
        };
        Ok(Recipe {
            known,
            what: self.what.ok_or("`what` is missing")?,
            verbs: self.verbs,
            kind,
            package,
            way: make_way(self.command, self.url, self.transport, self.headers)?,
            env: self.env,
            auth: self.auth.ok_or("`auth` is missing")?,
            scope: self.scope,
            start_timeout_s: self.start_timeout_s,
            variables: self.variables,
            parameters: self.parameters,
            pins: self.pins,
            node: self.node,
            python: self.python,
            needs: self.needs,
            notes: self.notes.ok_or("`notes` are missing")?,
            example: self.example,
            alternatives: (self.alternatives.into_iter())
                .map(RawAlternative::make)
                .collect::<Result<_, _>>()?,
            deprecated: self.deprecated,
            replaces: self.replaces,
            source: self.source,
            started: self.started,
            newest: self.newest,
            not_started: self.not_started,
            checked: self.checked.ok_or("`checked` is missing")?,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAlternative {
    #[serde(default)]
    command: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    variables: Vec<String>,
    why: String,
    tools: Option<usize>,
}

impl RawAlternative {
    fn make(self) -> Result<Alternative, &'static str> {
        Ok(Alternative {
            way: make_way(self.command, self.url, Transport::Http, self.headers)?,
            variables: self.variables,
            why: self.why,
            tools: self.tools,
        })
    }
}

fn make_way(
    command: Vec<String>,
    url: Option<String>,
    transport: Transport,
    headers: BTreeMap<String, String>,
) -> Result<StartMethod, &'static str> {
    match (command.is_empty(), url) {
        (false, None) if headers.is_empty() => Ok(StartMethod::Command(command)),
        (true, Some(url)) => Ok(StartMethod::Remote {
            url,
            transport,
            headers,
        }),
        _ => Err("either `command` or `url`, and `headers` with `url` only"),
    }
}
