//! Ranks a retrieval set and measures search.
//!
//! `rank TOOLS.jsonl QUERIES.jsonl RANKING.jsonl` writes a ranking; `rank TOOLS.jsonl` measures
//! the time a search takes over 1,000 and 10,000 tools made from the set and over the set itself.
#![expect(clippy::print_stdout, reason = "an example speaks on stdout")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use std::{env, fs};

use registry::{Asked, Generation, Kind, News, Options, Query, Registry, Shelf, Shelved, Snapshot};
use serde_json::{Value, json};
use tool::{ServerName, Tool};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.as_slice() {
        [tools, queries, ranking] => rank(&lines(tools)?, &lines(queries)?, ranking),
        [tools] => measure(&lines(tools)?),
        _ => Err("usage: rank TOOLS.jsonl [QUERIES.jsonl RANKING.jsonl]".into()),
    }
}

fn lines(path: &str) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(path)?;
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}

fn rank(tools: &[Value], queries: &[Value], ranking: &str) -> Outcome<()> {
    let catalogue = Catalogue::of(tools)?;
    let generation = catalogue.open()?;
    let (mut out, mut refused) = (String::new(), 0);
    for query in queries {
        let words = query["query"].as_str().unwrap_or_default();
        let found = generation.search(&Query {
            limit: 20,
            ..Query::words(words)
        });
        refused += usize::from(found.kind == Kind::Nothing);
        let hits = found
            .hits
            .iter()
            .map(|hit| catalogue.names(&hit.entry.at.server, hit));
        writeln!(
            out,
            "{}",
            json!({"id": query["id"], "ranking": hits.collect::<Vec<_>>()})
        )?;
    }
    fs::write(ranking, out)?;
    println!(
        "{} queries, {refused} answered with nothing fits",
        queries.len()
    );
    Ok(())
}

fn measure(tools: &[Value]) -> Outcome<()> {
    for count in [1_000, tools.len(), 10_000] {
        let many: Vec<Value> = tools
            .iter()
            .cycle()
            .take(count)
            .enumerate()
            .map(copy(tools.len()))
            .collect();
        let catalogue = Catalogue::of(&many)?;
        let began = Instant::now();
        catalogue.open()?;
        let built = began.elapsed();
        let began = Instant::now();
        let registry = Registry::open_with(
            catalogue.folder.path(),
            catalogue.shelf(),
            Options {
                meaning: env::var_os("MEANING").is_some(),
                ..Options::default()
            },
        )?;
        let opened = began.elapsed();
        let generation = registry.generation()?;
        let loaded = began.elapsed();
        let (half, most) = times(&generation);
        let servers = catalogue.servers.len();
        println!(
            "{count} tools of {servers} servers: built in {built:.0?}, opened in {opened:.2?}, loaded in {loaded:.0?}, search p50 {half:.0?}, p99 {most:.0?}"
        );
    }
    Ok(())
}

/// Later rounds of the set stand on servers of their own.
fn copy(round: usize) -> impl Fn((usize, &Value)) -> Value {
    move |(at, tool)| {
        let mut tool = tool.clone();
        tool["server"] = format!(
            "{}{}",
            tool["server"].as_str().unwrap_or_default(),
            at / round
        )
        .into();
        tool
    }
}

fn times(generation: &Generation) -> (Duration, Duration) {
    let purposes: Vec<String> = generation
        .entries()
        .step_by(17)
        .map(|entry| entry.description().into_owned())
        .collect();
    let queries = purposes.iter().map(|text| {
        text.split_whitespace()
            .take(9)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let mut times: Vec<Duration> = queries
        .map(|words| {
            let query = Query {
                asked: Asked::Words(words),
                ..Query::words("")
            };
            let began = Instant::now();
            std::hint::black_box(generation.search(&query));
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// A set of tools in a registry folder of its own, under names a configuration would allow.
struct Catalogue {
    folder: tempfile::TempDir,
    servers: BTreeMap<ServerName, (String, Vec<Tool>)>,
}

impl Catalogue {
    fn of(tools: &[Value]) -> Outcome<Self> {
        let mut known: BTreeMap<String, ServerName> = BTreeMap::new();
        let mut servers: BTreeMap<ServerName, (String, Vec<Tool>)> = BTreeMap::new();
        for tool in tools {
            let server = tool["server"].as_str().unwrap_or_default();
            let number = known.len();
            let name = known
                .entry(server.to_owned())
                .or_insert_with(|| allowed(server, number, &servers));
            let json = json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["input_schema"]});
            let (_, list) = servers
                .entry(name.clone())
                .or_insert_with(|| (server.to_owned(), Vec::new()));
            list.push(Tool::parse(&json.to_string())?);
        }
        Ok(Self {
            folder: tempfile::tempdir()?,
            servers,
        })
    }

    /// Every server with rules, so that they are measured too.
    fn shelf(&self) -> Shelf {
        let deny = vec!["no-such-*".to_owned(), "*_nor_such".to_owned()];
        let plain = self.servers.keys().cloned().map(Shelved::plain);
        let servers = plain.map(|server| Shelved {
            deny: deny.clone(),
            ..server
        });
        Shelf {
            servers: servers.collect(),
        }
    }

    fn open(&self) -> Outcome<std::sync::Arc<Generation>> {
        let registry = Registry::open_with(
            self.folder.path(),
            self.shelf(),
            Options {
                meaning: env::var_os("MEANING").is_some(),
                ..Options::default()
            },
        )?;
        let news = self.servers.iter().map(|(server, (_, tools))| News {
            server: server.clone(),
            outcome: Ok(Snapshot {
                server: server.clone(),
                tools: tools.clone(),
                server_name: String::new(),
                server_version: String::new(),
                instructions: None,
                protocol: String::new(),
                tokens: 0,
                surveyed_at: 0,
            }),
        });
        registry.commit(news.collect(), false, 0)?;
        let began = Instant::now();
        let made = registry.give_meaning(2, &|_, _| true)?;
        println!("{made} vectors in {:.1?}", began.elapsed());
        Ok(registry.generation()?)
    }

    fn names(&self, server: &ServerName, hit: &registry::Hit) -> [String; 2] {
        [self.servers[server].0.clone(), hit.entry.at.tool.clone()]
    }
}

fn allowed(
    server: &str,
    number: usize,
    taken: &BTreeMap<ServerName, (String, Vec<Tool>)>,
) -> ServerName {
    let lower = server.to_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let plain: String = plain.trim_matches('-').chars().take(26).collect();
    let name = plain.parse().ok().filter(|name| !taken.contains_key(name));
    name.unwrap_or_else(|| {
        format!("s{number}-{}", plain.chars().take(20).collect::<String>())
            .parse()
            .expect("letters, digits and `-`")
    })
}
