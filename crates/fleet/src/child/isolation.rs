//! Restricts a child's access to files and the network: by the kernel, or in a container.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use processes::{Pace, Spawner, own_program};
use tokio::{process::Command, time::timeout};
use tracing::warn;

use crate::{environment::find_program, error::Failure, limits::CONTAINER_REMOVAL_WAIT};

/// Programs that run containers, in the order in which they are searched for.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// Variables that those programs read to find their daemon; the child does not get them.
const OF_ENGINES: [&str; 5] = [
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "CONTAINER_HOST",
];

/// A [`crate::Sandbox`] with its variables filled in.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) network: bool,
    pub(super) write: Vec<PathBuf>,
}

impl Limits {
    pub(super) fn new(network: bool, write: Vec<String>) -> Result<Self, Failure> {
        let write: Vec<PathBuf> = write.into_iter().map(PathBuf::from).collect();
        let missing = write.iter().find(|it| !it.is_absolute() || !it.exists());
        if let Some(path) = missing {
            let why = format!("`sandbox.write`: there is no {}", path.display());
            return Err(Failure::new(why).hint("make the folder, or take it out of the list"));
        }
        Ok(Self { network, write })
    }

    /// Returns the command that starts `program` through a helper that drops all other permissions first.
    pub(super) fn confine(&self, program: &Path) -> Result<Command, Failure> {
        processes::sandbox::check().map_err(|error| {
            Failure::new(format!("`sandbox`: {error}"))
                .hint("run it in a container (`image = \"...\"`), or leave `sandbox` out")
        })?;
        let helper = own_program().ok_or_else(|| Failure::new("our own program is not found"))?;
        let mut command = Command::new(helper);
        command.arg("confine");
        if self.network {
            command.arg("--network");
        }
        for path in &self.write {
            command.arg("--write").arg(path);
        }
        command.arg("--").arg(program);
        Ok(command)
    }
}

/// A container that the child runs in. It is removed when the child is stopped; should we die
/// before, its stdin ends, and it goes with the child.
#[derive(Debug, Clone)]
pub(super) struct Container {
    spawner: Arc<Spawner>,
    engine: PathBuf,
    name: String,
    env: BTreeMap<String, String>,
}

impl Container {
    /// Creates a container with a unique name, run by the first engine found on this `PATH`.
    pub(super) fn new(
        server: &str,
        env: &BTreeMap<String, String>,
        spawner: Arc<Spawner>,
    ) -> Result<Self, Failure> {
        let engine = find_engine(env.get("PATH").map(String::as_str))?;
        let rest = getrandom::u64().map_err(|error| Failure::new(error.to_string()))?;
        let ours = OF_ENGINES.iter();
        let ours = ours.filter_map(|it| Some(((*it).to_owned(), std::env::var(it).ok()?)));
        Ok(Self {
            spawner,
            engine,
            name: format!("proxy-{server}-{rest:016x}"),
            env: env.clone().into_iter().chain(ours).collect(),
        })
    }

    /// The start of the container, to which the image and the command of the child are added. Values of
    /// variables are not on the command line, which everybody can read.
    pub(super) fn run(
        &self,
        limits: Option<&Limits>,
        folder: Option<&Path>,
        passed: &[String],
    ) -> Command {
        let mut command = self.engine_command();
        command.args(["run", "--rm", "--interactive", "--init"]);
        command.args(["--name", &self.name]);
        if let Some(limits) = limits {
            command.args(["--read-only", "--tmpfs", "/tmp"]);
            command.args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
            if !limits.network {
                command.args(["--network", "none"]);
            }
            for path in &limits.write {
                let path = path.display();
                command.arg("--volume").arg(format!("{path}:{path}"));
            }
        }
        if let Some(folder) = folder {
            command.arg("--workdir").arg(folder);
        }
        for name in passed {
            command.args(["--env", name]);
        }
        command
    }

    fn engine_command(&self) -> Command {
        let mut command = Command::new(&self.engine);
        command.env_clear().envs(&self.env);
        command
    }

    /// Removes the container if it still exists. If its child has exited, it does not.
    pub(super) async fn remove(&self) {
        let mut command = self.engine_command();
        command.args(["rm", "--force", &self.name]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let removed = async {
            let mut tree = self.spawner.spawn(command)?;
            let status = timeout(CONTAINER_REMOVAL_WAIT, tree.wait_for_exit()).await;
            tree.stop(Pace::Hurried).await;
            status?
        };
        if let Err(error) = removed.await {
            warn!(container = self.name, %error, "it may still be there");
        }
    }
}

pub(super) fn find_engine(path: Option<&str>) -> Result<PathBuf, Failure> {
    let found = |engine: &&str| find_program(engine, path, Path::new("/")).ok();
    ENGINES.iter().find_map(found).ok_or_else(|| {
        Failure::new("`image`: neither `docker` nor `podman` is found on its `PATH`")
            .hint("install Docker (https://docs.docker.com/get-started/get-docker) or Podman")
    })
}
