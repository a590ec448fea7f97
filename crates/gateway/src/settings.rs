//! The settings of the gateway and of its parts.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ::policy::{Policy, Quota};
use fleet::{ServerSpec, Spoken, Template};
use jsonrpc::mcp::{Revision, Transport};
use registry::{Entry, Rules, ServerCatalog, ServerRules};
use results::BUDGET_MIN;
use secrets::{Keeping, PrivateFiles};
use telemetry::otlp::Collector;
use tool::{ServerName, ToolRef};

use crate::{
    envelope::Options,
    policy::{ClientPolicies, ClientPolicy},
};

/// Checked settings: no other part has to check them again. Paths are absolute; servers are in the
/// order of the file.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of snapshots, index, results, usage and logs.
    pub state_dir: PathBuf,
    /// The storage of secrets and logins in that folder.
    pub secrets: Keeping,
    /// The size of a result that is sent, and the time for which it is kept.
    pub results: results::ResultSettings,
    /// The features that searches may use.
    pub search: SearchSettings,
    /// The rules for clients, by the name that a client announces.
    pub clients: ClientPolicies,
    /// The rules by which calls are made, asked about or refused.
    pub policy: Arc<Policy>,
    /// The time for which a call waits for a person's permission, if its client cannot ask for it; zero:
    /// it is refused at once.
    pub approval_wait: Duration,
    /// The limits of calls and tokens.
    pub quotas: Arc<Vec<Quota>>,
    /// The settings of the audit log of calls.
    pub audit: AuditSettings,
    /// False if no call is counted: no figures, no usage, and nothing that search learns.
    pub keeps_stats: bool,
    /// The collector for spans of calls; `None`: spans are not sent.
    pub traces: Option<TraceSettings>,
    /// The folder of saved scripts, which may not exist; `None`: there are no saved scripts.
    pub scripts: Option<PathBuf>,
    /// All servers, including those that are switched off.
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

    /// The scheme, host and port of the collector; `None` if its address is not in the file.
    pub fn origin(&self) -> Option<String> {
        let collector = Collector::new(&self.endpoint.plain()?, &[]);
        Some(collector.ok()?.origin())
    }
}

/// The settings of the audit log of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// The room of the log; 0: there is no log.
    pub bytes_max: u64,
    /// The form in which a call's arguments are logged.
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

/// The part of a call's arguments that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptArguments {
    /// Nothing.
    None,
    /// A digest.
    Digest,
    /// All of them, without members whose names suggest a secret.
    Full,
}

/// Aids of a search beside the words of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// True if calls teach later searches.
    pub learns: bool,
    /// True if tools are also found by the meaning of a request, beside its words.
    pub embeds: bool,
    /// The words of the command that writes example requests; empty: there is none.
    pub enrich: Vec<String>,
}

/// One server of the configuration.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The specification of how it is started and called.
    pub spec: ServerSpec,
    /// False if the server is switched off.
    pub enabled: bool,
    /// The rules that the registry applies to it.
    pub rules: ServerRules,
    /// Advice for the model, shown with each of its tools.
    pub notes: Option<String>,
    /// The limit of one result, in tokens; `None`: that of [`results::ResultSettings`].
    pub max_tokens: Option<u64>,
    /// The limits of tools, by the tool's own name; only tools with limits other than those of their
    /// server.
    pub tools: BTreeMap<String, ToolLimits>,
}

/// Limits of one tool in place of its server's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// The time limit of a call.
    pub timeout: Option<Duration>,
    /// The limit of one result, in tokens.
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
            results: results::ResultSettings::default(),
            search: SearchSettings {
                learns: true,
                embeds: true,
                enrich: Vec::new(),
            },
            clients: ClientPolicies::default(),
            policy: Arc::default(),
            quotas: Arc::default(),
            audit: AuditSettings::default(),
            approval_wait: Duration::ZERO,
            keeps_stats: true,
            traces: None,
            scripts: None,
            servers: Vec::new(),
        }
    }

    /// The place of secrets and logins.
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

    /// Any server, including one that is switched off.
    pub fn server(&self, name: &ServerName) -> Option<&ServerSettings> {
        self.servers.iter().find(|it| it.spec.name == *name)
    }

    /// The limits of a tool; `None` if those of its server apply.
    pub fn tool_limits(&self, tool: &ToolRef) -> Option<&ToolLimits> {
        self.server(&tool.server)?.tools.get(&tool.tool)
    }

    /// The timeout of a call: by its options, else by its tool, else by its server; a tool of ours
    /// has none of its own. The single place that decides it.
    pub(crate) fn timeout(&self, entry: &Entry, options: &Options) -> Option<Duration> {
        let of_tool = || self.tool_limits(&entry.at)?.timeout;
        let of_server = || Some(self.server(&entry.at.server)?.spec.timeout);
        options.timeout().or_else(of_tool).or_else(of_server)
    }

    /// The largest part of a result that is sent to its caller, in tokens: by the options of the
    /// call, else by its tool, its server, its client, or the configuration for all. The single
    /// place that decides it.
    pub(crate) fn max_tokens(
        &self,
        entry: &Entry,
        options: &Options,
        client: &ClientPolicy,
    ) -> u64 {
        let of_tool = self.tool_limits(&entry.at).and_then(|it| it.max_tokens);
        let of_server = self.server(&entry.at.server).and_then(|it| it.max_tokens);
        let configured = client.max_tokens(of_tool.or(of_server), self.results.max_tokens);
        options.max_tokens.unwrap_or(configured)
    }

    /// The specifications of the enabled servers, for the fleet.
    pub fn specs(&self) -> Vec<ServerSpec> {
        self.enabled().map(|server| server.spec.clone()).collect()
    }

    /// The same with the protocol that each server used last time, and its calls that ask questions, so that a
    /// wrong guess is not repeated.
    pub(crate) fn specs_as_spoken(&self, catalog: &ServerCatalog) -> Vec<ServerSpec> {
        let known = catalog.servers.iter().map(|server| (&server.name, server));
        let known: HashMap<_, _> = known.collect();
        let mut specs = self.specs();
        for spec in &mut specs {
            let known = known.get(&spec.name);
            let known = known.filter(|server| !server.protocol.is_empty());
            spec.asking_calls = known.map_or_else(Vec::new, |server| server.asking_calls.clone());
            spec.spoken = known.map(|server| {
                let transport = server.transport.as_deref().and_then(Transport::parse);
                Spoken {
                    revision: Revision::named(&server.protocol),
                    transport: transport.unwrap_or_default(),
                }
            });
        }
        specs
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
