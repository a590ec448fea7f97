//! `proxy search`: the tools that match a query, every tool, or their categories.

mod categories;

use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::api::{ApiReply, ApiRequest, ListedTool, SearchRequest};
use serde_json::json;

use super::{
    api::{Api, Daemon, explain_reply, with_api},
    with_surveyed_gateway,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
    table::wrap,
};

const HITS_DEFAULT: usize = 5;

const EXAMPLES: &str = "\
Examples:
  proxy search create github issue
  proxy search '*'                      list every tool
  proxy search '*' --server files       list the tools of a server
  proxy search --categories             count the tools of each category
  proxy search 'select:git/git_status,git/git_diff'
  proxy search send +mail";

/// Find tools by words, or list all of them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SearchArgs {
    /// Words; `*` lists every tool, one a line; or `select:a,b`, `+word` (must match)
    #[arg(value_name = "QUERY", trailing_var_arg = false)]
    query: Vec<String>,
    /// Only tools of this category or server
    #[arg(long, visible_alias = "server", add = ArgValueCompleter::new(complete_servers))]
    category: Option<String>,
    /// Only tools with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Number of hits, 1 to 20 [default: 5; `*` alone lists every tool]
    #[arg(long, short = 'n', alias = "limit", value_name = "COUNT")]
    max_results: Option<usize>,
    /// Number of hits to skip
    #[arg(long, value_name = "COUNT")]
    offset: Option<usize>,
    /// Explain the score of each hit term by term
    #[arg(long)]
    why: bool,
    /// Count the tools of each category and tag
    #[arg(long, conflicts_with_all = ["query", "category", "tags", "max_results", "offset", "why"])]
    categories: bool,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
}

impl SearchArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.categories {
            return with_surveyed_gateway(global, async |gateway| {
                categories::print_categories(gateway, global).await
            });
        }
        let words = self.query.join(" ").trim().to_owned();
        let category = self.category.map(|name| name.trim().to_owned());
        let category = category.filter(|name| !name.is_empty());
        let is_list = words == "*"
            && self.tags.is_empty()
            && self.max_results.or(self.offset).is_none()
            && !self.why;
        with_api(global, Daemon::unless(self.standalone), async |api| {
            if is_list {
                return list(api, global, category).await;
            }
            let request = SearchRequest {
                words,
                category,
                tags: self.tags,
                limit: self.max_results.unwrap_or(HITS_DEFAULT),
                offset: self.offset.unwrap_or_default(),
                why: self.why,
                client: None,
            };
            api.survey().await?;
            let reply = api.ask(ApiRequest::Search(request), Exit::Nothing).await?;
            let ApiReply::Search(reply) = reply else {
                return Err(explain_reply(&reply));
            };
            if global.json {
                report::print_json(&reply.hits);
            } else {
                report::print_data(&reply.text);
            }
            Ok(Exit::of_hit(reply.is_hit))
        })
    }
}

async fn list(api: &mut Api, global: &Global, of: Option<String>) -> anyhow::Result<Exit> {
    api.survey_for_list(of.as_deref()).await?;
    let reply = api
        .ask(ApiRequest::ListTools(of.clone()), Exit::Nothing)
        .await?;
    let ApiReply::Tools(tools) = reply else {
        return Err(explain_reply(&reply));
    };
    Ok(print_list(global, &tools, of.as_deref()))
}

/// Prints tools, one a line.
pub(super) fn print_list(global: &Global, tools: &[ListedTool], of: Option<&str>) -> Exit {
    if global.json {
        let tool = |it: &ListedTool| json!({"name": it.name, "purpose": it.purpose, "category": it.category});
        report::print_json(&tools.iter().map(tool).collect());
    } else if !tools.is_empty() {
        let line =
            |it: &ListedTool| format!("{} - {}{}", it.name, it.purpose, show_marks(&it.marks));
        let lines: Vec<String> = tools.iter().map(line).collect();
        report::print_data(&wrap(&lines.join("\n"), 4));
    }
    if tools.is_empty() {
        report::say(&of.map_or_else(|| "no tools".to_owned(), |of| format!("no tools in `{of}`")));
    }
    Exit::of_hit(!tools.is_empty())
}

/// ` [destructive] [deprecated]`.
pub(super) fn show_marks(marks: &[String]) -> String {
    let marks = marks.iter().map(|mark| format!(" [{mark}]"));
    marks.collect()
}
