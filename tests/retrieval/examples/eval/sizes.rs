//! The scores of catalogues of different sizes: to the tools that serve some requests come others of
//! their servers, then those of other servers.

use std::collections::BTreeSet;

use serde_json::Value;

use retrieval::score::{Configuration, Report, share};
use retrieval::set::{Catalogue, JudgedQuery, SetResult, ToolName};

/// The approximate number of requests for each size.
const REQUESTS_MAX: usize = 160;

/// Prints a line for each size and configuration.
pub(crate) fn board(
    tools: &[Value],
    requests: &[JudgedQuery],
    texts: Option<&str>,
    sizes: &[usize],
    configurations: &[&Configuration],
) -> SetResult<()> {
    let (served, foreign): (Vec<_>, Vec<_>) = requests
        .iter()
        .cloned()
        .partition(|it| !it.relevant.is_empty());
    let step = served.len().div_ceil(REQUESTS_MAX).max(1);
    let served: Vec<JudgedQuery> = served.into_iter().step_by(step).collect();
    for &size in sizes {
        let mut chunks: Vec<Vec<JudgedQuery>> = Vec::new();
        for request in &served {
            let fits = |chunk: &&mut Vec<JudgedQuery>| {
                let needed: usize = chunk.iter().map(|it| it.relevant.len()).sum();
                let is_near = size > 100 || chunk[0].relevant[0].0 == request.relevant[0].0;
                is_near && needed + request.relevant.len() <= size / 4
            };
            match chunks.last_mut().filter(fits) {
                Some(chunk) => chunk.push(request.clone()),
                None => chunks.push(vec![request.clone()]),
            }
        }
        for configuration in configurations {
            let (mut refused, mut first, mut five) = (0.0, 0.0, 0.0);
            let (mut sure, mut asked) = (0.0, 0);
            for (number, chunk) in chunks.iter().enumerate() {
                let catalogue = Catalogue::of(&draw(tools, chunk, size, number))?;
                if let Some(texts) = texts {
                    catalogue.enrich(texts)?;
                }
                let every = chunks.len().div_ceil(foreign.len().max(1)).max(1);
                let foreign = foreign.iter().skip(number / every).step_by(chunks.len());
                let all: Vec<JudgedQuery> = chunk.iter().chain(foreign).cloned().collect();
                let report = Report::of(&catalogue, &all, configuration, 0)?;
                let weight = share(chunk.len(), 1);
                refused += weight * report.false_refusals;
                first += weight * report.marks.recall[0];
                five += weight * report.marks.recall[2];
                let without = all.len() - chunk.len();
                sure += share(without, 1) * report.false_offers.unwrap_or_default();
                asked += without;
            }
            let all = share(served.len(), 1);
            println!(
                "{:12} {size:5} tools, {:4} catalogues: r@1 {:.3}, r@5 {:.3}, refused {:.3}; served by none, sure {:.3} of {asked}",
                configuration.name,
                chunks.len(),
                first / all,
                five / all,
                refused / all,
                sure / share(asked.max(1), 1),
            );
        }
    }
    Ok(())
}

/// Returns a catalogue with the tools that serve the requests.
fn draw(tools: &[Value], chunk: &[JudgedQuery], size: usize, number: usize) -> Vec<Value> {
    let name = |tool: &Value| -> ToolName {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        (text("server"), text("name"))
    };
    let wanted: BTreeSet<&ToolName> = chunk.iter().flat_map(|it| &it.relevant).collect();
    let servers: BTreeSet<&String> = wanted.iter().map(|(server, _)| server).collect();
    // A prime, so that each catalogue begins elsewhere.
    let from = number * 211 % tools.len().max(1);
    let others = tools[from..].iter().chain(&tools[..from]);
    let rank = |tool: &&Value| {
        let name = name(tool);
        match (wanted.contains(&name), servers.contains(&name.0)) {
            (true, _) => 0,
            (_, true) => 1,
            _ => 2,
        }
    };
    let mut drawn: Vec<&Value> = others.collect();
    drawn.sort_by_key(rank);
    let own = drawn.iter().filter(|it| rank(it) < 2).count();
    // At most 60 % are of the same servers.
    let kept = own.min((size * 3 / 5).max(wanted.len()).max(size.min(5)));
    drawn.drain(kept..own);
    drawn.truncate(size);
    drawn.into_iter().cloned().collect()
}
