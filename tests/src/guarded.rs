//! An MCP server that requires a login, and its authorization server: the official TypeScript SDK
//! and `oidc-provider`, at pinned versions, installed once by the first test that needs them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::{
    client::DEADLINE,
    house::House,
    real::install,
    real_clients::{NODE, NODE_PACKAGE},
};

const NPM_PACKAGES: [&str; 3] = [
    NODE_PACKAGE,
    "oidc-provider@9.13.3",
    "@modelcontextprotocol/sdk@1.32.2",
];

/// The folder with the installed packages.
#[derive(Debug, Clone)]
pub struct RealAuth(PathBuf);

/// A running MCP server that requires a login. Dropping the value stops the server.
#[derive(Debug)]
pub struct Guarded {
    /// The MCP server.
    pub url: String,
    /// The authorization server.
    pub issuer: String,
    control: String,
    child: Child,
}

/// The id and secret of the machine client, which is registered in advance.
pub const MACHINE: (&str, &str) = ("machine", "machine-secret-5f1e9c0b7a");

impl RealAuth {
    /// Installs missing packages into `real-auth` below Cargo's target folder; concurrent tests and
    /// processes wait. Panics as [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-auth");
        install(&folder, &NPM_PACKAGES, &[]);
        Self(folder)
    }

    /// Starts a server with this token lifetime and a clock that is this far ahead.
    pub async fn start(&self, token_seconds: u32, clock_ahead_seconds: i32) -> Guarded {
        let mut node = Command::new(self.node());
        node.current_dir(self.0.join("npm"))
            .arg(script("guarded.mjs"))
            .args([&token_seconds.to_string(), MACHINE.0])
            .env("CLOCK_AHEAD_S", clock_ahead_seconds.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = node.spawn().expect("Node.js can be started");
        let output = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(output).lines();
        let line = timeout(DEADLINE, lines.next_line()).await;
        let line = line
            .expect("the server starts in time")
            .expect("the server prints UTF-8");
        let told: Value =
            serde_json::from_str(&line.unwrap_or_default()).expect("the server prints JSON");
        let text = |key: &str| told[key].as_str().expect("a string").to_owned();
        Guarded {
            url: text("url"),
            issuer: text("issuer"),
            control: text("control"),
            child,
        }
    }

    /// Writes a browser script for this house whose user agrees to everything; returns its path.
    pub fn browser(&self, house: &House) -> PathBuf {
        let (node, browser) = (self.node(), script("browser.mjs"));
        let text = format!(
            "#!/bin/sh\nexec '{}' '{}' \"$1\"\n",
            node.display(),
            browser.display()
        );
        let path = house.write("browser", &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
            .expect("the script is writable");
        path
    }

    /// Returns the loopback address to which the login finally redirects a browser on another
    /// machine.
    pub async fn browse_elsewhere(&self, url: &str) -> String {
        self.run_browser(&["--stop", url]).await
    }

    /// Returns the final page of a browser on this machine.
    pub async fn browse(&self, url: &str) -> String {
        self.run_browser(&[url]).await
    }

    /// Returns the final page of a browser on this machine whose user logs in under this name.
    pub async fn browse_as(&self, name: &str, url: &str) -> String {
        self.run_browser(&["--as", name, url]).await
    }

    async fn run_browser(&self, args: &[&str]) -> String {
        let mut node = Command::new(self.node());
        node.arg(script("browser.mjs")).args(args);
        let output = timeout(DEADLINE, node.kill_on_drop(true).output()).await;
        let output = output
            .expect("the browser exits")
            .expect("the browser can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }

    fn node(&self) -> PathBuf {
        self.0.join("npm/node_modules").join(NODE).join("bin/node")
    }
}

impl Guarded {
    /// Sends this command to the control address of the server.
    pub async fn control(&self, what: &str) {
        self.ask("POST", what).await;
    }

    /// Returns the number of requests to this path of the authorization server.
    pub async fn count(&self, path: &str) -> u64 {
        let counts: Value =
            serde_json::from_str(&self.ask("GET", "counts").await).expect("the counts are JSON");
        counts[path].as_u64().unwrap_or_default()
    }

    /// Returns the server's table of the configuration, with these lines added.
    pub fn table(&self, more: &str) -> String {
        format!("[servers.guarded]\nurl = \"{}\"\n{more}\n", self.url)
    }

    /// Returns the addresses of its three resources.
    pub fn resources(&self) -> [String; 3] {
        ["/mcp", "/two/mcp", "/three/mcp"].map(|path| self.url.replace("/mcp", path))
    }

    /// Returns a token of this person for this audience, as another client of theirs has it.
    pub async fn token_of(&self, person: &str, audience: &str, seconds: i32) -> String {
        let audience = audience.replace(':', "%3A").replace('/', "%2F");
        let what = format!("token?sub={person}&audience={audience}&seconds={seconds}");
        let answer: Value =
            serde_json::from_str(&self.ask("GET", &what).await).expect("the answer is JSON");
        answer["token"].as_str().expect("a token").to_owned()
    }

    /// Requests a token for the MCP server with these scopes by the machine's client credentials.
    pub async fn machine_token(&self, scopes: &str) -> String {
        let (id, secret) = MACHINE;
        let resource = self.url.replace(':', "%3A").replace('/', "%2F");
        let scopes = scopes.replace(' ', "+");
        let form = format!(
            "grant_type=client_credentials&client_id={id}&client_secret={secret}&scope={scopes}&\
             resource={resource}"
        );
        let answer = ask("POST", &format!("{}/token", self.issuer), &form).await;
        let answer: Value = serde_json::from_str(&answer).expect("the response is JSON");
        answer["access_token"]
            .as_str()
            .expect("the response has a token")
            .to_owned()
    }

    async fn ask(&self, method: &str, what: &str) -> String {
        ask(method, &format!("{}/{what}", self.control), "").await
    }

    /// Stops the server.
    pub async fn stop(mut self) {
        drop(self.child.stdin.take());
        let _ = timeout(DEADLINE, self.child.wait()).await;
    }
}

/// Sends one request with a form; returns the body of the response, whose status must be a success.
async fn ask(method: &str, url: &str, form: &str) -> String {
    let rest = url.strip_prefix("http://").expect("the URL has a scheme");
    let (authority, path) = rest.split_once('/').expect("a path");
    let asking = async {
        let mut stream = TcpStream::connect(authority).await?;
        let head = format!(
            "{method} /{path} HTTP/1.0\r\nHost: {authority}\r\nContent-Length: {}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(DEADLINE, asking)
        .await
        .expect("the server answers in time");
    let answer = answer.expect("the server answers");
    assert!(answer.contains(" 200 OK\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    body.to_owned()
}

fn script(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("auth")
        .join(file)
}
