//! (d) Search, through a client and in the registry alone.

use std::{hint::black_box, path::Path, sync::Arc, time::Instant};

use registry::{Generation, Query, Registry, Rules, ServerRules};
use serde_json::json;

use crate::{
    catalog::{catalogs, queries},
    figures::{Figures, Spread},
    house::House,
    peer::PeerCall,
};

const QUERIES: usize = 2_000;
const BATCH: usize = 50;
const WARM_UP: usize = 100;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    for (servers, tools) in [(5, 100), (10, 1_000), (50, 10_000)] {
        let house = House::new(proxy, &catalogs(servers, tools));
        let mut client = house.serve();
        let queries = queries(QUERIES + WARM_UP);
        let calls: Vec<PeerCall> = queries.iter().map(|query| call(query)).collect();
        let first = client.time(&calls[0]) / 1e3;
        let generation = open(&house);
        let (mut asked, mut alone) = (Vec::new(), Vec::new());
        for (queries, calls) in queries.chunks(BATCH).zip(calls.chunks(BATCH)) {
            asked.extend(calls.iter().map(|call| client.time(call)));
            alone.extend(queries.iter().map(|query| time(&generation, query)));
        }
        let (asked, alone) = (
            Spread::of(asked.split_off(WARM_UP)),
            Spread::of(alone.split_off(WARM_UP)),
        );
        let what = format!("{tools} tools of {servers} servers");
        figures.row(
            "search",
            &what,
            "us",
            &[("stdio", asked), ("registry", alone)],
        );
        figures.number("search", &format!("{what}: stdio p99"), asked.p99, "us");
        figures.number("search", &format!("{what}: registry p99"), alone.p99, "us");
        figures.number("search", &format!("{what}: first search"), first, "ms");
        let reindexed = house.reindexed_in.as_secs_f64();
        figures.number("search", &format!("{what}: reindex"), reindexed, "s");
        if tools == 10_000 {
            figures.aim("search at 10,000 tools, p50", 1.0, asked.p50 / 1e3, "ms");
        }
        client.end();
    }
}

fn call(query: &str) -> PeerCall {
    PeerCall::of("search_tools", &json!({"query": query}).to_string())
}

fn open(house: &House) -> Arc<Generation> {
    let shelved =
        |name: &String| ServerRules::plain(name.parse().expect("the server name is valid"));
    let servers = house.servers().iter().map(shelved).collect();
    let registry = Registry::open(
        &house.state(),
        Rules {
            servers,
            ..Rules::default()
        },
    );
    let registry = registry.expect("the rules have no glob");
    registry.generation().expect("the index opens")
}

fn time(generation: &Generation, query: &str) -> f64 {
    let query = Query::words(query);
    let began = Instant::now();
    black_box(generation.search(&query));
    began.elapsed().as_secs_f64() * 1e6
}
