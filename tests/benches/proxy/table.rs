//! Every aim, compared with calling a server directly, by `serve` alone and through the daemon: one
//! table, measured in turns, so that other load on the machine affects all three.

pub(crate) mod ours;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use journeys::processes;

use self::ours::{Side, children_of, own_mb, processor_time_us, resident_mb};
use crate::{
    catalog::queries,
    cores::OneCore,
    figures::{Figures, Spread},
    house::{CALLED, House, direct, direct_behind, direct_command},
    peer::{Peer, PeerCall},
};

/// The number of servers of the house, and of all their tools, when a start is measured.
const SERVERS: usize = 50;
const TOOLS: usize = 1_000;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, SERVERS, TOOLS);
    let mut table = FigureTable { figures };
    table.starts(&house);
    table.calls(&house, "two cores");
    if let Some(_one) = OneCore::take() {
        table.calls(&house, "one core");
    }
    table.large(&house);
    table.flight(&house);
    table.deaths(&house);
    table.memory(&house);
    house.stop_daemon();
}

/// The route of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Direct,
    /// Through processes that only pass bytes on.
    OneHop,
    TwoHops,
    Alone,
    Daemon,
}

const WAYS: [Connection; 3] = [Connection::Direct, Connection::Alone, Connection::Daemon];

/// The least that calls alone and by the daemon can take is one hop and two.
const WAYS_AND_HOPS: [Connection; 5] = [
    Connection::Direct,
    Connection::OneHop,
    Connection::Alone,
    Connection::TwoHops,
    Connection::Daemon,
];

impl Connection {
    const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::OneHop => "one hop",
            Self::TwoHops => "two hops",
            Self::Alone => "alone",
            Self::Daemon => "by the daemon",
        }
    }

    fn open(self, house: &House) -> Side {
        match self {
            Self::Direct => Side::without_us(direct()),
            Self::OneHop => Side::without_us(direct_behind(1)),
            Self::TwoHops => Side::without_us(direct_behind(2)),
            Self::Alone => Side::of(house.serve()),
            Self::Daemon => Side::behind(Peer::ready(&mut house.serve_with_daemon()), house),
        }
    }

    fn call(self, tool: &str, options: &str) -> PeerCall {
        match self {
            Self::Direct | Self::OneHop | Self::TwoHops => PeerCall::direct(tool),
            Self::Alone | Self::Daemon => PeerCall::through(&format!("{CALLED}/{tool}"), options),
        }
    }
}

/// The values of one row, by route.
#[derive(Debug, Default)]
struct Row(Vec<(&'static str, Vec<f64>)>);

impl Row {
    fn of(ways: &[Connection]) -> Self {
        Self(ways.iter().map(|way| (way.name(), Vec::new())).collect())
    }

    fn push(&mut self, way: Connection, value: f64) {
        let column = self.0.iter_mut().find(|(name, _)| *name == way.name());
        column.expect("the row has this route").1.push(value);
    }

    fn median(&self, way: Connection) -> f64 {
        let column = self.0.iter().find(|(name, _)| *name == way.name());
        Spread::of(column.expect("the row has this route").1.clone()).p50
    }
}

struct FigureTable<'a> {
    figures: &'a mut Figures,
}

impl FigureTable<'_> {
    fn print(&mut self, what: &str, unit: &'static str, row: &Row) {
        let columns = row.0.iter().filter(|(_, values)| !values.is_empty());
        let spreads: Vec<(&str, Spread)> = columns
            .map(|(name, values)| (*name, Spread::of(values.clone())))
            .collect();
        self.figures.row("table", what, unit, &spreads);
    }

    fn aim(&mut self, what: &str, at_most: f64, measured: f64, unit: &'static str) {
        self.figures.aim(what, at_most, measured, unit);
    }

    /// Measures the time of a small call, and the processor time of our processes in it.
    fn calls(&mut self, house: &House, cores: &str) {
        const ROUNDS: usize = 60;
        const BATCH: u32 = 50;
        // A running daemon is still pinned to the processors that it was started on.
        house.stop_daemon();
        let mut sides = WAYS_AND_HOPS.map(|way| (way, way.open(house), way.call("text_100", "")));
        for (_, side, call) in &mut sides {
            side.repeat(call, 300);
        }
        let (mut times, mut work) = (Row::of(&WAYS_AND_HOPS), Row::of(&WAYS[1..]));
        for _ in 0..ROUNDS {
            for (way, side, call) in &mut sides {
                let before = processor_time_us(&side.ours);
                let batch: Vec<f64> = (0..BATCH).map(|_| side.peer.time(call)).collect();
                let spent = processor_time_us(&side.ours) - before;
                times.push(*way, Spread::of(batch).p50);
                if WAYS[1..].contains(way) {
                    work.push(*way, spent / f64::from(BATCH));
                }
            }
        }
        self.print(&format!("small call, {cores}"), "us", &times);
        self.print(
            &format!("processor time of ours a call, {cores}"),
            "us",
            &work,
        );
        let added = if cores == "one core" { 25.0 } else { 100.0 };
        for way in [Connection::Alone, Connection::Daemon] {
            let measured = times.median(way) - times.median(Connection::Direct);
            let what = format!("added to a small call, {cores}, {}", way.name());
            self.aim(&what, added, measured, "us");
        }
        let what = format!("processor time of ours a call, {cores}");
        self.aim(&what, 25.0, work.median(Connection::Alone), "us");
        for (_, side, _) in sides {
            side.end();
        }
    }

    /// Measures a result of one megabyte, whole and cut.
    fn large(&mut self, house: &House) {
        const ROUNDS: usize = 60;
        let mut sides = WAYS.map(|way| (way, way.open(house)));
        let (mut whole, mut cut) = (Row::of(&WAYS), Row::of(&WAYS[1..]));
        for round in 0..ROUNDS {
            for (way, side) in &mut sides {
                let call = way.call("text_1000000", r#","raw":true"#);
                let time = side.peer.time(&call);
                if round > 4 {
                    whole.push(*way, time / 1e3);
                }
                if *way != Connection::Direct && round < 25 {
                    let time = side.peer.time(&way.call("text_1000000", ""));
                    if round > 4 {
                        cut.push(*way, time / 1e3);
                    }
                }
            }
        }
        self.print("1 MB, raw", "ms", &whole);
        self.print("1 MB, cut", "ms", &cut);
        let more =
            (whole.median(Connection::Alone) / whole.median(Connection::Direct) - 1.0) * 100.0;
        self.aim("more than direct, 1 MB raw, alone", 25.0, more, "%");
        self.aim("1 MB, cut, alone", 5.0, cut.median(Connection::Alone), "ms");
        for (_, side) in sides {
            side.end();
        }
    }

    fn flight(&mut self, house: &House) {
        const ROUNDS: usize = 15;
        let mut sides = WAYS.map(|way| (way, way.open(house), way.call("text_100", "")));
        let mut rates = Row::of(&WAYS);
        for round in 0..ROUNDS + 2 {
            for (way, side, call) in &mut sides {
                let rate = crate::flight::rate(&mut side.peer, call, 4_000);
                if round > 1 {
                    rates.push(*way, rate);
                }
            }
        }
        self.print("32 calls in flight", "calls/s", &rates);
        for (way, least) in [
            (Connection::Alone, 60_000.0),
            (Connection::Daemon, 45_000.0),
        ] {
            let what = format!("microseconds a call, 32 in flight, {}", way.name());
            self.aim(&what, 1e6 / least, 1e6 / rates.median(way), "us");
        }
        for (_, side, _) in sides {
            side.end();
        }
    }

    /// Measures SIGKILL of the called server, and the calls after it.
    fn deaths(&mut self, house: &House) {
        const ROUNDS: usize = 25;
        let mut row = Row::of(&WAYS);
        let mut failed = 0;
        for way in WAYS {
            let call = way.call("text_100", "");
            if way == Connection::Direct {
                for _ in 0..ROUNDS {
                    let began = Instant::now();
                    let mut peer = Peer::ready(&mut direct_command());
                    peer.ask(&call);
                    row.push(way, began.elapsed().as_secs_f64() * 1e3);
                    peer.end();
                }
                continue;
            }
            let mut side = way.open(house);
            side.peer.ask(&call);
            for _ in 0..ROUNDS {
                let children = children_of(side.parent(), "direct-server");
                assert!(!children.is_empty(), "the server runs");
                let began = Instant::now();
                for pid in children {
                    processes::kill(pid);
                }
                while is_error(side.peer.ask(&call)) {
                    failed += 1;
                }
                row.push(way, began.elapsed().as_secs_f64() * 1e3);
            }
            side.end();
        }
        self.print("`kill -9`, next good call (direct: a start)", "ms", &row);
        self.figures.number(
            "table",
            "calls that failed after `kill -9`",
            f64::from(failed),
            "",
        );
        for way in [Connection::Alone, Connection::Daemon] {
            let measured = row.median(way) - row.median(Connection::Direct);
            let what = format!("`kill -9`, above the server's own start, {}", way.name());
            self.aim(&what, 30.0, measured, "ms");
        }
    }

    fn starts(&mut self, house: &House) {
        const ROUNDS: usize = 40;
        let ways = [Connection::Alone, Connection::Daemon];
        let rows = ["cold", "warm"].map(|_| (Row::of(&ways), Row::of(&ways)));
        let [mut cold, mut warm] = rows;
        for round in 0..ROUNDS + 2 {
            for (way, is_cold) in [
                (Connection::Alone, true),
                (Connection::Daemon, true),
                (Connection::Daemon, false),
            ] {
                if is_cold {
                    house.stop_daemon();
                } else {
                    rest();
                }
                let (listed, called) = start(house, way);
                if round > 1 {
                    let (lists, calls) = if is_cold { &mut cold } else { &mut warm };
                    lists.push(way, listed);
                    calls.push(way, called);
                }
            }
        }
        let what = format!("{SERVERS} servers, {TOOLS} tools");
        self.print(&format!("spawn to `tools/list`, {what}"), "ms", &cold.0);
        self.print("the same, a daemon runs", "ms", &warm.0);
        self.print("then the first call", "ms", &cold.1);
        self.print("the same, a daemon runs", "ms", &warm.1);
        self.aim(
            "spawn to `tools/list`, cold, alone",
            5.0,
            cold.0.median(Connection::Alone),
            "ms",
        );
        self.aim(
            "spawn to `tools/list`, a daemon runs",
            3.0,
            warm.0.median(Connection::Daemon),
            "ms",
        );
        self.aim(
            "then the first call, cold, alone",
            12.0,
            cold.1.median(Connection::Alone),
            "ms",
        );
    }

    fn memory(&mut self, house: &House) {
        house.stop_daemon();
        let ways = [Connection::Alone, Connection::Daemon];
        let stages = [
            "listed",
            "after 500 calls",
            "after 200 searches",
            "after 31 results of 1 MB, cut",
        ];
        let mut rows = stages.map(|_| (Row::of(&ways), Row::of(&ways)));
        for way in ways {
            let mut side = way.open(house);
            side.peer.list_tools();
            let mut stages = rows.iter_mut();
            let mut note = |side: &Side| {
                let (resident, own) = stages.next().expect("a stage is left");
                resident.push(way, resident_mb(&side.ours));
                own.push(way, own_mb(&side.ours));
            };
            note(&side);
            side.repeat(&way.call("text_100", ""), 500);
            note(&side);
            for query in queries(TOOLS).into_iter().take(200) {
                let arguments = serde_json::json!({"query": query}).to_string();
                side.peer.ask(&PeerCall::of("search_tools", &arguments));
            }
            note(&side);
            side.repeat(&way.call("text_1000000", ""), 31);
            note(&side);
            side.end();
        }
        for (stage, (resident, own)) in stages.into_iter().zip(&rows) {
            self.print(&format!("resident, {stage}"), "MB", resident);
            self.print(&format!("of it no file's, {stage}"), "MB", own);
        }
        let rows = rows.map(|(resident, _)| resident);
        self.aim(
            "resident, listed, by the daemon",
            20.0,
            rows[0].median(Connection::Daemon),
            "MB",
        );
        self.aim(
            "resident, after searches, alone",
            45.0,
            rows[2].median(Connection::Alone),
            "MB",
        );
        self.aim(
            "resident, after 1 MB results, alone",
            60.0,
            rows[3].median(Connection::Alone),
            "MB",
        );
    }
}

/// Returns the milliseconds from the spawn of `serve` to the list, and from there to the response
/// of a first call.
fn start(house: &House, way: Connection) -> (f64, f64) {
    let mut command = match way {
        Connection::Daemon => house.serve_with_daemon(),
        _ => house.serve_command(),
    };
    let began = Instant::now();
    let mut peer = Peer::start(&mut command);
    peer.initialize();
    peer.list_tools();
    let listed = began.elapsed().as_secs_f64() * 1e3;
    let answer = peer.ask(&way.call("text_100", ""));
    assert!(!is_error(answer), "the first call is answered");
    let called = began.elapsed().as_secs_f64() * 1e3 - listed;
    peer.end();
    (listed, called)
}

fn is_error(answer: &[u8]) -> bool {
    String::from_utf8_lossy(answer).contains(r#""isError":true"#)
}

/// Waits for what a daemon that has just started leaves for the time after its first answers.
#[expect(
    clippy::disallowed_methods,
    reason = "the daemon does not tell when it has nothing to do"
)]
fn rest() {
    std::thread::sleep(Duration::from_millis(100));
}
