//! A folder with a configuration and a state made by `proxy reindex`, and the commands to start the
//! measured programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use journeys::nats::KEY;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    catalog::{BenchCatalog, catalogs},
    peer::Peer,
};

/// The server of the called tools.
pub(crate) const CALLED: &str = "direct";

/// The size that the proxy gives its own pipes, so that a server called directly has the same.
const PIPE_BYTES: &str = "1048576";

#[derive(Debug)]
pub(crate) struct House {
    folder: TempDir,
    proxy: PathBuf,
    servers: Vec<String>,
    /// The duration of `reindex`.
    pub(crate) reindexed_in: Duration,
}

impl House {
    /// Creates a house of generated tools, and the server to call.
    pub(crate) fn with_tools(proxy: &Path, servers: usize, tools: usize) -> Self {
        let mut all = catalogs(servers, tools);
        all.push(called());
        Self::new(proxy, &all)
    }

    pub(crate) fn new(proxy: &Path, catalogs: &[BenchCatalog]) -> Self {
        let folder = tempfile::Builder::new().prefix("proxy-bench-").tempdir();
        let mut house = Self {
            folder: folder.expect("a temporary folder can be created"),
            proxy: proxy.to_owned(),
            servers: catalogs.iter().map(|it| it.server.clone()).collect(),
            reindexed_in: Duration::ZERO,
        };
        for catalog in catalogs {
            let list = json!({"tools": catalog.tools}).to_string();
            house.write(&catalog_file(&catalog.server), &list);
        }
        house.configure(|house, server| {
            let catalog = house.path(&catalog_file(server));
            vec!["--catalog".to_owned(), catalog.display().to_string()]
        });
        if !catalogs.is_empty() {
            house.reindexed_in = house.reindex();
        }
        house
    }

    /// Creates a node of a cluster, with a server `near` on node `a` and a server `far` on node `b`. Its daemon
    /// runs until `stop_daemon`.
    pub(crate) fn of_node(proxy: &Path, node: &str, nats: &str) -> Self {
        let house = Self::new(proxy, &[called()]);
        let (command, list) = (
            json!(env!("CARGO_BIN_EXE_direct-server")),
            json!(house.path(&catalog_file(CALLED))),
        );
        let server = |(name, on)| {
            format!(
                "[servers.{name}]\ncommand = {command}\nargs = [\"--catalog\", {list}]\non = \"{on}\"\n"
            )
        };
        let servers = [("near", "a"), ("far", "b")].map(server).concat();
        house.append(&format!(
            "[cluster]\nnode = \"{node}\"\nnats = {nats}\nkey = \"{KEY}\"\n{servers}"
        ));
        let output = house.command(&["daemon", "start"]).output();
        output.expect("the proxy can be started");
        house
    }

    /// Makes every server that is started from now on hang.
    pub(crate) fn let_servers_hang(&self) {
        self.configure(|house, _| vec!["--hang".to_owned(), house.started().display().to_string()]);
    }

    /// Returns true if a hanging server was started.
    pub(crate) fn has_started_one(&self) -> bool {
        self.started().exists()
    }

    pub(crate) fn servers(&self) -> &[String] {
        &self.servers
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn serve(&self) -> Peer {
        Peer::ready(&mut self.serve_command())
    }

    pub(crate) fn serve_command(&self) -> Command {
        self.command(&["serve", "--standalone"])
    }

    /// Returns the command `serve`, as a client starts it.
    pub(crate) fn serve_with_daemon(&self) -> Command {
        self.command(&["serve"])
    }

    pub(crate) fn serve_over_http(&self) -> Command {
        self.command(&["serve", "--http", "127.0.0.1:0"])
    }

    /// Appends to the configuration.
    pub(crate) fn append(&self, tables: &str) {
        let config =
            fs::read_to_string(self.path("config.toml")).expect("the configuration was written");
        self.write("config.toml", &format!("{config}{tables}"));
    }

    /// Stops the daemon, if there is one, and waits until it has ended.
    pub(crate) fn stop_daemon(&self) {
        let output = self.command(&["daemon", "stop"]).output();
        output.expect("the proxy can be started");
    }

    /// Returns the process id of the running daemon.
    pub(crate) fn daemon_pid(&self) -> u32 {
        let output = self.command(&["status", "--json"]).output();
        let output = output.expect("the proxy can be started");
        let status: Value = serde_json::from_slice(&output.stdout).expect("the status is JSON");
        let pid = status["daemons"][0]["pid"].as_u64();
        pid.and_then(|pid| u32::try_from(pid).ok())
            .expect("a daemon runs")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.proxy);
        command.args(args).env_clear();
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("PROXY_CONFIG", self.path("config.toml"));
        command.env("HOME", self.folder.path());
        command
    }

    fn reindex(&self) -> Duration {
        let began = Instant::now();
        let output = self.command(&["reindex"]).output();
        let output = output.expect("the proxy can be started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "reindex: {stderr}");
        began.elapsed()
    }

    fn configure(&self, args: impl Fn(&Self, &str) -> Vec<String>) {
        let mut config = format!("state_dir = {}\n", json!(self.state()));
        for server in &self.servers {
            let args = json!(args(self, server));
            let command = json!(env!("CARGO_BIN_EXE_direct-server"));
            config += &format!("[servers.{server}]\ncommand = {command}\nargs = {args}\n");
        }
        self.write("config.toml", &config);
    }

    fn started(&self) -> PathBuf {
        self.path("started")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the test folder is writable");
    }
}

/// Starts the server itself, without the proxy.
pub(crate) fn direct() -> Peer {
    Peer::ready(&mut direct_command())
}

/// The server behind this many processes that only pass bytes on.
pub(crate) fn direct_behind(hops: u32) -> Peer {
    Peer::ready(direct_command().args(["--hops", &hops.to_string()]))
}

pub(crate) fn direct_command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_direct-server"));
    command.env_clear().args(["--pipe", PIPE_BYTES]);
    command
}

/// Returns the catalogue of the called server; a tool is named after its response.
fn called() -> BenchCatalog {
    let names = [
        "text_100",
        "text_2000",
        "text_10000",
        "text_120000",
        "text_1000000",
        "same_120000",
        "structured_120000",
    ];
    let tool = |name| {
        json!({"name": name, "description": "Answers with so many bytes.",
            "inputSchema": {"type": "object", "properties": {}}})
    };
    BenchCatalog {
        server: CALLED.to_owned(),
        tools: names.into_iter().map(tool).collect(),
    }
}

fn catalog_file(server: &str) -> String {
    format!("{server}.json")
}
