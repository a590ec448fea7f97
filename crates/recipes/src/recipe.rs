//! What is known of one server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// What search knows of a server before it says a word.
#[derive(Debug, Clone)]
pub struct Known {
    /// What it is called here; a name that the configuration takes.
    pub name: String,
    /// One of `registry/categories.toml`; of a server of many things, that of what no rule knows.
    pub category: String,
    /// What it is about.
    pub tags: Vec<String>,
    /// What people call it; its tools are found by these too.
    pub aliases: Vec<String>,
    /// Other names of the server, its package or its host.
    pub names: Vec<String>,
    /// Its name is too common a word to be part of another.
    pub whole: bool,
    /// Each of its tools has a category of its own.
    pub mixed: bool,
}

/// A server that can be added, and all that this takes.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Its name, and what search knows of it.
    pub known: Known,
    /// What it gives, in a few words that follow its name.
    pub what: String,
    /// What people want done with it.
    pub verbs: Vec<String>,
    /// Where it comes from.
    pub kind: Kind,
    /// Its package or image; none of a remote one.
    pub package: Option<String>,
    /// How it is reached, with `{NAME}` where a parameter goes.
    pub way: Way,
    /// Variables that are set to these texts, which may hold parameters.
    pub env: BTreeMap<String, String>,
    /// How it knows its user.
    pub auth: Auth,
    /// Whether clients may share one process of it.
    pub scope: Scope,
    /// How long its start may take, where the default is too short.
    pub start_timeout_s: Option<u64>,
    /// Variables that it reads, required ones first.
    pub variables: Vec<Variable>,
    /// What stands as `{NAME}` in its texts.
    pub parameters: Vec<Parameter>,
    /// What has to be held back in its start line today.
    pub pins: Vec<Pin>,
    /// The Node.js that its newest release wants, as in `engines` of a `package.json`.
    pub node: Option<String>,
    /// The Python that its newest release wants, in the same form.
    pub python: Option<String>,
    /// What else has to be there.
    pub needs: Vec<String>,
    /// What a model should know of it.
    pub notes: String,
    /// A call that its schema takes; texts in it may hold parameters.
    pub example: Option<Example>,
    /// Other ways to have it.
    pub alternatives: Vec<Alternative>,
    /// What to take instead.
    pub deprecated: Option<String>,
    /// Packages and addresses of before, of which people should take this one.
    pub replaces: Vec<String>,
    /// Who says all this; its own package, where nobody is named.
    pub source: Option<String>,
    /// It answered us, when it was last looked at. None: not checked, or see `not_started`.
    pub started: Option<Started>,
    /// A newer release than the one that answered us.
    pub newest: Option<String>,
    /// Why it did not answer us.
    pub not_started: Option<String>,
    /// The day all this was last looked at, as `2026-11-22`.
    pub checked: String,
}

impl Recipe {
    /// What it is called here.
    pub fn name(&self) -> &str {
        &self.known.name
    }

    /// The variables it does not work without.
    pub fn required(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| variable.required)
    }
}

/// Where a server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A package of npm, started by `npx`.
    Npm,
    /// A package of `PyPI`, started by `uvx`.
    PyPi,
    /// An image, started by `docker run`.
    Docker,
    /// Runs elsewhere, and is reached by HTTP.
    Remote,
}

impl Kind {
    /// As it stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "pypi",
            Self::Docker => "docker",
            Self::Remote => "remote",
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A program is started; the first text is its name. Never empty.
    Command(Vec<String>),
    /// It is there already.
    Remote {
        /// With `https://`.
        url: String,
        /// What it speaks there.
        transport: Transport,
        /// Headers that stand for a login; each counts where its variables are given.
        headers: BTreeMap<String, String>,
    },
}

/// What a remote server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Streamable HTTP.
    #[default]
    Http,
    /// HTTP+SSE, the older one.
    Sse,
}

/// How a server knows its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Not at all.
    None,
    /// By values of variables.
    Env,
    /// By a token in a header or in the address.
    Header,
    /// By a login of its own: in a browser, with a code, by another program.
    OAuth,
}

impl Auth {
    /// As it stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Env => "env",
            Self::Header => "header",
            Self::OAuth => "oauth",
        }
    }
}

/// Whether clients may share one process, as the configuration has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One process for all.
    #[default]
    Shared,
    /// It keeps state of one client: a browser, a folder, an open document.
    Client,
}

/// A variable that a server reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// As the server reads it.
    pub name: String,
    /// The server does not work without, though it may well start.
    #[serde(default)]
    pub required: bool,
    /// Nobody else may read its value.
    #[serde(default)]
    pub secret: bool,
    /// What the value is.
    pub what: String,
    /// Where to get it.
    #[serde(default, rename = "where")]
    pub origin: Option<String>,
}

/// A text that differs from user to user and is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// It stands as `{NAME}`.
    pub name: String,
    /// What goes there.
    pub what: String,
    /// Taken where nobody says otherwise. May hold `${VAR}`.
    #[serde(default)]
    pub default: Option<String>,
    /// Words that it adds to the start line. One that has them may be left out.
    #[serde(default)]
    pub args: Vec<String>,
}

/// What has to be held back so that a server starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// It follows `--with` in the start line.
    pub with: String,
    /// What happens otherwise.
    pub why: String,
    /// The day that was seen.
    pub checked: String,
}

/// A call that can be shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The tool's own name.
    pub tool: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

/// Another way to have a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// How it is reached.
    pub way: Way,
    /// Names of the variables that it reads.
    pub variables: Vec<String>,
    /// Why one would take it.
    pub why: String,
    /// So many tools it listed when it answered us. None: it did not, or was not asked.
    pub tools: Option<usize>,
}

/// What a server answered us.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The release that ran.
    pub version: String,
    /// So many tools it listed.
    pub tools: usize,
}
