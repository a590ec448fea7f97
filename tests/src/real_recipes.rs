//! Recipes, written into a configuration and started as users start them: by `npx` and `uvx`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use recipes::{Auth, Distribution, Recipe, RecipeValues};
use serde_json::Value;
use tokio::time::timeout;

use crate::{house::House, real};

/// The package that provides `uvx`; `npx` comes with Node.js.
const UV: &str = "uv==0.13.9";

/// The timeout for the download and start of servers.
const START_SECONDS: u64 = 300;
/// The timeout for a group of servers.
const ASKING: Duration = Duration::from_mins(12);

/// Requirements of recipes without which a server does not even start.
const MUST_BE_THERE: [&str; 2] = ["a kubeconfig", "a running Docker"];

/// Prefixes of the environment variables for package registries, from which recipes are installed
/// too.
const OF_REGISTRIES: [&str; 4] = ["NPM_CONFIG_", "npm_config_", "UV_", "PIP_"];
const OF_NETWORK: [&str; 9] = [
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables that install packages without their browsers: listing tools needs none, and not every
/// machine can download them.
const NO_BROWSERS: [&str; 2] = [
    "PUPPETEER_SKIP_DOWNLOAD",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD",
];

/// The folder with `uvx`, and with the caches of `npx` and `uvx`.
#[derive(Debug, Clone)]
pub struct Starters(PathBuf);

impl Starters {
    /// Installs `uv` into `recipes` below Cargo's target folder, once.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("recipes");
        real::install(&folder, &[], &[UV]);
        Self(folder)
    }

    /// Surveys these servers through the proxy: returns the number of tools of each, or the reason
    /// of its failure. A failed server is retried once, because package registries fail too.
    pub async fn ask(
        &self,
        house: &House,
        recipes: &[&Recipe],
    ) -> BTreeMap<String, Result<u64, String>> {
        let tables: Vec<String> = recipes.iter().map(|it| table(house, it)).collect();
        house.configure(&tables.join("\n"));
        let mut answers = self.reindex(house, &[]).await;
        let failed = answers.iter().filter(|(_, answer)| answer.is_err());
        let failed: Vec<String> = failed.map(|(name, _)| name.clone()).collect();
        if !failed.is_empty() {
            answers.extend(self.reindex(house, &failed).await);
        }
        answers
    }

    async fn reindex(
        &self,
        house: &House,
        names: &[String],
    ) -> BTreeMap<String, Result<u64, String>> {
        let mut command = house.command(["reindex", "--json"]);
        command.args(names).envs(self.environment());
        let output = timeout(ASKING, command.kill_on_drop(true).output()).await;
        let output = output.expect("the servers start in time");
        let output = output.expect("the proxy can be started");
        let told: Value = serde_json::from_slice(&output.stdout).expect("`--json` prints JSON");
        let servers = told["servers"].as_array().cloned().unwrap_or_default();
        let answers = servers.iter().map(|server| {
            let answer = match server["failure"].as_str() {
                Some(why) => Err(why.to_owned()),
                None => Ok(server["tools"].as_u64().unwrap_or_default()),
            };
            let name = server["server"].as_str().unwrap_or_default();
            (name.to_owned(), answer)
        });
        answers.collect()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let of_machine = std::env::vars().filter(|(name, _)| {
            OF_REGISTRIES.iter().any(|prefix| name.starts_with(prefix))
                || OF_NETWORK.contains(&name.as_str())
        });
        let mut environment: BTreeMap<String, String> = of_machine.collect();
        let mut set = |name: &str, value: String| {
            environment.entry(name.to_owned()).or_insert(value);
        };
        let path = |name: &str| self.0.join(name).display().to_string();
        set("NPM_CONFIG_CACHE", path("npm-cache"));
        set("UV_CACHE_DIR", path("uv-cache"));
        set("UV_PYTHON_DOWNLOADS", "never".to_owned());
        if let Some(home) = std::env::home_dir() {
            set(
                "NPM_CONFIG_USERCONFIG",
                home.join(".npmrc").display().to_string(),
            );
        }
        if let Some(index) = self.index_of_pip() {
            set("UV_DEFAULT_INDEX", index);
        }
        for name in NO_BROWSERS {
            environment.insert(name.to_owned(), "1".to_owned());
        }
        let found = std::env::var("PATH").unwrap_or_default();
        environment.insert("PATH".to_owned(), format!("{}:{found}", path("python/bin")));
        environment
    }

    /// Returns the index that pip is configured with: uv reads no settings of pip.
    fn index_of_pip(&self) -> Option<String> {
        let mut pip = Command::new(self.0.join("python/bin/pip"));
        let output = pip.args(["config", "get", "global.index-url"]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        let index = String::from_utf8(output.stdout).ok()?;
        Some(index.trim().to_owned()).filter(|index| !index.is_empty())
    }
}

/// Returns the server's table as given by its recipe.
fn table(house: &House, recipe: &Recipe) -> String {
    let folder = house.path("open");
    std::fs::create_dir_all(&folder).expect("the test folder is writable");
    let value = |name: &str| match name {
        "DIR" => folder.display().to_string(),
        name => house.path(name).display().to_string(),
    };
    let parameters = recipe.missing(&BTreeMap::new());
    let parameters = parameters.iter().map(|it| it.name.as_str());
    let given = RecipeValues {
        parameters: parameters
            .map(|name| (name.to_owned(), value(name)))
            .collect(),
        ..RecipeValues::default()
    };
    let mut entry = recipe.entry(&given).expect("every parameter has a value");
    entry.start_timeout_s = Some(START_SECONDS);
    let mut table = toml::Table::try_from(entry).expect("an entry is a table");
    let inherited = OF_REGISTRIES.map(|prefix| format!("{prefix}*")).into_iter();
    let inherited = inherited.chain(NO_BROWSERS.map(str::to_owned));
    let inherited: Vec<toml::Value> = inherited.map(toml::Value::String).collect();
    table.insert("inherit_env".to_owned(), inherited.into());
    let servers = BTreeMap::from([(recipe.name(), table)]);
    toml::to_string(&BTreeMap::from([("servers", servers)])).expect("a table is TOML")
}

/// Returns the recipes that need only Node.js and Python: no key, no login, no other machine, and
/// no newer runtime than the installed one.
pub fn startable() -> Vec<&'static Recipe> {
    let node = version_of("node");
    let python = version_of("python3");
    let can_start = |recipe: &&Recipe| {
        let is_open = matches!(recipe.auth, Auth::None | Auth::Env);
        let (range, version) = match recipe.kind {
            Distribution::Npm => (&recipe.node, &node),
            Distribution::PyPi => (&recipe.python, &python),
            Distribution::Docker | Distribution::Remote => return false,
        };
        let range = range.as_deref().unwrap_or(">=0");
        let fits = recipes::fits(version, range) == Some(true);
        let needs_more = recipe
            .needs
            .iter()
            .any(|it| MUST_BE_THERE.contains(&it.as_str()));
        is_open
            && fits
            && !needs_more
            && recipe.required().next().is_none()
            && recipe.not_started.is_none()
    };
    recipes::all().iter().filter(can_start).collect()
}

fn version_of(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("`{program}` is missing: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .rsplit(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}
