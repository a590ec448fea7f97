//! The speed of the whole program, beside calls of the same server directly in the same run.
//!
//! `cargo bench -p journeys [-- PART... [--json FILE] [--against FILE] [--proxy FILE]]`, where a
//! part is `table`, `many`, `hop`, `script`, `trust`, `spawn`, `daemon`, `flight`, `search`,
//! `cluster`, `memory`, `size` or `count`; none means all but `count`. `--json` writes every figure to a file, `--against` prints
//! each beside those of such a file, `--proxy` measures another build. Needs no network. Each line
//! has the median and, in brackets, the 10th and 90th percentile.

mod catalog;
mod cluster;
mod collector;
mod cores;
mod count;
mod daemon;
mod figures;
mod flight;
mod hop;
mod house;
mod many;
mod memory;
mod peer;
mod script;
mod search;
mod size;
mod spawn;
mod table;
mod trust;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use figures::{Figures, say};
use serde_json::Value;

type Part = (&'static str, fn(&Path, &mut Figures));

/// `count` runs only by its name: it takes minutes, and needs valgrind.
const NAMED_ONLY: &str = "count";

const PARTS: [Part; 13] = [
    ("table", table::run),
    ("many", many::run),
    ("hop", hop::run),
    ("script", script::run),
    ("trust", trust::run),
    ("spawn", spawn::run),
    ("daemon", daemon::run),
    ("flight", flight::run),
    ("search", search::run),
    ("cluster", cluster::run),
    ("memory", memory::run),
    ("size", size::run),
    (NAMED_ONLY, count::run),
];

struct BenchArguments {
    parts: Vec<String>,
    json: Option<PathBuf>,
    against: Option<PathBuf>,
    proxy: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(why) => {
            say(&format!("error: {why}"));
            return ExitCode::from(2);
        }
    };
    let before = match arguments.against.as_deref().map(read_figures).transpose() {
        Ok(before) => before,
        Err(why) => {
            say(&format!("error: {why}"));
            return ExitCode::from(2);
        }
    };
    let mut figures = Figures::default();
    for (name, run) in PARTS {
        let is_named = arguments.parts.iter().any(|part| part == name);
        if is_named || arguments.parts.is_empty() && name != NAMED_ONLY {
            run(&arguments.proxy, &mut figures);
        }
    }
    figures.print_aims();
    if let Some(before) = before {
        figures.print_against(&before);
    }
    if let Some(file) = arguments.json {
        let text = format!("{:#}\n", figures.to_json());
        fs::write(file, text).expect("the file for the figures can be written");
    }
    if figures.is_over_a_limit() {
        say("error: more than 5 % above a limit");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Reads the figures that an earlier run wrote with `--json`.
fn read_figures(file: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{}: no figures of `--json`: {error}", file.display()))
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<BenchArguments, String> {
    let mut arguments = BenchArguments {
        parts: Vec::new(),
        json: None,
        against: None,
        proxy: PathBuf::from(env!("CARGO_BIN_EXE_proxy-under-test")),
    };
    while let Some(arg) = args.next() {
        let mut file = || args.next().map(PathBuf::from).ok_or("a file is missing");
        match arg.as_str() {
            // Cargo passes this to every bench.
            "--bench" => {}
            "--json" => arguments.json = Some(file()?),
            "--against" => arguments.against = Some(file()?),
            "--proxy" => arguments.proxy = file()?,
            part if PARTS.iter().any(|(name, _)| *name == part) => arguments.parts.push(arg),
            other => return Err(format!("`{other}` is no part and no flag")),
        }
    }
    Ok(arguments)
}
