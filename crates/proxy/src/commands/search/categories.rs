//! `proxy search --categories`: the number of tools of each category and tag.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use gateway::{Gateway, list_offered};
use serde_json::{Value, json};

use crate::{cli::global::Global, exit::Exit, report, table::wrap};

/// The tools of a category, and of the categories within it.
#[derive(Default)]
struct CategoryCount<'a> {
    tools: usize,
    within: BTreeMap<&'a str, usize>,
}

pub(super) async fn print_categories(
    gateway: &Arc<Gateway>,
    global: &Global,
) -> anyhow::Result<Exit> {
    let generation = gateway.catalog.generation().await?;
    let mut categories: BTreeMap<&str, CategoryCount<'_>> = BTreeMap::new();
    let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in list_offered(&generation) {
        let coarse = registry::category_within(&entry.category).unwrap_or(&entry.category);
        let counted = categories.entry(coarse).or_default();
        counted.tools += 1;
        *counted.within.entry(&entry.category).or_default() += 1;
        for tag in &entry.tags {
            *tags.entry(tag).or_default() += 1;
        }
    }
    let is_empty = categories.is_empty();
    let mut categories: Vec<_> = categories.into_iter().collect();
    categories.sort_by_key(|(_, counted)| Reverse(counted.tools));
    if global.json {
        let categories = categories.iter().map(
            |(name, counted)| json!({"name": name, "tools": counted.tools, "within": counted.within}),
        );
        let categories: Value = categories.collect();
        report::print_json(&json!({"categories": categories, "tags": tags}));
    } else if !is_empty {
        let mut lines = Vec::new();
        for (name, counted) in &categories {
            lines.push(format!("{name} {}", counted.tools));
            let within = sort_by_count(&counted.within).into_iter();
            let within = within.filter(|(inner, _)| inner != name);
            lines.extend(within.map(|(inner, count)| format!("  {inner} {count}")));
        }
        let tags = sort_by_count(&tags).into_iter();
        let tags: Vec<String> = tags.map(|(tag, count)| format!("{tag} {count}")).collect();
        if !tags.is_empty() {
            lines.push(wrap(&format!("tags: {}", tags.join(", ")), 2));
        }
        report::print_data(&lines.join("\n"));
    }
    Ok(Exit::of_hit(!is_empty))
}

/// The largest count first.
fn sort_by_count<'a>(counts: &BTreeMap<&'a str, usize>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<_> = counts.iter().map(|(name, it)| (*name, *it)).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}
