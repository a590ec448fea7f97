//! The time of a search over 100 to 100,000 tools, and the cost of indexing them.

use std::fs;
use std::time::{Duration, Instant};

use registry::{Generation, Query};
use serde_json::Value;

use retrieval::score::Configuration;
use retrieval::set::{Catalogue, SetResult};

#[derive(Debug)]
pub(crate) struct Scale {
    pub(crate) tools: usize,
    pub(crate) servers: usize,
    /// The time to create snapshots, catalogue and index.
    pub(crate) built: Duration,
    /// The time to open an existing registry.
    pub(crate) loaded: Duration,
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    /// The resident memory of this process with the catalogue loaded, in MiB.
    pub(crate) memory: u64,
    /// The peak memory of this process.
    pub(crate) memory_peak: u64,
}

impl Scale {
    /// Measures `count` tools, made by repeating the given ones.
    pub(crate) fn of(
        tools: &[Value],
        count: usize,
        configuration: &Configuration,
    ) -> SetResult<Self> {
        let rounds = tools.iter().cycle().take(count).enumerate();
        let many: Vec<Value> = rounds.map(|it| altered(tools.len(), it)).collect();
        let began = Instant::now();
        let catalogue = Catalogue::of(&many)?;
        let built = began.elapsed();
        drop(many);
        let began = Instant::now();
        let generation = catalogue.generation(configuration.texts)?;
        let loaded = began.elapsed();
        let mut times = times(&generation, configuration);
        times.sort_unstable();
        Ok(Self {
            tools: count,
            servers: catalogue.servers(),
            built,
            loaded,
            half: times[times.len() / 2],
            most: times[times.len() * 99 / 100],
            memory: of_status("VmRSS:"),
            memory_peak: of_status("VmHWM:"),
        })
    }
}

/// Returns the tool with a unique name and unique words, on the same server, if it is a repetition.
fn altered(round: usize, (at, tool): (usize, &Value)) -> Value {
    let mut tool = tool.clone();
    let number = at / round;
    if number > 0 {
        let said = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let (name, text) = (said("name"), said("description"));
        tool["name"] = format!("{name}_{number}").into();
        tool["description"] = format!("{text} Edition v{number}x{}.", at % 997).into();
    }
    tool
}

/// Measures the time of each query on its second run.
fn times(generation: &Generation, configuration: &Configuration) -> Vec<Duration> {
    let entries = generation.entries();
    let step = (entries.len() / QUERIES).max(1);
    let purposes = entries.step_by(step).map(|entry| {
        let words: Vec<String> = entry
            .description()
            .split_whitespace()
            .take(QUERY_WORDS)
            .map(str::to_owned)
            .collect();
        words.join(" ")
    });
    let queries: Vec<Query> = purposes
        .filter(|text| !text.is_empty())
        .map(|text| (configuration.query)(&text))
        .collect();
    let time = |query: &Query| {
        let began = Instant::now();
        std::hint::black_box(generation.search(query));
        began.elapsed()
    };
    for query in &queries {
        time(query);
    }
    queries.iter().map(time).collect()
}

fn of_status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

const QUERIES: usize = 400;
const QUERY_WORDS: usize = 9;
