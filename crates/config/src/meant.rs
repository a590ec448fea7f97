//! Converts the raw configuration to the validated one.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fleet::{CommandDefinition, CommandSet, CommandTool, Launch, Sandbox, ServerSpec, Template};
use gateway::{
    AuditSettings, SearchSettings, ServerSettings, ToolLimits,
    policy::{ClientPolicies, ClientRule, ProfileSelector},
};
use printable::Redaction;
use registry::{Pin, ServerRules};
use secrets::Keeping;
use serde_json::{Map, Value};
use tool::ArgumentSetting;

use super::{
    Config, Environment, Mistake, MistakePlace,
    cluster::{read_cluster, read_placement},
    file::ConfigFile,
    listen,
    login::read_login,
    mistake::Fault,
    paths::{Folders, find_state_dir},
    program::find_program,
    raw::{
        RawClient, RawConfig, RawOverlay, RawProfile, RawRedaction, RawSandbox, RawServer, Semantic,
    },
    template::{read_optional, read_pairs, read_template},
    traces::read_traces,
};

/// Reads a configuration whose values were checked when the layers were read. The only remaining
/// mistakes are keys that contradict one another, and an unknown home folder.
pub(super) fn read_config(
    file: &ConfigFile,
    mut raw: RawConfig,
    env: &Environment,
) -> Result<Config, Vec<Mistake>> {
    let parent = file.absolute.parent().unwrap_or(&file.absolute);
    let folders = Folders {
        env,
        config: parent,
    };
    let mut mistakes = Mistakes::default();
    let servers = read_servers(&mut raw, &folders, &mut mistakes);
    let daemon = read_daemon(&raw);
    let search = mistakes.note("search.enrich", read_search(&raw));
    let cluster = read_cluster(raw.cluster.as_ref(), raw.results.keep_hours, &folders);
    let cluster = mistakes.note_in("cluster", cluster);
    let http = listen::read_http(&raw.http, raw.cluster.as_ref(), &folders);
    let http = mistakes.note_in("http", http);
    let traces = mistakes.note_in("traces", read_traces(&raw.traces));
    let clients = mistakes.note_in("clients", read_clients(raw.clients));
    let clients = clients.and_then(|clients| {
        mistakes.note_in("profiles", read_profiles(clients, &raw.profiles, &folders))
    });
    let policy = mistakes.note("rules", read_policy(raw.policy, &raw.rules, env));
    let quotas = mistakes.note("quotas", read_quotas(&raw.quotas));
    let state_dir = find_state_dir(raw.state_dir.as_deref(), &file.absolute, env);
    let state_dir = mistakes.note("state_dir", state_dir);
    let keeping = read_keeping(raw.secrets.store, secrets::HAS_KEYRING);
    let keeping = mistakes.note("secrets.store", keeping);
    // `None` has noted its mistake.
    let config = || {
        Some(Config {
            file: file.absolute.clone(),
            read_at: std::time::SystemTime::now(),
            removed_keys: Vec::new(),
            log: raw.log,
            gateway: gateway::Settings {
                state_dir: state_dir?,
                secrets: keeping?,
                results: raw.results,
                search: search?,
                clients: clients?,
                policy: Arc::new(policy?),
                approval_wait: Duration::from_secs(raw.approvals.wait_s),
                quotas: Arc::new(quotas?),
                audit: AuditSettings {
                    bytes_max: raw.audit.keep_mib << 20,
                    arguments: raw.audit.arguments,
                },
                keeps_stats: raw.stats.enabled,
                traces: traces?,
                scripts: Some(parent.join("scripts")),
                servers,
            },
            http: http?,
            shared_revision: 0,
            cluster: cluster?,
            daemon,
        })
    };
    match config() {
        Some(config) if mistakes.0.is_empty() => Ok(config),
        _ => Err(mistakes.0),
    }
}

/// Search learns from the counts of calls, so it does not without statistics.
fn read_search(raw: &RawConfig) -> Result<SearchSettings, Fault> {
    Ok(SearchSettings {
        learns: raw.search.learn && raw.stats.enabled,
        enrich: read_words(raw.search.enrich.as_deref())?,
        embeds: raw.search.semantic == Semantic::Encoder,
    })
}

/// A node of a cluster does not leave for idleness: it would take its servers along.
fn read_daemon(raw: &RawConfig) -> daemon::DaemonSettings {
    let linger = Some(raw.daemon.linger_s).filter(|it| *it > 0 && raw.cluster.is_none());
    daemon::DaemonSettings {
        linger: linger.map(Duration::from_secs),
    }
}

/// Reads the servers in the order of the file; the commands of `[commands]` are one.
fn read_servers(
    raw: &mut RawConfig,
    folders: &Folders<'_>,
    mistakes: &mut Mistakes,
) -> Vec<ServerSettings> {
    let redaction = read_redaction(&raw.redaction);
    let redaction = mistakes.note("redaction.patterns", redaction);
    let has_cluster = raw.cluster.is_some();
    let written = std::mem::take(&mut raw.servers);
    let read = |(name, mut server): (String, RawServer)| {
        let launch = if name == "commands" && !raw.commands.is_empty() {
            read_commands(&mut server, &raw.commands, folders)
        } else {
            read_launch(&server, folders)
        };
        let is_redacted = server.redact.unwrap_or(raw.redaction.enabled);
        let (placement, on) = (server.placement.take(), server.on.take());
        let server = launch.and_then(|it| {
            let mut read = read_server(&name, server, it, raw.pin, folders)?;
            read.spec.placement = read_placement(placement, on, &read.spec, has_cluster)?;
            read.spec.redaction = redaction.clone().filter(|_| is_redacted);
            Ok(read)
        });
        mistakes.note(&format!("servers.{name}"), server)
    };
    written.into_iter().filter_map(read).collect()
}

/// The mistakes of values that have the form of their keys and mean nothing.
#[derive(Default)]
struct Mistakes(Vec<Mistake>);

impl Mistakes {
    fn note<T>(&mut self, key: &str, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|fault| self.0.push(fault.at(MistakePlace::File, key)))
            .ok()
    }

    /// Does the same with a key below this table.
    fn note_in<T>(
        &mut self,
        table: &str,
        read: Result<T, (impl std::fmt::Display, Fault)>,
    ) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err((key, fault)) => self.note(&format!("{table}.{key}"), Err(fault)),
        }
    }
}

/// Reads the rules again: `~` can be resolved only here.
fn read_policy(
    preset: policy::Preset,
    rules: &[Map<String, Value>],
    env: &Environment,
) -> Result<policy::Policy, Fault> {
    let home = env.path("HOME");
    let home = home.as_deref().and_then(Path::to_str);
    let read = |rule| policy::Rule::read(rule, home);
    let rules = rules.iter().map(read).collect::<Result<_, _>>();
    let rules = rules.map_err(|fault| Fault::bare(fault.to_string()))?;
    Ok(policy::Policy::new(preset, rules))
}

fn read_profiles(
    mut clients: ClientPolicies,
    raw: &BTreeMap<String, RawProfile>,
    folders: &Folders<'_>,
) -> Result<ClientPolicies, (String, Fault)> {
    for (name, raw) in raw {
        let rule = ClientRule {
            max_tokens: raw.max_tokens,
            allow: raw.allow.clone(),
            deny: raw.deny.clone(),
            ..ClientRule::default()
        };
        let read_list = |key: &str, paths: &[String]| {
            let folder = |path: &String| folders.resolve_folder(path).map(PathBuf::from);
            let selected = paths.iter().map(folder).collect::<Result<_, _>>();
            selected.map_err(|fault| (format!("{name}.{key}"), fault))
        };
        let selector = ProfileSelector {
            folders: read_list("folders", &raw.folders)?,
            outside_folders: read_list("outside_folders", &raw.outside_folders)?,
            callers: raw.callers.clone(),
        };
        let added = clients.add_profile(name, &rule, selector);
        added.map_err(|why| (name.clone(), Fault::bare(why)))?;
    }
    Ok(clients)
}

fn read_redaction(raw: &RawRedaction) -> Result<Arc<Redaction>, Fault> {
    let read = Redaction::new(&raw.patterns);
    let fault = |(name, why)| Fault::bare(format!("`{name}`: {why}"));
    read.map(Arc::new).map_err(fault)
}

fn read_quotas(quotas: &[Map<String, Value>]) -> Result<Vec<policy::Quota>, Fault> {
    let quotas = quotas.iter().map(policy::Quota::read);
    let quotas: Result<_, _> = quotas.collect();
    quotas.map_err(|fault: policy::Fault| Fault::bare(fault.to_string()))
}

/// Splits the text of a command into words, as `${command:...}` does.
fn read_words(command: Option<&str>) -> Result<Vec<String>, Fault> {
    let Some(command) = command else {
        return Ok(Vec::new());
    };
    match secrets::Reference::parse(&format!("command:{command}")) {
        Some(Ok(secrets::Reference::Command(words))) => Ok(words),
        _ => Err(Fault::new(
            "not a command: it is empty, or a quote is not closed",
            "write a program and its arguments, `\"claude -p\"`",
        )),
    }
}

fn read_keeping(store: Keeping, has_keyring: bool) -> Result<Keeping, Fault> {
    if store == Keeping::Keyring && !has_keyring {
        return Err(Fault::new(
            "this program was built without keyring support",
            "build it with `--features keyring`, or write `\"file\"`",
        ));
    }
    Ok(store)
}

fn read_clients(raw: BTreeMap<String, RawClient>) -> Result<ClientPolicies, (String, Fault)> {
    let rules = raw.into_iter().map(|(name, raw)| {
        let rule = ClientRule {
            max_tokens: raw.max_tokens,
            allow: raw.allow,
            deny: raw.deny,
            hides_resources: raw.resources == "off",
            catalog: raw.catalog,
        };
        (name, rule)
    });
    ClientPolicies::new(rules).map_err(|(name, why)| (name, Fault::bare(why)))
}

fn read_server(
    name: &str,
    raw: RawServer,
    launch: Launch,
    pin: Pin,
    folders: &Folders<'_>,
) -> Result<ServerSettings, Fault> {
    let name = name
        .parse()
        .map_err(|error| Fault::bare(format!("{error}")))?;
    let mut headers = raw.headers.keys();
    let has_authorization = headers.any(|it| it.eq_ignore_ascii_case("authorization"));
    let spec = ServerSpec {
        start: raw.start,
        scope: raw.scope.unwrap_or_default(),
        has_spares: raw.scope.is_none(),
        start_timeout: Duration::from_secs(raw.start_timeout_s),
        timeout: Duration::from_secs(raw.timeout_s),
        timeout_max: raw.timeout_max_s.map(Duration::from_secs),
        idle_timeout: (raw.idle_timeout_s > 0).then(|| Duration::from_secs(raw.idle_timeout_s)),
        calls_max: NonZeroUsize::new(raw.max_concurrent_calls),
        retries_safe_calls: raw.retry_safe_calls,
        login: read_login(&raw.oauth, raw.login == "caller", has_authorization)?,
        inherit_env: raw.inherit_env.clone(),
        roots: read_roots(&raw, folders)?,
        sandbox: (raw.sandbox.as_ref())
            .map(|sandbox| read_sandbox(sandbox, folders))
            .transpose()?,
        image: read_optional(raw.image.as_ref())?,
        ..ServerSpec::new(name, launch)
    };
    let rules = ServerRules {
        name: spec.name.clone(),
        program: find_program(&spec.launch),
        description: raw.description,
        category: raw.category,
        tags: raw.tags,
        allow: raw.tools.allow,
        deny: raw.tools.deny,
        pin: raw.pin.unwrap_or(pin),
        overlays: read_overlays(&raw.overlay)?,
        arguments: read_argument_settings(&raw.arguments)?,
    };
    Ok(ServerSettings {
        spec,
        enabled: raw.enabled,
        rules,
        notes: raw.notes,
        max_tokens: raw.max_tokens,
        tools: read_limits(&raw.overlay),
    })
}

fn read_sandbox(raw: &RawSandbox, folders: &Folders<'_>) -> Result<Sandbox, Fault> {
    let write = raw.write.iter().map(|path| folders.read(path));
    Ok(Sandbox {
        network: raw.network,
        write: write.collect::<Result<_, _>>()?,
    })
}

fn read_roots(raw: &RawServer, folders: &Folders<'_>) -> Result<Option<Vec<Template>>, Fault> {
    let Some(roots) = &raw.roots else {
        return Ok(None);
    };
    let roots = roots.iter().map(|root| folders.read(root));
    roots.collect::<Result<_, _>>().map(Some)
}

fn read_launch(raw: &RawServer, folders: &Folders<'_>) -> Result<Launch, Fault> {
    match (&raw.command, &raw.url) {
        (Some(command), _) => Ok(Launch::Child {
            command: read_template(&folders.resolve_command(command)?)?,
            args: raw
                .args
                .iter()
                .map(|arg| read_template(arg))
                .collect::<Result<_, _>>()?,
            env: read_pairs(&raw.env)?,
            cwd: read_cwd(raw, folders)?,
        }),
        (None, Some(url)) => Ok(Launch::Remote {
            url: read_template(url)?,
            headers: read_pairs(&raw.headers)?,
        }),
        (None, None) => Err(Fault::bare("neither `command` nor `url`")),
    }
}

fn read_cwd(raw: &RawServer, folders: &Folders<'_>) -> Result<Option<Template>, Fault> {
    let cwd = raw.cwd.as_ref().map(|cwd| folders.read(cwd));
    cwd.transpose()
}

/// Returns the server of all commands. Adds their tags to its overlays.
fn read_commands(
    raw: &mut RawServer,
    commands: &BTreeMap<String, CommandDefinition>,
    folders: &Folders<'_>,
) -> Result<Launch, Fault> {
    let mut tools = Vec::new();
    for (name, definition) in commands {
        let overlay = raw.overlay.entry(name.clone()).or_default();
        overlay.tags.extend(definition.tags.iter().cloned());
        let fault = |what: String| Fault::bare(format!("`commands.{name}`: {what}"));
        let mut definition = definition.clone();
        for program in definition.command.iter_mut().take(1) {
            *program = folders.resolve_command(program)?;
        }
        tools.push(CommandTool::new(name, &definition).map_err(fault)?);
    }
    let (env, cwd) = (read_pairs(&raw.env)?, read_cwd(raw, folders)?);
    Ok(Launch::Commands(CommandSet { tools, env, cwd }))
}

fn read_limits(raw: &BTreeMap<String, RawOverlay>) -> BTreeMap<String, ToolLimits> {
    let limits = |raw: &RawOverlay| ToolLimits {
        timeout: raw.timeout_s.map(Duration::from_secs),
        max_tokens: raw.max_tokens,
    };
    let each = raw.iter().map(|(tool, raw)| (tool.clone(), limits(raw)));
    each.filter(|(_, limits)| *limits != ToolLimits::default())
        .collect()
}

/// The registry does not use an overlay of limits alone, and its index must not change for one.
fn read_overlays(
    raw: &BTreeMap<String, RawOverlay>,
) -> Result<BTreeMap<String, registry::Overlay>, Fault> {
    let each = raw
        .iter()
        .map(|(tool, raw)| Ok((tool.clone(), read_overlay(raw)?)));
    let mut overlays = each.collect::<Result<BTreeMap<_, _>, Fault>>()?;
    overlays.retain(|_, overlay| *overlay != registry::Overlay::default());
    Ok(overlays)
}

fn read_overlay(raw: &RawOverlay) -> Result<registry::Overlay, Fault> {
    Ok(registry::Overlay {
        title: raw.title.clone(),
        usage: raw.usage.clone(),
        min_version: raw.min_version.clone(),
        deprecated: raw.deprecated.clone(),
        description: raw.description.clone(),
        tags: raw.tags.clone(),
        category: raw.category.clone(),
        notes: raw.notes.clone(),
        example: raw.example.clone(),
        hidden: raw.hidden,
        arguments: read_argument_settings(&raw.arguments)?,
    })
}

fn read_argument_settings(
    written: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, ArgumentSetting>, Fault> {
    let read = |(name, it): (&String, &Value)| {
        let fault = |what| Fault::bare(format!("`arguments.{name}`: {what}"));
        Ok((name.clone(), ArgumentSetting::read(it).map_err(fault)?))
    };
    written.iter().map(read).collect()
}
