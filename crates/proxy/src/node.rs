//! This process as a node of its cluster: opens the gateway with the servers of all nodes, and applies the
//! configuration that nodes share.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use cluster::{Cluster, ClusterAccess, ClusterSettings, OwnData, ReadAccess, Role, SharedRecord};
use config::Config;
use daemon::owner::check_owner;
use fleet::{ClusterNode, Failure, LogHead, Servers, Template, Variables, with_secrets};
use futures::{FutureExt as _, future::BoxFuture};
use gateway::{Gateway, state_dir};
use results::{Fetching, SharedResults};
use secrets::Resolver;
use telemetry::{AuditHead, Event};
use tokio::{sync::Notify, task::spawn_blocking};
use tracing::{info, warn};

use crate::exit::Exit;

/// Opens the gateway. With a `[cluster]`, its servers are those of all nodes.
pub(crate) fn open_gateway(
    config: &Config,
    is_member: bool,
) -> anyhow::Result<(Arc<Gateway>, Option<Arc<Cluster>>)> {
    state_dir::make(&config.gateway.state_dir)?;
    let checked = check_owner(&config.gateway.state_dir, &config.file);
    checked.map_err(|other| Exit::Usage.with(other.to_string()))?;
    let Some(settings) = &config.cluster else {
        return Ok((Gateway::new(config.gateway.clone())?, None));
    };
    let role = match is_member.then(|| find_home(&config.gateway.state_dir)) {
        Some(home) => Role::Member { home },
        None => Role::Guest,
    };
    let files = config.gateway.private_files();
    let access = read_access(settings.clone(), gateway::resolver(&files));
    let data = Arc::new(DataOfNode {
        gateway: OnceLock::new(),
        audit: config.gateway.state_dir.join("audit"),
    });
    let own_data = Arc::clone(&data) as Arc<dyn OwnData>;
    let opened: OnceLock<Arc<Cluster>> = OnceLock::new();
    let surroundings = gateway::surroundings(&files);
    let gateway = Gateway::with_servers(config.gateway.clone(), |specs| {
        let settings = settings.clone();
        let cluster = Cluster::new(settings, role, surroundings, specs, access, own_data);
        let cluster = opened.get_or_init(|| Arc::new(cluster));
        Arc::clone(cluster) as Arc<dyn Servers>
    })?;
    let _ = data.gateway.set(Arc::downgrade(&gateway));
    let cluster = opened.into_inner();
    if let Some(cluster) = &cluster {
        cluster.note_applied(config.shared_revision);
        if let Some(node) = cluster.cluster() {
            gateway.results.share_with(Arc::new(Kept(node)));
        }
    }
    Ok((gateway, cluster))
}

/// Identifies this machine and state folder among those that use the name of this node.
fn find_home(state_dir: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    state_dir.hash(&mut hasher);
    processes::machine_id().hash(&mut hasher);
    hasher.finish()
}

/// Reads the secrets of the cluster, for a token.
pub(crate) async fn read_cluster_access(
    config: &Config,
    settings: &ClusterSettings,
) -> Result<ClusterAccess, Failure> {
    let secrets = gateway::resolver(&config.gateway.private_files());
    fill_in(settings, &secrets).await
}

fn read_access(settings: ClusterSettings, secrets: Arc<Resolver>) -> ReadAccess {
    let settings = Arc::new(settings);
    Box::new(move || {
        let (settings, secrets) = (Arc::clone(&settings), Arc::clone(&secrets));
        async move { fill_in(&settings, &secrets).await }.boxed()
    })
}

async fn fill_in(settings: &ClusterSettings, secrets: &Resolver) -> Result<ClusterAccess, Failure> {
    let templates: Vec<&Template> = settings.templates().collect();
    let variables = with_secrets(templates, &Variables::of_process(), Some(secrets)).await?;
    let fill = |template: &Template| {
        let filled = template.expand(|name| variables.get(name).map(str::to_owned));
        filled.map_err(|unset| Failure::new(format!("[cluster]: {unset}")))
    };
    let path = |template: &Template| fill(template).map(Into::into);
    let identity = settings.tls_identity.as_ref();
    let identity = identity.map(|(cert, key)| Ok((path(cert)?, path(key)?)));
    Ok(ClusterAccess {
        nats: settings.nats.iter().map(fill).collect::<Result<_, _>>()?,
        key: fill(&settings.key)?,
        credentials: settings.credentials.as_ref().map(fill).transpose()?,
        tls_ca: settings.tls_ca.as_ref().map(path).transpose()?,
        tls_identity: identity.transpose()?,
    })
}

/// The kept results and the audit log of this process.
#[derive(Debug)]
struct DataOfNode {
    /// Set when it is open. It has the servers of the node, so it is not owned here.
    gateway: OnceLock<Weak<Gateway>>,
    /// The folder of the audit log.
    audit: PathBuf,
}

impl DataOfNode {
    fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get()?.upgrade()
    }
}

impl OwnData for DataOfNode {
    fn read_kept(&self, handle: String) -> BoxFuture<'static, Option<Bytes>> {
        let gateway = self.gateway();
        async move { gateway?.results.read_file(&handle).await }.boxed()
    }

    fn log_head(&self) -> Option<LogHead> {
        let AuditHead { number, digest } = self.gateway()?.recorder.head()?;
        Some(LogHead { number, digest })
    }

    fn note_head(&self, node: &str, head: LogHead) {
        if let Some(gateway) = self.gateway() {
            let LogHead { number, digest } = head;
            gateway.recorder.record(Event::Head {
                at_ms: files::clock::now_ms(),
                node: node.to_owned(),
                head: AuditHead { number, digest },
            });
        }
    }

    fn find_head(&self, node: String) -> BoxFuture<'static, Option<LogHead>> {
        let audit = self.audit.clone();
        async move {
            let finding = spawn_blocking(move || telemetry::find_head(&audit, &node));
            let AuditHead { number, digest } = finding.await.ok()?.ok()??;
            Some(LogHead { number, digest })
        }
        .boxed()
    }
}

/// Kept results of all nodes.
#[derive(Debug)]
struct Kept(Arc<dyn ClusterNode>);

impl SharedResults for Kept {
    fn share(&self, handle: &str, content: Bytes) {
        self.0.share_result(handle, content);
    }

    fn fetch<'a>(&'a self, handle: &'a str) -> Fetching<'a> {
        self.0.fetch_result(handle)
    }
}

/// Writes each newer shared configuration to the state folder, and has it loaded. Runs until it is dropped.
pub(crate) async fn follow_shared(cluster: Arc<Cluster>, config: Config, nudge: Arc<Notify>) {
    let mut shared = cluster.shared();
    let mut known = config.shared_revision;
    loop {
        let newest = shared.borrow_and_update().clone();
        if let Some(newest) = newest.filter(|it| it.revision > known) {
            known = newest.revision;
            match write(&config.gateway.state_dir, &newest) {
                Ok(()) => {
                    info!(revision = known, "the shared configuration has changed");
                    nudge.notify_one();
                }
                Err(error) => warn!(%error, "the shared configuration was not stored"),
            }
        }
        if shared.changed().await.is_err() {
            return;
        }
    }
}

fn write(state_dir: &Path, shared: &SharedRecord) -> std::io::Result<()> {
    let path = config::shared_path(state_dir);
    if let Some(folder) = path.parent() {
        files::private_folder(folder).map_err(std::io::Error::other)?;
    }
    let node = printable::one_line_of(&shared.node, 60);
    let text = config::shared_text(shared.revision, &node, &shared.text);
    files::write_durable(&path, text.as_bytes())
}
