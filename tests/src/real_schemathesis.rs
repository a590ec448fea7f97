//! Schemathesis, which sends requests that it makes from `openapi.json`, and checks the answers.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use crate::{page::Tab, real::install};

const PACKAGES: [&str; 1] = ["schemathesis==4.32.5"];

/// The requests of each route; the seed makes them the same in every run.
const EXAMPLES: &str = "25";
const SEED: &str = "34";

/// The time for some thousand requests.
const DEADLINE: Duration = Duration::from_mins(5);

/// The checks, and the refusals that a schema cannot express.
const SETTINGS: &str = r#"
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "400", "403", "404", "409", "422"]
"#;

/// The folder with the installed package.
#[derive(Debug, Clone)]
pub struct Schemathesis(PathBuf);

impl Schemathesis {
    /// Installs it into `real-schemathesis` below Cargo's target folder, once. Panics as
    /// [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-schemathesis");
        install(&folder, &[], &PACKAGES);
        Self(folder)
    }

    /// Sends requests to every route of the API but two: the stream has no end, and the end of the session
    /// would end the test. Panics with the failures. `work` is a folder for its files.
    pub async fn check(&self, tab: &Tab, work: &Path) {
        fs::create_dir_all(work).expect("the folder is writable");
        fs::write(work.join("schemathesis.toml"), SETTINGS).expect("the folder is writable");
        let origin = format!("http://{}", tab.host);
        let mut program = Command::new(self.0.join("python/bin/schemathesis"));
        program
            .args(["--no-color", "run"])
            .arg(format!("{origin}/api/v1/openapi.json"))
            .args([
                "--checks",
                "all",
                "--max-examples",
                EXAMPLES,
                "--seed",
                SEED,
            ])
            .args(["--exclude-path", "/api/v1/live"])
            .args(["--exclude-path", "/api/v1/session"])
            .args(["--suppress-health-check", "all"])
            .args(["-H", &format!("Authorization: Bearer {}", tab.token())])
            .args(["-H", &format!("Origin: {origin}")])
            .args(["-H", "Sec-Fetch-Site: same-origin"])
            .current_dir(work)
            .kill_on_drop(true);
        let output = timeout(DEADLINE, program.output()).await;
        let output = output.expect("it ends").expect("it can be started");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
    }
}
