//! A house for one journey: a folder with configuration and state, the servers in it, the proxy in
//! front of them, and the final check that no process is left.

mod record;
mod server;
mod state;

use std::{
    cell::Cell,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

pub use server::{Fake, Program, Server, fake, program};

use crate::{
    client::{Client, DEADLINE},
    fake::LEGACY_VERSION,
    processes::{self, HOUSE_VARIABLE},
};

/// Paths of our programs in Cargo's target folder; Cargo passes them only to a test of this
/// package.
#[derive(Debug, Clone)]
pub struct Programs {
    pub proxy: PathBuf,
    pub fake_server: PathBuf,
}

/// A folder of one journey, with its proxy.
#[derive(Debug)]
pub struct House {
    folder: TempDir,
    programs: Programs,
    clients: Mutex<Vec<Client>>,
    understands: bool,
    /// True if its sessions share a daemon; otherwise each runs standalone.
    has_daemon: bool,
}

thread_local! {
    static THROUGH_DAEMON: Cell<bool> = const { Cell::new(false) };
}

/// Plays a journey with houses whose sessions share a daemon.
pub fn through_daemon(journey: impl FnOnce()) {
    /// Resets the flag even if the journey panics: the thread may play another one.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            THROUGH_DAEMON.set(false);
        }
    }
    let _reset = Reset;
    THROUGH_DAEMON.set(true);
    journey();
}

/// The output of a command, and its exit code.
#[derive(Debug, Clone)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// None if a signal ended the command.
    pub code: Option<i32>,
}

impl Output {
    /// Returns standard output; fails the test if the exit code differs from this one.
    #[track_caller]
    pub fn ended(&self, code: i32) -> &str {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        &self.stdout
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON on stdout ({error}):\n{}", self.stdout))
    }
}

impl House {
    /// Creates a house whose configuration has these servers.
    pub fn new<S: Into<Server>>(programs: &Programs, servers: impl IntoIterator<Item = S>) -> Self {
        let house = Self::without_config(programs);
        let tables = servers.into_iter().map(|server| house.table(server.into()));
        let config = tables.collect::<Vec<_>>().join("\n");
        house.configure(&config);
        house
    }

    /// Creates a house without a configuration file.
    pub fn without_config(programs: &Programs) -> Self {
        let folder = tempfile::Builder::new().prefix("proxy-house-").tempdir();
        let folder = folder.expect("a temporary folder can be created");
        fs::create_dir(folder.path().join("run")).expect("the test folder is writable");
        Self {
            folder,
            programs: programs.clone(),
            clients: Mutex::default(),
            understands: false,
            has_daemon: THROUGH_DAEMON.get(),
        }
    }

    /// Makes its sessions share a daemon.
    #[must_use]
    pub fn with_daemon(mut self) -> Self {
        self.has_daemon = true;
        self
    }

    /// Returns true if its sessions share a daemon.
    pub fn has_daemon(&self) -> bool {
        self.has_daemon
    }

    /// Replaces the whole configuration.
    pub fn configure(&self, toml: &str) {
        // A program that reads meanwhile finds the former file or the new one, never an empty one.
        let path = self.write("config.toml.new", toml);
        fs::rename(path, self.config()).expect("the test folder is writable");
    }

    /// Adds to the configuration.
    pub fn configure_more(&self, toml: &str) {
        let before = fs::read_to_string(self.config()).unwrap_or_default();
        self.configure(&format!("{before}\n{toml}"));
    }

    fn table(&self, server: Server) -> String {
        server.into_table(self.folder.path(), &self.programs.fake_server)
    }

    /// Adds a server to the configuration.
    pub fn add(&self, server: impl Into<Server>) {
        let table = self.table(server.into());
        self.configure_more(&table);
    }

    /// Replaces the script of a configured fake server.
    pub fn rewrite(&self, fake: Fake) {
        self.table(fake.into());
    }

    /// Returns the path of a file in the house.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of the configuration.
    pub fn config(&self) -> PathBuf {
        self.path("config.toml")
    }

    /// Writes a file in the house.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("the test folder is writable");
        path
    }

    /// Creates a git repository with one commit and a clean work tree.
    pub fn repository(&self) -> PathBuf {
        let folder = self.path("repository");
        let git = |args: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
                .args(args);
            git.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1");
            let output = git.output().expect("`git` is on PATH");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        let at = folder.display().to_string();
        git(&["init", "--quiet", "--initial-branch=master", &at]);
        git(&[
            "-C",
            &at,
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            "Begin",
        ]);
        folder
    }

    /// Starts `serve` and performs the legacy handshake, as most clients do today.
    pub async fn client(&self) -> Client {
        let client = self.serve();
        client.initialize(LEGACY_VERSION).await;
        client
    }

    /// Starts `serve` for a client of the modern era.
    pub async fn modern_client(&self) -> Client {
        let client = self.serve();
        client.discover().await;
        client
    }

    /// Starts `serve`; the test sends the first message.
    pub fn serve(&self) -> Client {
        self.serve_from(self.folder.path())
    }

    /// Starts `serve` in another working directory.
    pub fn serve_from(&self, folder: &Path) -> Client {
        let args: &[&str] = if self.has_daemon {
            &["serve"]
        } else {
            &["serve", "--standalone"]
        };
        let mut command = self.command(args);
        command.current_dir(folder);
        self.keep(Client::start(command))
    }

    /// Registers a client that is stopped with the house.
    pub fn keep(&self, client: Client) -> Client {
        let mut clients = self.clients.lock();
        clients.push(client.clone());
        client
    }

    /// Runs a command until it exits, standalone if the house has no daemon.
    pub async fn cli<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let mut args: Vec<OsString> = args.collect();
        let asks = |arg: &OsString| {
            ["search", "describe", "call", "run"]
                .iter()
                .any(|verb| arg == verb)
        };
        let is_said = args.iter().any(|arg| arg == "--standalone");
        if let (false, Some(verb)) = (self.has_daemon || is_said, args.iter().position(asks)) {
            args.insert(verb + 1, "--standalone".into());
        }
        Self::run(self.command(args)).await
    }

    /// Runs a command until it exits.
    pub async fn run(mut command: Command) -> Output {
        let output = timeout(DEADLINE, command.kill_on_drop(true).output());
        let output = output.await.expect("the command exits");
        let output = output.expect("the proxy can be started");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("stdout is UTF-8");
        Output {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }

    /// Returns the command of the proxy with these arguments, this configuration and an isolated
    /// environment.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        self.command_of(&self.programs.proxy, args)
    }

    /// Returns the same command of another build of this version: a copy of the program, whose file is newer.
    pub fn newer_command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let newer = self.path("newer");
        if !newer.exists() {
            fs::copy(&self.programs.proxy, &newer).expect("the test folder is writable");
        }
        self.command_of(&newer, args)
    }

    fn command_of<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("xdg-config"))
            .env("XDG_STATE_HOME", self.path("xdg-state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("PROXY_CONFIG", self.config())
            .env(HOUSE_VARIABLE, self.folder.path())
            .stdin(std::process::Stdio::null())
            .current_dir(self.folder.path());
        if !self.understands {
            command.env("PROXY_SEARCH__SEMANTIC", "off");
        }
        command
    }

    /// Enables embeddings, as in the default configuration. Embeddings cost time for each tool, and
    /// most journeys do not search by meaning.
    #[must_use]
    pub fn understanding(mut self) -> Self {
        self.understands = true;
        self
    }

    /// Returns the status of the daemon; null if none runs.
    pub async fn status(&self) -> Value {
        let status = self.cli(["status", "--json"]).await.json();
        status.pointer("/daemons/0").cloned().unwrap_or_default()
    }

    /// Waits for the daemon and returns its process id.
    pub async fn daemon(&self) -> u32 {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        let found = timeout(DEADLINE, async {
            loop {
                looks.tick().await;
                if let Some(pid) = self.status().await["pid"].as_u64() {
                    return u32::try_from(pid).expect("a process id fits");
                }
            }
        });
        found.await.expect("a daemon runs")
    }

    /// Stops every session and proves that no process of this house is left and that every session
    /// wrote only messages to its output.
    pub async fn stops_clean(self) {
        let clients = std::mem::take(&mut *self.clients.lock());
        for client in clients {
            client.close().await;
            let strays = client.strays();
            assert!(
                strays.is_empty(),
                "responses without a request: {strays:#?}"
            );
            let garbage = client.garbage();
            assert!(
                garbage.is_empty(),
                "not a message on standard output: {garbage:#?}"
            );
        }
        if self.has_daemon {
            self.cli(["daemon", "stop"]).await;
        }
        if let Err(left) = self.all_gone().await {
            panic!("still running: {left:#?}");
        }
    }

    /// Waits until no process of this house is left; the error contains the remaining ones.
    pub async fn all_gone(&self) -> Result<(), Vec<processes::Process>> {
        processes::all_gone(&self.marker()).await
    }

    /// Returns the processes of this house, including the proxies.
    pub fn processes(&self) -> Vec<processes::Process> {
        processes::marked(&self.marker())
    }

    fn marker(&self) -> String {
        self.folder.path().display().to_string()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        processes::kill_marked(&self.marker());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_daemon() -> bool {
        let programs = Programs {
            proxy: PathBuf::new(),
            fake_server: PathBuf::new(),
        };
        House::without_config(&programs).has_daemon
    }

    #[test]
    fn a_journey_through_the_daemon_that_fails_leaves_the_thread_as_it_was() {
        let failed = std::panic::catch_unwind(|| {
            through_daemon(|| {
                assert!(has_daemon());
                panic!("an intended panic");
            });
        });
        assert!(failed.is_err());
        assert!(!has_daemon());
    }
}
