//! The data of one server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The data that search has of a server before the server is started.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFacts {
    /// Its name here, which is valid in the configuration.
    pub name: String,
    /// One of `registry/categories.toml`. For a server with several kinds of tools, the category of
    /// tools that match no rule.
    pub category: String,
    /// Words for its subject.
    pub tags: Vec<String>,
    /// Common names for it; its tools are found by these too.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Other names of the server, its package or its host.
    #[serde(default)]
    pub names: Vec<String>,
    /// True if its name is too common a word to be matched as a part of another name.
    #[serde(default)]
    pub whole: bool,
    /// True if each of its tools has a category of its own.
    #[serde(default)]
    pub mixed: bool,
}

/// A server that can be added, with all data that this requires.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name, and its search data.
    pub known: ServerFacts,
    /// A short description that follows its name.
    pub what: String,
    /// Verbs for the tasks that it does.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// The kind of its distribution.
    pub kind: Distribution,
    /// Its package or image; none for a remote server.
    pub package: Option<String>,
    /// The command or address, with `{NAME}` for each parameter.
    pub way: StartMethod,
    /// Variables that are set to these texts, which may hold parameters.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The way in which it authenticates its user.
    pub auth: Auth,
    /// Its scope: one process for all clients, or one for each.
    #[serde(default)]
    pub scope: RecipeScope,
    /// The start timeout, if the default is too short.
    pub start_timeout_s: Option<u64>,
    /// Variables that it reads, required ones first.
    #[serde(default)]
    pub variables: Vec<Variable>,
    /// The parameters that replace `{NAME}` in its texts.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Version pins that its command line currently needs.
    #[serde(default)]
    pub pins: Vec<Pin>,
    /// The Node.js version that its newest release requires, as in `engines` of a `package.json`.
    pub node: Option<String>,
    /// The Python version that its newest release requires, in the same form.
    pub python: Option<String>,
    /// Other software that it requires.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Notes for the model.
    pub notes: String,
    /// A call that matches its schema; texts in it may hold parameters.
    pub example: Option<Example>,
    /// Other ways to run or reach it.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// Its replacement, if it is deprecated.
    pub deprecated: Option<String>,
    /// Former packages and addresses that this server replaces.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// The source of this data; the server's own package if none is named.
    pub source: Option<String>,
    /// The result of the last check, if the server responded. None: not checked, or see `not_started`.
    pub started: Option<Started>,
    /// A release that is newer than the one that was checked.
    pub newest: Option<String>,
    /// The reason why the server did not respond.
    pub not_started: Option<String>,
    /// The day of the last check, as `2026-11-22`.
    pub checked: String,
}

impl Recipe {
    /// Its name here.
    pub fn name(&self) -> &str {
        &self.known.name
    }

    /// Returns the required variables.
    pub fn required(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| variable.required)
    }
}

/// The kind of distribution of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// An npm package, started by `npx`.
    Npm,
    /// A `PyPI` package, started by `uvx`.
    PyPi,
    /// An image, started by `docker run`.
    Docker,
    /// A remote server, reached by HTTP.
    Remote,
}

impl Distribution {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "pypi",
            Self::Docker => "docker",
            Self::Remote => "remote",
        }
    }
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartMethod {
    /// A program and its arguments; the first text is the program. Never empty.
    Command(Vec<String>),
    /// A remote server.
    Remote {
        /// The address, with `https://`.
        url: String,
        /// Its transport.
        transport: Transport,
        /// Headers for authentication; each is sent only if its variables are given.
        headers: BTreeMap<String, String>,
    },
}

/// The transport of a remote server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Streamable HTTP.
    #[default]
    Http,
    /// HTTP+SSE, the older one.
    Sse,
}

/// The way in which a server authenticates its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// No authentication.
    None,
    /// Values of variables.
    Env,
    /// A token in a header or in the address.
    Header,
    /// Its own login: in a browser, with a code, or by another program.
    OAuth,
}

impl Auth {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Env => "env",
            Self::Header => "header",
            Self::OAuth => "oauth",
        }
    }
}

/// The clients that share one process, as in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecipeScope {
    /// One process for all clients.
    #[default]
    Shared,
    /// The server keeps state of one client, such as a browser, a folder or an open document.
    Client,
}

/// A variable that a server reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The name, as the server reads it.
    pub name: String,
    /// True if the server does not work without it, even if it starts.
    #[serde(default)]
    pub required: bool,
    /// True if no other user may read its value.
    #[serde(default)]
    pub secret: bool,
    /// A description of the value.
    pub what: String,
    /// Instructions for getting the value.
    #[serde(rename = "where")]
    pub origin: Option<String>,
}

/// A text that differs from user to user and is not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The name, written as `{NAME}`.
    pub name: String,
    /// A description of the value.
    pub what: String,
    /// The default value. May hold `${VAR}`.
    pub default: Option<String>,
    /// Arguments that it adds to the command line. A parameter with such arguments is optional.
    #[serde(default)]
    pub args: Vec<String>,
}

/// A version pin that a server needs to start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The value of `--with` in the command line.
    pub with: String,
    /// The failure without the pin.
    pub why: String,
    /// The day on which the failure was seen.
    pub checked: String,
}

/// A call that can be shown as an example.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The tool's name on the server.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
}

/// Another way to run or reach a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The command or address.
    pub way: StartMethod,
    /// Names of the variables that it reads.
    #[serde(default)]
    pub variables: Vec<String>,
    /// The reason to choose it.
    pub why: String,
    /// The number of tools that it listed when it was checked. None: it did not respond, or was not
    /// checked.
    pub tools: Option<usize>,
}

/// The response of a server that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The release that ran.
    pub version: String,
    /// The number of tools that it listed.
    pub tools: usize,
}
