//! (b) The time until `serve` answers, independent of its servers.

use std::{path::Path, time::Instant};

use crate::{
    catalog::catalogs,
    figures::{Figures, Spread},
    house::{House, direct_command},
    peer::Peer,
};

const RUNS: u32 = 60;
const WARM_UP: u32 = 5;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let houses = [(0, 0), (10, 1_000), (50, 1_000)].map(|(servers, tools)| {
        let house = House::new(proxy, &catalogs(servers, tools));
        house.let_servers_hang();
        let what = format!("{servers} servers that hang, {tools} tools");
        Start::new(what, Some(house))
    });
    let bare = Start::new("the direct server, 0 tools".to_owned(), None);
    let mut starts: Vec<Start> = [bare].into_iter().chain(houses).collect();
    for round in 0..RUNS + WARM_UP {
        for start in &mut starts {
            start.once(round >= WARM_UP);
        }
    }
    for start in starts {
        let listed = Spread::of(start.listed);
        let spreads = [
            ("initialize", Spread::of(start.greeted)),
            ("tools/list", listed),
        ];
        figures.row("spawn", &start.what, "ms", &spreads);
        if let Some(house) = start.house {
            assert!(!house.has_started_one(), "a server was started");
            let what = format!("tools/list, {}", start.what);
            figures.aim(what, 15.0, listed.p50, "ms");
        }
    }
}

struct Start {
    what: String,
    /// None: the server itself is measured.
    house: Option<House>,
    greeted: Vec<f64>,
    listed: Vec<f64>,
}

impl Start {
    fn new(what: String, house: Option<House>) -> Self {
        Self {
            what,
            house,
            greeted: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn once(&mut self, counts: bool) {
        let mut command = self
            .house
            .as_ref()
            .map_or_else(direct_command, House::serve_command);
        let began = Instant::now();
        let milliseconds = || began.elapsed().as_secs_f64() * 1e3;
        let mut peer = Peer::start(&mut command);
        peer.initialize();
        let greeted = milliseconds();
        peer.list_tools();
        let listed = milliseconds();
        peer.end();
        if counts {
            self.greeted.push(greeted);
            self.listed.push(listed);
        }
    }
}
