//! (e) Resident memory of `serve`.

use std::path::Path;

use serde_json::json;

use crate::{
    catalog::queries,
    figures::Figures,
    house::{CALLED, House},
    peer::{Peer, PeerCall},
};

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    let mut client = house.serve();
    client.list_tools();
    let mut note = |client: &Peer, what: &str| {
        let resident = f64::from(client.memory_kb("VmRSS")) / 1024.0;
        figures.number("memory", &format!("1,000 tools, {what}"), resident, "MB");
        resident
    };
    note(&client, "idle");
    for query in queries(1_000) {
        client.ask(&PeerCall::of(
            "search_tools",
            &json!({"query": query}).to_string(),
        ));
    }
    note(&client, "after 1,000 searches");
    let call = |tool: &str, options: &str| PeerCall::through(&format!("{CALLED}/{tool}"), options);
    repeat(&mut client, &call("text_100", ""), 2_000);
    repeat(&mut client, &call("text_10000", ""), 500);
    let after_small = note(&client, "after 2,500 small calls");
    repeat(&mut client, &call("text_1000000", r#","raw":true"#), 50);
    repeat(&mut client, &call("text_1000000", ""), 20);
    repeat(&mut client, &call("text_100", ""), 100);
    let after_all = note(&client, "after 70 calls of 1 MB");
    let highest = f64::from(client.memory_kb("VmHWM")) / 1024.0;
    figures.number("memory", "1,000 tools, at its highest", highest, "MB");
    client.end();
    figures.aim(
        "resident with 1,000 tools, small calls",
        40.0,
        after_small,
        "MB",
    );
    figures.aim(
        "resident with 1,000 tools, after 1 MB calls",
        40.0,
        after_all,
        "MB",
    );
}

fn repeat(client: &mut Peer, call: &PeerCall, times: u32) {
    for _ in 0..times {
        client.ask(call);
    }
}
