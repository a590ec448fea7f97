//! Times searches over a generated catalogue, in the registry alone:
//! `cargo run --release -p retrieval --example scale -- TOOLS [FOLDER]`. With FOLDER the registry
//! is kept, so that embeddings are computed once.
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use registry::{News, Options, Query, Registry, Rules, ServerRules, Snapshot};
use tool::{Offer, ServerName, Tool};

use crate::catalog::{BenchCatalog, catalogs, queries};

#[path = "../../benches/proxy/catalog.rs"]
mod catalog;

const TOOLS_A_SERVER: usize = 200;
const QUERIES: usize = 600;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tools = arguments.next().map(|it| it.parse().expect("a number"));
    let tools = tools.unwrap_or(10_000);
    let made = catalogs((tools / TOOLS_A_SERVER).max(1), tools);
    let temporary = tempfile::tempdir().expect("a temporary folder can be created");
    let kept = arguments.next().map(PathBuf::from);
    let folder = kept.unwrap_or_else(|| temporary.path().to_owned());
    let registry = open(&folder, &made, true);
    if registry.catalog().servers.iter().all(|it| it.tools == 0) {
        let began = Instant::now();
        let news = made.iter().map(news).collect();
        registry
            .commit(news, false, 1)
            .expect("the folder is writable");
        println!("commit: {:?}", began.elapsed());
    }
    let began = Instant::now();
    let made_now = registry.embed_tools(2, &|_, _| true);
    let count = made_now.expect("the folder is writable");
    println!("{count} vectors, two threads: {:?}", began.elapsed());
    for embeds in [false, true] {
        time(&open(&folder, &made, embeds), embeds);
    }
}

fn time(registry: &Registry, embeds: bool) {
    let began = Instant::now();
    let generation = registry.generation().expect("the commit succeeds");
    println!("loading: {:?}", began.elapsed());
    let queries = queries(QUERIES);
    let took = |query: &String| {
        let began = Instant::now();
        black_box(generation.search(&Query::words(query)));
        began.elapsed()
    };
    println!("first search: {:?}", took(&queries[0]));
    let mut times: Vec<_> = queries.iter().map(took).collect();
    times.sort();
    let [half, most] = [QUERIES / 2, QUERIES * 99 / 100].map(|at| times[at]);
    let what = if embeds { "with meaning" } else { "by words" };
    println!("{what}: p50 {half:?}, p99 {most:?}");
}

fn open(folder: &Path, made: &[BenchCatalog], embeds: bool) -> Registry {
    let servers = made.iter().map(|it| ServerRules::plain(name(it)));
    let rules = Rules {
        servers: servers.collect(),
        ..Rules::default()
    };
    let options = Options {
        embeds,
        ..Options::default()
    };
    Registry::open_with(folder, rules, options).expect("the rules have no glob")
}

fn name(catalog: &BenchCatalog) -> ServerName {
    catalog.server.parse().expect("the server name is valid")
}

fn news(catalog: &BenchCatalog) -> News {
    let tools = catalog.tools.iter().map(ToString::to_string);
    let tools = tools.map(|text| Tool::parse(&text).expect("a tool"));
    let snapshot = Snapshot {
        server: name(catalog),
        tools: tools.collect(),
        offer: Offer::default(),
        server_name: String::new(),
        server_version: String::new(),
        instructions: None,
        protocol: "2025-11-25".to_owned(),
        transport: None,
        asking_calls: Vec::new(),
        tokens: 0,
        surveyed_at: 1,
    };
    News {
        server: name(catalog),
        asked_ms: 0,
        outcome: Ok(snapshot),
    }
}
