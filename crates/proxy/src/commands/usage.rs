//! `proxy usage`, `proxy categories`: the counts of calls.

use std::{collections::BTreeMap, sync::Arc};

use gateway::Gateway;
use serde_json::{Value, json};

use crate::{cli::Global, exit::Exit, report, table::wrap};

pub(super) fn print_usage(gateway: &Gateway, global: &Global) -> Exit {
    let calls = gateway.catalog.usage.calls();
    let feedback = gateway.catalog.feedback.count();
    if global.json {
        let tools = calls.iter();
        let tools = tools.map(|it| {
            json!({"tool": it.tool, "ok": it.ok, "failed": it.failed, "last_used_at": it.last})
        });
        report::print_json(&json!({"tools": tools.collect::<Vec<_>>(), "learned": feedback}));
        return Exit::Success;
    }
    let lines = calls.iter().map(|it| match it.failed {
        0 => format!("{}: {}", it.tool, it.ok),
        failed => format!("{}: {} ({failed} failed)", it.tool, it.ok + failed),
    });
    let mut lines: Vec<String> = lines.collect();
    lines.push(format!("learned: {feedback} pairs of a word and a tool"));
    report::print_data(&lines.join("\n"));
    Exit::Success
}

pub(super) fn reset(gateway: &Gateway) -> anyhow::Result<Exit> {
    gateway.catalog.usage.reset()?;
    gateway.catalog.feedback.reset()?;
    report::say("forgotten: counts of calls, and what was learned from them");
    Ok(Exit::Success)
}

pub(super) async fn print_categories(
    gateway: &Arc<Gateway>,
    global: &Global,
) -> anyhow::Result<Exit> {
    let generation = gateway.catalog.generation().await?;
    let (mut coarse, mut fine) = (BTreeMap::new(), BTreeMap::new());
    let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in generation.entries() {
        let within = registry::category_within(&entry.category).unwrap_or(&entry.category);
        *coarse.entry(within).or_insert(0) += 1;
        *fine.entry((within, entry.category.as_str())).or_insert(0) += 1;
        for tag in &entry.tags {
            *tags.entry(tag).or_default() += 1;
        }
    }
    if global.json {
        let of = |within: &str| -> BTreeMap<&str, usize> {
            let inside = fine.iter().filter(|((coarse, _), _)| *coarse == within);
            inside.map(|((_, name), count)| (*name, *count)).collect()
        };
        let categories = sort_most_first(&coarse).into_iter();
        let categories = categories
            .map(|(name, count)| json!({"name": name, "tools": count, "within": of(name)}));
        let categories: Vec<Value> = categories.collect();
        report::print_json(&json!({"categories": categories, "tags": tags}));
    } else {
        let mut lines = Vec::new();
        for (name, count) in sort_most_first(&coarse) {
            lines.push(format!("{name} {count}"));
            let inside = fine
                .iter()
                .filter(|((coarse, inner), _)| *coarse == name && *inner != name);
            let inside: BTreeMap<&str, usize> =
                inside.map(|((_, inner), count)| (*inner, *count)).collect();
            let inside = sort_most_first(&inside);
            lines.extend(
                inside
                    .iter()
                    .map(|(name, count)| format!("  {name} {count}")),
            );
        }
        let named = sort_most_first(&tags).into_iter();
        let named: Vec<String> = named.map(|(tag, count)| format!("{tag} {count}")).collect();
        if !named.is_empty() {
            lines.push(wrap(&format!("tags: {}", named.join(", ")), 2));
        }
        if !lines.is_empty() {
            report::print_data(&lines.join("\n"));
        }
    }
    Ok(if coarse.is_empty() {
        Exit::Nothing
    } else {
        Exit::Success
    })
}

fn sort_most_first<'a>(counts: &BTreeMap<&'a str, usize>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = counts.iter().map(|(name, it)| (*name, *it)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
