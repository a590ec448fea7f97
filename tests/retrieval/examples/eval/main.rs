//! The scoreboard of search.
//!
//! `eval --tools TOOLS.jsonl [--tools MORE] --queries QUERIES.jsonl [--requests REQUESTS.tsv] [--ranking OUT.jsonl]
//! [--unservable N]`
//! prints a line for each configuration and writes the last one's ranking for `score.py`;
//! `eval --tools TOOLS.jsonl --queries QUERIES.jsonl --learn` measures what calls teach;
//! `eval --tools TOOLS.jsonl --queries QUERIES.jsonl --sizes 5,20,100` draws catalogues of these sizes;
//! `eval --scale TOOLS.jsonl [--sizes 100,1000]` measures time and memory.
#![expect(clippy::print_stdout, reason = "an example speaks on stdout")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};

mod learn;
mod scale;
mod sizes;

use retrieval::score::{CONFIGURATIONS, Configuration, Marks, Report, share};
use retrieval::set::{Catalogue, JudgedQuery, SetResult, lines, listed_tools};
use scale::Scale;

#[derive(Debug, Default)]
struct EvalArguments {
    /// Files of tools, and folders of snapshots.
    tools: Vec<PathBuf>,
    queries: Option<PathBuf>,
    ranking: Option<PathBuf>,
    /// Uses only requests of this kind.
    kind: Option<String>,
    /// Searches each server alone, for its own requests.
    alone: bool,
    /// Teaches one wording of every second need, and asks for all in the other.
    learn: bool,
    /// Gives tools these example requests.
    requests: Option<PathBuf>,
    scale: Option<PathBuf>,
    sizes: Option<String>,
    unservable: Option<usize>,
    /// Measures only the configuration with this name.
    only: Option<String>,
}

fn main() -> SetResult<()> {
    let arguments = EvalArguments::parse(env::args().skip(1))?;
    let wanted = |it: &&Configuration| arguments.only.as_ref().is_none_or(|only| only == it.name);
    let configurations: Vec<&Configuration> = CONFIGURATIONS.iter().filter(wanted).collect();
    match (
        arguments.tools.as_slice(),
        &arguments.queries,
        &arguments.scale,
    ) {
        ([_, ..], Some(queries), None) => board(&arguments, queries, &configurations),
        ([], None, Some(tools)) => measure(&arguments, tools, &configurations),
        _ => Err(USAGE.into()),
    }
}

impl EvalArguments {
    fn parse(mut args: impl Iterator<Item = String>) -> SetResult<Self> {
        let mut arguments = Self::default();
        while let Some(flag) = args.next() {
            if flag == "--alone" {
                arguments.alone = true;
                continue;
            }
            if flag == "--learn" {
                arguments.learn = true;
                continue;
            }
            let value = args
                .next()
                .ok_or_else(|| format!("{flag}: a value is missing"))?;
            match flag.as_str() {
                "--tools" => arguments.tools.push(value.into()),
                "--queries" => arguments.queries = Some(value.into()),
                "--kind" => arguments.kind = Some(value),
                "--requests" => arguments.requests = Some(value.into()),
                "--ranking" => arguments.ranking = Some(value.into()),
                "--scale" => arguments.scale = Some(value.into()),
                "--sizes" => arguments.sizes = Some(value),
                "--unservable" => arguments.unservable = Some(value.parse()?),
                "--only" => arguments.only = Some(value),
                _ => return Err(format!("{flag}: no such flag\n{USAGE}").into()),
            }
        }
        Ok(arguments)
    }

    fn sizes(&self) -> SetResult<Option<Vec<usize>>> {
        let sizes = self.sizes.as_ref();
        let sizes = sizes.map(|it| it.split(',').map(str::parse).collect::<Result<_, _>>());
        Ok(sizes.transpose()?)
    }
}

fn board(
    arguments: &EvalArguments,
    queries: &Path,
    configurations: &[&Configuration],
) -> SetResult<()> {
    let mut tools = Vec::new();
    for path in &arguments.tools {
        tools.extend(if path.is_dir() {
            listed_tools(path)?
        } else {
            lines(path)?
        });
    }
    let mut requests = JudgedQuery::read(queries)?;
    if let Some(kind) = &arguments.kind {
        requests.retain(|it| it.kind == *kind);
    }
    let texts = arguments.requests.as_ref().map(fs::read_to_string);
    let texts = texts.transpose()?;
    if let Some(sizes) = arguments.sizes()? {
        return sizes::board(&tools, &requests, texts.as_deref(), &sizes, configurations);
    }
    if arguments.alone {
        return boards_alone(&tools, &requests, texts.as_deref(), configurations);
    }
    let catalogue = Catalogue::of(&tools)?;
    if let Some(texts) = &texts {
        catalogue.enrich(texts)?;
    }
    if arguments.learn {
        let mut boards = configurations.iter();
        return boards.try_for_each(|it| learn::board(&catalogue, &requests, it));
    }
    let unservable = arguments.unservable.unwrap_or(UNSERVABLE);
    println!(
        "{:20}{:>6}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>8}{:>9}{:>9}{:>9}{:>8}",
        "",
        "n",
        "r@1",
        "r@3",
        "r@5",
        "r@10",
        "ndcg5",
        "mrr",
        "offers",
        "refusals",
        "p50",
        "p99",
        "tokens"
    );
    for configuration in configurations {
        let report = Report::of(&catalogue, &requests, configuration, unservable)?;
        let served = report.rankings.len();
        let offers = report.false_offers.map_or("-".to_owned(), percent);
        println!(
            "{}{offers:>8}{:>9}{:>9.1?}{:>9.1?}{:>8.0}",
            row(configuration.name, served, &report.marks),
            percent(report.false_refusals),
            report.half,
            report.most,
            report.tokens,
        );
        for (kind, (count, marks)) in &report.by_kind {
            println!("{}", row(&format!("  {kind}"), *count, marks));
        }
        if let Some(path) = &arguments.ranking {
            fs::write(path, ranking_text(&report)?)?;
        }
    }
    Ok(())
}

/// Prints the means over the requests of every server, each searched in a catalogue of its own.
fn boards_alone(
    tools: &[Value],
    requests: &[JudgedQuery],
    texts: Option<&str>,
    configurations: &[&Configuration],
) -> SetResult<()> {
    let mut by_server: BTreeMap<&str, Vec<JudgedQuery>> = BTreeMap::new();
    for request in requests {
        if let Some((server, _)) = request.relevant.first() {
            by_server.entry(server).or_default().push(request.clone());
        }
    }
    for configuration in configurations {
        let (mut refused, mut first, mut five) = (0.0, 0.0, 0.0);
        for (server, requests) in &by_server {
            let own = tools.iter().filter(|it| it["server"] == *server);
            let catalogue = Catalogue::of(&own.cloned().collect::<Vec<_>>())?;
            if let Some(texts) = texts {
                catalogue.enrich(texts)?;
            }
            let report = Report::of(&catalogue, requests, configuration, 0)?;
            let weight = share(requests.len(), 1);
            refused += weight * report.false_refusals;
            first += weight * report.marks.recall[0];
            five += weight * report.marks.recall[2];
        }
        let all = share(requests.len(), 1);
        println!(
            "{:20}{:6} requests of {} servers alone: r@1 {:.3}, r@5 {:.3}, refusals {}",
            configuration.name,
            requests.len(),
            by_server.len(),
            first / all,
            five / all,
            percent(refused / all),
        );
    }
    Ok(())
}

fn row(name: &str, count: usize, marks: &Marks) -> String {
    let [one, three, five, ten] = marks.recall;
    let numbers = [one, three, five, ten, marks.ndcg_at_5, marks.mrr];
    numbers
        .iter()
        .fold(format!("{name:20}{count:6}"), |row, number| {
            row + &format!("{number:7.3}")
        })
}

fn ranking_text(report: &Report) -> SetResult<String> {
    let mut text = String::new();
    for (id, ranking) in &report.rankings {
        writeln!(text, "{}", json!({"id": id, "ranking": ranking}))?;
    }
    Ok(text)
}

fn measure(
    arguments: &EvalArguments,
    tools: &Path,
    configurations: &[&Configuration],
) -> SetResult<()> {
    let tools = lines(tools)?;
    let sizes = arguments.sizes()?.unwrap_or_else(|| SIZES.to_vec());
    for configuration in configurations {
        for size in &sizes {
            let it = Scale::of(&tools, *size, configuration)?;
            println!(
                "{}: {} tools of {} servers: built in {:.1?}, loaded in {:.0?}, search p50 {:.0?}, \
                 p99 {:.0?}, memory {} MiB (at most {})",
                configuration.name,
                it.tools,
                it.servers,
                it.built,
                it.loaded,
                it.half,
                it.most,
                it.memory,
                it.memory_peak
            );
        }
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

const USAGE: &str = "usage: eval --tools TOOLS.jsonl [--tools MORE] --queries QUERIES.jsonl \
                     [--requests REQUESTS.tsv] \
                     [--kind KIND] [--alone | --learn | --sizes 5,20] \
                     [--ranking OUT.jsonl] \
                     [--unservable COUNT] [--only CONFIGURATION]\n       \
                     eval --scale TOOLS.jsonl [--sizes 100,1000,10000,100000]";

/// The default number of requests that are repeated without their tools.
const UNSERVABLE: usize = 150;

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
