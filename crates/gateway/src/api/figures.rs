//! Figures of the last days.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use files::clock::now_ms;
use registry::Generation;
use serde::{Deserialize, Serialize};
use telemetry::{By, Figures};

use super::{blocking::run_blocking, error::ApiError};
use crate::gateway::Gateway;

/// The days of figures if the query does not say, today included.
pub const DAYS_DEFAULT: u64 = 30;
const DAYS_MAX: u64 = 90;
const TOP_DEFAULT: usize = 1000;

/// The figures of some days.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FiguresAnswer {
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// The number of lines that are left out.
    pub more: usize,
    /// The calls by category, the most called first.
    pub categories: Vec<CategoryFigures>,
    /// False if statistics are off: these are of the time before.
    pub is_on: bool,
}

/// The calls of a category.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CategoryFigures {
    /// Its name.
    pub name: String,
    /// Its calls.
    pub calls: u64,
}

/// A selection of figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FiguresQuery {
    /// The grouping.
    pub by: Option<By>,
    /// The number of days, including today; 90 are kept.
    pub days: Option<u64>,
    /// The number of lines.
    pub top: Option<usize>,
}

/// Reads figures.
pub async fn read_figures(
    gateway: &Arc<Gateway>,
    asked: FiguresQuery,
) -> Result<FiguresAnswer, ApiError> {
    let by = asked.by.unwrap_or_default();
    let generation = gateway.catalog.generation().await?;
    run_blocking(gateway, move |gateway| {
        gateway.flush_records();
        let days = asked.days.unwrap_or(DAYS_DEFAULT).clamp(1, DAYS_MAX);
        let settings = gateway.settings();
        let folder = settings.state_dir.join("stats");
        let mut figures = telemetry::read_stats(&folder, by, days, now_ms())?;
        let by_tool = telemetry::read_stats(&folder, By::Tool, days, now_ms())?;
        let top = asked.top.unwrap_or(TOP_DEFAULT);
        let more = figures.lines.len().saturating_sub(top);
        figures.lines.truncate(top);
        let mut categories = count_by_category(&generation, &by_tool);
        categories.truncate(top);
        Ok(FiguresAnswer {
            figures,
            more,
            categories,
            is_on: settings.keeps_stats,
        })
    })
    .await
}

/// Counts the calls of known tools of servers by category, the most called first.
fn count_by_category(generation: &Generation, by_tool: &Figures) -> Vec<CategoryFigures> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &by_tool.lines {
        let entry = generation.find(&line.name).ok();
        if let Some(entry) = entry.filter(|it| !it.at.server.is_built_in()) {
            *counts.entry(&entry.category).or_default() += line.calls;
        }
    }
    let figures = |(name, calls): (&str, u64)| CategoryFigures {
        name: name.to_owned(),
        calls,
    };
    let mut counts: Vec<_> = counts.into_iter().map(figures).collect();
    counts.sort_by_key(|it| Reverse(it.calls));
    counts
}
