//! The scripts of `tests/web`, which visit the web page in a real browser, and their packages at pinned
//! versions, installed once by the first test that needs them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{process::Command, time::timeout};

use crate::{processes::HOUSE_VARIABLE, real::install};

/// The packages with their versions, also for a person who works on the page.
const PACKAGES: &str = include_str!("../web/package.json");

/// The browser that the scripts start.
const BROWSER: &str = "/usr/bin/chromium";

/// A visit opens some forty pages, each four times, and waits for axe.
const VISIT_DEADLINE: Duration = Duration::from_mins(9);

/// The folder with the installed packages.
#[derive(Debug, Clone)]
pub struct RealPage(PathBuf);

impl RealPage {
    /// Installs missing packages into `real-page` below Cargo's target folder; concurrent tests and
    /// processes wait. Panics as [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-page");
        let file: Value = serde_json::from_str(PACKAGES).expect("package.json is JSON");
        let packages = file["dependencies"].as_object().into_iter().flatten();
        let packages = packages.map(|(name, version)| {
            let version = version.as_str().expect("a version is text");
            format!("{name}@{version}")
        });
        let packages: Vec<String> = packages.collect();
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        install(&folder, &packages, &[]);
        Self(folder)
    }

    /// Checks types, vendored packages and sizes of the files in this folder. Panics with the findings.
    pub async fn check_files(&self, assets: &Path) {
        self.run("check.mjs", assets, &[]).await;
    }

    /// Visits the page of this program as a person does; servers and clients run in the folder `web`
    /// of this house. Panics with the failures.
    pub async fn visit(&self, proxy: &Path, house: &Path) {
        install_browser();
        let variables = [("PROXY", proxy), (HOUSE_VARIABLE, house)];
        self.run("journey.mjs", &house.join("web"), &variables)
            .await;
    }

    async fn run(&self, script: &str, argument: &Path, variables: &[(&str, &Path)]) {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut node = Command::new("node");
        node.arg(scripts.join(script)).arg(argument);
        node.envs(variables.iter().copied());
        node.current_dir(self.0.join("npm")).kill_on_drop(true);
        let output = timeout(VISIT_DEADLINE, node.output()).await;
        let output = output.expect("the script ends");
        let output = output.expect("node can be started");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "{script}:\n{said}");
    }
}

/// Installs Debian's Chromium if it is missing. Panics if that is not possible here.
pub(crate) fn install_browser() {
    // Two tests need it, and a second `apt-get` fails while the first runs.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _turn = INSTALLING.lock();
    let is_there = || Path::new(BROWSER).exists();
    if is_there() {
        return;
    }
    let script = "apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium";
    let mut apt = std::process::Command::new("sh");
    apt.args(["-c", script])
        .env("DEBIAN_FRONTEND", "noninteractive");
    let output = apt.output().expect("sh can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        is_there(),
        "{BROWSER} is missing; on Debian, as root: apt-get install chromium\n{said}"
    );
}
