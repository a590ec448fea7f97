//! Third-party MCP servers, at pinned versions, installed once by the first test that needs them.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::house::{Program, program};

const NPM_PACKAGES: [&str; 4] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
];
const PYTHON_PACKAGES: [&str; 2] = ["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];

/// The file that is written last: a folder is installed again if this file is missing or has other
/// content.
const MARKER: &str = "complete";

/// The folder with the installed servers.
#[derive(Debug, Clone)]
pub struct RealServers(PathBuf);

impl RealServers {
    /// Installs missing packages into `real-servers` below Cargo's target folder; concurrent tests
    /// and processes wait.
    ///
    /// # Panics
    ///
    /// Without npm or Python; the message names the missing program. `install` documents how to
    /// leave such tests out.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-servers");
        install(&folder, &NPM_PACKAGES, &PYTHON_PACKAGES);
        Self(folder)
    }

    /// Returns the reference server with every feature.
    pub fn everything(&self) -> Program {
        self.node("everything", "mcp-server-everything", &["stdio"])
    }

    /// Returns the same server started by `npx`, as in most configurations: the server is then a
    /// grandchild of the proxy.
    pub fn everything_by_npx(&self) -> Program {
        // In its installation folder, npx finds the package there and asks no registry.
        let folder = self.0.join("npm").display().to_string();
        program("npx", "npx", ["-y", NPM_PACKAGES[0], "stdio"])
            .env("NPM_CONFIG_UPDATE_NOTIFIER", "false")
            .setting(&format!("cwd = {folder:?}"))
    }

    /// Returns the same server with the streamable HTTP transport, on this loopback port.
    pub fn everything_over_http(&self, port: u16) -> Program {
        self.node("everything", "mcp-server-everything", &["streamableHttp"])
            .env("PORT", port.to_string())
    }

    /// Returns the reference server that may read and write in this folder.
    pub fn filesystem(&self, folder: &Path) -> Program {
        self.node(
            "filesystem",
            "mcp-server-filesystem",
            &[&folder.display().to_string()],
        )
    }

    /// Returns the reference server that stores its memory in this file.
    pub fn memory(&self, file: &Path) -> Program {
        self.node("memory", "mcp-server-memory", &[])
            .env("MEMORY_FILE_PATH", file.display().to_string())
    }

    /// Returns the reference server for sequential thinking.
    pub fn sequential_thinking(&self) -> Program {
        self.node("sequential-thinking", "mcp-server-sequential-thinking", &[])
    }

    /// Returns the reference server for the time.
    pub fn time(&self) -> Program {
        self.python("time", "mcp-server-time", &["--local-timezone", "UTC"])
    }

    /// Returns the reference server for the git repository in this folder.
    pub fn git(&self, folder: &Path) -> Program {
        self.python(
            "git",
            "mcp-server-git",
            &["--repository", &folder.display().to_string()],
        )
    }

    fn node(&self, name: &str, script: &str, args: &[&str]) -> Program {
        let script = self.0.join("npm/node_modules/.bin").join(script);
        program(name, script.display().to_string(), args.iter().copied())
    }

    fn python(&self, name: &str, script: &str, args: &[&str]) -> Program {
        let script = self.0.join("python/bin").join(script);
        program(name, script.display().to_string(), args.iter().copied())
    }
}

enum Missing {
    /// A program that a person must install.
    Program(String),
    /// The installation itself failed.
    Package(String),
}

/// Creates the folder again unless exactly these packages are in it.
///
/// A test that needs them has `#[cfg_attr(offline, ignore = "calls real programs")]`. `build.rs`
/// sets `offline` if `PROXY_TESTS_OFFLINE=1` is set: the test is then counted as ignored, and never
/// passes without having run.
#[track_caller]
pub(crate) fn install(folder: &Path, npm: &[&str], python: &[&str]) {
    fs::create_dir_all(folder).expect("the target folder is writable");
    let lock = File::create(folder.join("lock")).expect("the target folder is writable");
    lock.lock().expect("the lock can be taken");
    let done = install_all(folder, npm, python);
    drop(lock);
    match done {
        Ok(()) => {}
        Err(Missing::Program(why)) => {
            panic!("{why}, or set PROXY_TESTS_OFFLINE=1 to leave out the tests that need it")
        }
        Err(Missing::Package(why)) => panic!("{why}"),
    }
}

fn install_all(folder: &Path, npm: &[&str], python: &[&str]) -> Result<(), Missing> {
    let wanted = [npm, python].concat().join("\n");
    let marker = folder.join(MARKER);
    if fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if !npm.is_empty() {
        need("npm", "Node.js 20 or newer with npm")?;
    }
    if !python.is_empty() {
        need("python3", "Python 3.10 or newer with venv")?;
    }
    say("installing real programs into the target folder, once");
    for part in ["npm", "python"] {
        drop(fs::remove_dir_all(folder.join(part)));
    }
    if !npm.is_empty() {
        install_node(&folder.join("npm"), npm)?;
    }
    if !python.is_empty() {
        install_python(&folder.join("python"), python)?;
    }
    fs::write(marker, wanted).map_err(|error| Missing::Package(error.to_string()))
}

fn need(command: &str, package: &str) -> Result<(), Missing> {
    match Command::new(command).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Missing::Program(format!(
            "`{command}` is missing: install {package}"
        ))),
    }
}

fn install_node(folder: &Path, packages: &[&str]) -> Result<(), Missing> {
    fs::create_dir_all(folder).map_err(|error| Missing::Package(error.to_string()))?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ]);
    run(npm.arg(folder).args(packages))
}

fn install_python(folder: &Path, packages: &[&str]) -> Result<(), Missing> {
    let mut venv = Command::new("python3");
    if let Err(Missing::Package(why)) = run(venv.args(["-m", "venv"]).arg(folder)) {
        let why = format!("no virtual environment: install Python's venv module\n{why}");
        return Err(Missing::Program(why));
    }
    let mut pip = Command::new(folder.join("bin/pip"));
    run(pip
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(packages))
}

fn run(command: &mut Command) -> Result<(), Missing> {
    let output = command
        .output()
        .map_err(|error| Missing::Package(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Missing::Package(format!("{command:?} failed:\n{stderr}")))
}

/// Writes to the terminal directly, because `eprintln!` is shown only if the test fails.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "\n*** {text} ***\n"));
}
