//! The sample apps of `ext-apps` (SEP-1865), a host for them in a real browser, and a server of the official SDK with skills, at
//! pinned versions, installed once by the first test that needs them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use crate::{
    house::{Program, program},
    real::install,
    real_page::install_browser,
};

/// The servers, by their names in the configuration, and their packages.
const SERVERS: [(&str, &str); 12] = [
    ("vanillajs", "server-basic-vanillajs"),
    ("react", "server-basic-react"),
    ("budget", "server-budget-allocator"),
    ("cohort", "server-cohort-heatmap"),
    ("customers", "server-customer-segmentation"),
    ("scenario", "server-scenario-modeler"),
    ("monitor", "server-system-monitor"),
    ("threejs", "server-threejs"),
    ("shadertoy", "server-shadertoy"),
    ("sheet", "server-sheet-music"),
    ("transcript", "server-transcript"),
    ("debug", "server-debug"),
];

const SAMPLES: &str = "2.0.3";

const HOST_PACKAGES: [&str; 7] = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/core@2.4.0",
    "@modelcontextprotocol/ext-apps@2.0.4",
    "@modelcontextprotocol/server@2.4.0",
    "esbuild@0.28.2",
    "playwright-core@1.65.1",
    "zod@4.2.0",
];

/// Every app is shown, and some wait for what they draw.
const DEADLINE: Duration = Duration::from_mins(5);

/// The folder with the installed packages.
#[derive(Debug, Clone)]
pub struct RealApps(PathBuf);

impl RealApps {
    /// Installs missing packages into `real-apps` below Cargo's target folder; concurrent tests and
    /// processes wait. Panics as [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-apps");
        let samples = SERVERS.map(|(_, it)| format!("@modelcontextprotocol/{it}@{SAMPLES}"));
        let packages = samples.iter().map(String::as_str).chain(HOST_PACKAGES);
        install(&folder, &packages.collect::<Vec<_>>(), &[]);
        Self(folder.join("npm"))
    }

    /// Returns a server of the official SDK with a skill.
    pub fn skills(&self, name: &str) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/skills.mjs");
        let folder = format!("cwd = {:?}", self.0.display().to_string());
        program(name, "node", [&script.display().to_string(), name]).setting(&folder)
    }

    /// Returns the sample servers, a hostile one, and one that may reach the canary at this port.
    pub fn servers(&self, canary_port: u16) -> Vec<Program> {
        let packages = self.0.join("node_modules/@modelcontextprotocol");
        let samples = SERVERS.iter().map(|(name, package)| {
            let script = packages.join(package).join("dist/index.js");
            program(name, "node", [&script.display().to_string(), "--stdio"])
        });
        let canary = format!("http://127.0.0.1:{canary_port}");
        let trap = scripts().join("trap.mjs").display().to_string();
        let traps = [("trap", "none"), ("greedy", canary.as_str())];
        let traps =
            traps.map(|(name, domain)| program(name, "node", [&trap, name, &canary, domain]));
        samples.chain(traps).collect()
    }

    /// Shows the apps to a person in a browser. `mode` is one of `clients/sdk.mjs`, `which` is `all` or
    /// `few`, `server` a command or an address. Panics with the failures.
    pub async fn show(&self, mode: &str, which: &str, server: &[String], variables: &[String]) {
        install_browser();
        let mut node = Command::new("node");
        node.arg(scripts().join("driver.mjs")).args([mode, which]);
        node.args(server).current_dir(&self.0).kill_on_drop(true);
        node.envs(variables.iter().filter_map(|it| it.split_once('=')));
        let output = timeout(DEADLINE, node.output()).await;
        let output = output
            .expect("the driver ends")
            .expect("node can be started");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "{mode} {which}:\n{said}");
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("apps")
}
