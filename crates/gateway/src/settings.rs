//! The settings of the gateway and of what stands behind it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use ::policy::Policy;
use fleet::{ServerSpec, Template};
use registry::{Entry, Rules, ServerRules};
use results::BUDGET_MIN;
use secrets::{Keeping, PrivateFiles};
use telemetry::otlp::Collector;
use tool::{ServerName, ToolRef};

use crate::{
    envelope::Options,
    policy::{ClientPolicies, ClientPolicy},
};

/// Servers asked at one time by a survey, where nothing else is said.
const SURVEY_PARALLEL_DEFAULT: usize = 8;

/// Checked: nobody behind the configuration has to look again. Paths are absolute; servers stand
/// in the order of the file.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where snapshots, index, results, usage and logs lie.
    pub state_dir: PathBuf,
    /// How secrets and logins are kept there.
    pub secrets: Keeping,
    /// How much of a result is sent, and how long it is kept.
    pub results: results::Settings,
    /// What searches may use.
    pub search: SearchSettings,
    /// How many servers are asked for their tools at one time.
    pub survey_parallel: usize,
    /// What holds for a client by the name it announces.
    pub clients: ClientPolicies,
    /// Which calls are made, asked about or refused.
    pub policy: Arc<Policy>,
    /// What is written down of calls.
    pub audit: AuditSettings,
    /// Where spans of calls go; none: nowhere.
    pub traces: Option<TraceSettings>,
    /// The folder of saved scripts, whether it is there or not; none: there are none.
    pub scripts: Option<PathBuf>,
    /// All of them, the ones that are switched off included.
    pub servers: Vec<ServerSettings>,
}

/// A collector of spans; secrets are not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// Its address.
    pub endpoint: Template,
    /// Headers that each request to it carries.
    pub headers: Vec<(String, Template)>,
}

impl TraceSettings {
    /// Everything that is filled in before the first span is sent.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        std::iter::once(&self.endpoint).chain(headers)
    }

    /// The scheme, host and port of the collector; none where its address is not in the file.
    pub fn origin(&self) -> Option<String> {
        let collector = Collector::new(&self.endpoint.plain()?, &[]);
        Some(collector.ok()?.origin())
    }
}

/// What is written down of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// The room of the log; 0: there is none.
    pub bytes_max: u64,
    /// What of a call's arguments.
    pub arguments: KeptArguments,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            arguments: KeptArguments::Digest,
        }
    }
}

/// The part of a call's arguments that is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptArguments {
    /// Nothing.
    None,
    /// A digest.
    Digest,
    /// All of them, without what is named like a secret.
    Full,
}

/// Aids of a search beside the words of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// Whether calls teach later searches.
    pub learns: bool,
    /// Whether tools are found by what a request means, beside its words.
    pub embeds: bool,
}

/// One server of the configuration.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// How it is started and called.
    pub spec: ServerSpec,
    /// Whether there is such a server at all.
    pub enabled: bool,
    /// What the registry has to know of it.
    pub rules: ServerRules,
    /// Advice for the model, shown with each of its tools.
    pub notes: Option<String>,
    /// For one result; none leaves it to [`results::Settings`].
    pub max_tokens: Option<u64>,
    /// By the tool's own name; only tools for which there is something else to say than for
    /// their server.
    pub tools: BTreeMap<String, ToolLimits>,
}

/// Limits of one tool in place of its server's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// Of one result, in tokens.
    pub max_tokens: Option<u64>,
}

impl Settings {
    /// The room of an answer about tools, in tokens.
    pub(crate) fn room(&self, client: &ClientPolicy) -> usize {
        let max_tokens = client.max_tokens(None, self.results.max_tokens);
        let max_tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
        max_tokens.max(BUDGET_MIN)
    }

    /// No servers, and the defaults for everything else.
    pub fn in_folder(state_dir: PathBuf) -> Self {
        Self {
            state_dir,
            secrets: Keeping::default(),
            results: results::Settings::default(),
            search: SearchSettings {
                learns: true,
                embeds: true,
            },
            survey_parallel: SURVEY_PARALLEL_DEFAULT,
            clients: ClientPolicies::default(),
            policy: Arc::default(),
            audit: AuditSettings::default(),
            traces: None,
            scripts: None,
            servers: Vec::new(),
        }
    }

    /// Where secrets and logins are kept.
    pub fn private_files(&self) -> PrivateFiles {
        PrivateFiles {
            state_dir: self.state_dir.clone(),
            keeping: self.secrets,
        }
    }

    /// The servers that are not switched off, in the order of the file.
    pub fn enabled(&self) -> impl Iterator<Item = &ServerSettings> {
        self.servers.iter().filter(|server| server.enabled)
    }

    /// Any of them, one that is switched off included.
    pub fn server(&self, name: &ServerName) -> Option<&ServerSettings> {
        self.servers.iter().find(|it| it.spec.name == *name)
    }

    /// None where the limits of its server hold.
    pub fn tool_limits(&self, tool: &ToolRef) -> Option<&ToolLimits> {
        self.server(&tool.server)?.tools.get(&tool.tool)
    }

    /// The time that the caller of a tool waits: by its options, else by the tool; none where the limit of the
    /// server holds.
    pub(crate) fn call_limit(&self, entry: &Entry, options: &Options) -> Option<Duration> {
        let of_tool = || self.tool_limits(&entry.at)?.timeout;
        options.limit().or_else(of_tool)
    }

    /// The timeout of a server for calls; a tool of ours has none.
    pub(crate) fn usual_limit(&self, entry: &Entry) -> Option<Duration> {
        Some(self.server(&entry.at.server)?.spec.call_timeout)
    }

    /// The most of a result that its caller is sent, in tokens: by the options of the call, else by its tool,
    /// its server, its client, or the configuration for all. The one place that decides it.
    pub(crate) fn max_tokens(
        &self,
        entry: &Entry,
        options: &Options,
        client: &ClientPolicy,
    ) -> u64 {
        let of_tool = self.tool_limits(&entry.at);
        let of_tool = of_tool.and_then(|limits| limits.max_tokens);
        let of_server = self.server(&entry.at.server);
        let of_server = of_server.and_then(|server| server.max_tokens);
        let configured = client.max_tokens(of_tool.or(of_server), self.results.max_tokens);
        options.max_tokens.unwrap_or(configured)
    }

    /// The specifications of the enabled servers, for the fleet.
    pub fn specs(&self) -> Vec<ServerSpec> {
        self.enabled().map(|server| server.spec.clone()).collect()
    }

    /// The rules for all servers, for the registry.
    pub fn rules(&self) -> Rules {
        let servers = self.enabled().map(|server| server.rules.clone());
        let disabled = self.servers.iter().filter(|server| !server.enabled);
        Rules {
            servers: servers.collect(),
            disabled: disabled.map(|server| server.spec.name.clone()).collect(),
        }
    }
}
