//! Prometheus metrics: outcomes of calls, and the current state of servers and this process.

use std::{collections::BTreeMap, time::UNIX_EPOCH};

use fleet::{Availability, ClusterState, RunState};
use telemetry::{CONTENT_TYPE, Exposition, MetricKind};
use tool::ServerName;

use crate::{gateway::Gateway, scrapes::Starts};

/// The figures of one server, over all its processes.
#[derive(Debug, Default)]
struct OfServer {
    /// By [`RunState::ALL`].
    states: [u64; RunState::ALL.len()],
    starts: u64,
    memory_bytes: u64,
}

impl Gateway {
    /// The content type of [`Gateway::metrics`].
    pub const METRICS_TYPE: &str = CONTENT_TYPE;

    /// Metrics since this process began, for Prometheus. They name servers and tools; no client, no
    /// argument and no result. Reads `/proc` and the folder of kept results, and so blocks for a
    /// moment; serves one scraper at a time.
    pub fn metrics(&self) -> String {
        let mut starts = self.scrapes.starts.lock();
        let mut text = Exposition::default();
        self.recorder.totals().write(&mut text);
        self.write_servers(&mut text, &mut starts);
        self.write_now(&mut text);
        text.into_text()
    }

    fn write_servers(&self, text: &mut Exposition, starts: &mut BTreeMap<ServerName, Starts>) {
        let mut servers: BTreeMap<ServerName, OfServer> = BTreeMap::new();
        for state in self.servers.states() {
            let of = servers.entry(state.name).or_default();
            let at = RunState::ALL.iter().position(|it| *it == state.state);
            of.states[at.unwrap_or_default()] += 1;
            of.starts += u64::from(state.starts);
            of.memory_bytes += state.memory_bytes.unwrap_or(0);
        }
        let help = "Processes of servers by state; one for each client and protocol revision that has its own.";
        let mut family = text.family("proxy_servers", MetricKind::Gauge, help);
        for (server, of) in &servers {
            for (state, count) in RunState::ALL.into_iter().zip(of.states) {
                let label = Availability::from(state).label();
                family.sample(&[("server", server.as_str()), ("state", label)], count);
            }
        }
        let help = "Starts of a server that ended ready; what is more than one was a restart.";
        let mut family = text.family("proxy_server_starts_total", MetricKind::Counter, help);
        for (server, of) in &servers {
            let starts = starts.entry(server.clone()).or_default();
            family.sample(&[("server", server.as_str())], starts.count(of.starts));
        }
        let help = "Memory of a server's process and of all that it started.";
        let mut family = text.family(
            "proxy_server_resident_memory_bytes",
            MetricKind::Gauge,
            help,
        );
        for (server, of) in &servers {
            family.sample(&[("server", server.as_str())], of.memory_bytes);
        }
    }

    fn write_now(&self, text: &mut Exposition) {
        let (results, bytes) = self.results.measure();
        let clients = self.clients.list().len();
        let tools = self.catalog.registry.catalog().tools();
        let began = self.scrapes.began.duration_since(UNIX_EPOCH);
        let began = began.unwrap_or_default().as_secs_f64();
        let mut gauges = vec![
            (
                "proxy_clients",
                "Clients that are connected.",
                clients.to_string(),
            ),
            ("proxy_tools", "Tools that can be found.", tools.to_string()),
            (
                "proxy_results_kept",
                "Results that were cut and can be read.",
                results.to_string(),
            ),
            (
                "proxy_results_kept_bytes",
                "Room that these take on the disk.",
                bytes.to_string(),
            ),
            (
                "process_start_time_seconds",
                "When this process began, in unix time.",
                began.to_string(),
            ),
        ];
        if let Some(cluster) = self.servers.cluster() {
            gauges.extend(measure_cluster(&cluster.state()));
        }
        if let Some(memory) = processes::own_memory() {
            let help = "Memory of this process, without its servers.";
            gauges.push(("process_resident_memory_bytes", help, memory.to_string()));
        }
        for (name, help, value) in gauges {
            text.single(name, MetricKind::Gauge, help, value);
        }
        if let Some(traces) = self.trace_delivery() {
            let mut counter =
                |name, help, count| text.single(name, MetricKind::Counter, help, count);
            let help = "Spans that the collector took.";
            counter("proxy_spans_sent_total", help, traces.sent);
            let help = "Spans that it did not take, or that found no room while it was away.";
            counter("proxy_spans_dropped_total", help, traces.dropped);
        }
        let help = "This program; always 1.";
        let mut family = text.family("proxy_build_info", MetricKind::Gauge, help);
        family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

/// Returns the name, the explanation and the value of each gauge of a cluster.
fn measure_cluster(cluster: &ClusterState) -> [(&'static str, &'static str, String); 2] {
    let connected = cluster.nodes.iter().filter(|it| it.is_connected).count();
    let here = cluster.nodes.first().map(|it| &it.node);
    let owned = cluster.owners.iter();
    let owned = owned.filter(|it| it.node.as_ref() == here).count();
    [
        (
            "proxy_cluster_nodes",
            "Nodes of the cluster that this node hears, itself included.",
            connected.to_string(),
        ),
        (
            "proxy_cluster_owned_servers",
            "Servers with one owner that this node owns.",
            owned.to_string(),
        ),
    ]
}
