//! `proxy list`: every tool, or the number of tools of each category and tag.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::{
    Gateway, list_offered,
    shell::{ShellRequest, Verb},
};
use serde_json::{Value, json};

use super::{
    request::{self, print},
    with_surveyed_gateway,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
    table::wrap,
};

/// List every tool, or count tools by category and tag
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only the tools of this server or category
    #[arg(value_name = "SERVER|CATEGORY", add = ArgValueCompleter::new(complete_servers))]
    of: Option<String>,
    /// Count the tools of each category and tag
    #[arg(long, conflicts_with = "of")]
    categories: bool,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
}

impl ListArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.categories {
            return with_surveyed_gateway(global, async |gateway| {
                print_categories(gateway, global).await
            });
        }
        let json = global.json;
        let verb = Verb::List(self.of);
        let request = ShellRequest { verb, json };
        request::run_with(global, request, self.standalone, |mut reply| {
            if !json {
                reply.data = wrap(&reply.data, 4);
            }
            Ok(print(&reply))
        })
    }
}

/// The tools of a category, and of the categories within it.
#[derive(Default)]
struct CategoryCount<'a> {
    tools: usize,
    within: BTreeMap<&'a str, usize>,
}

async fn print_categories(gateway: &Arc<Gateway>, global: &Global) -> anyhow::Result<Exit> {
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
