//! `proxy search`.

use clap::Args;
use gateway::shell::Verb;

use super::request;
use crate::{cli::global::Global, exit::Exit};

const EXAMPLES: &str = "\
Examples:
  proxy search create github issue
  proxy search --category files '*'
  proxy search 'select:git/git_status,git/git_diff'
  proxy search send +mail";

/// Search tools
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SearchArgs {
    /// Words; or `select:a,b`, `+word` (must match), `*` (every tool)
    #[arg(value_name = "QUERY", trailing_var_arg = false)]
    query: Vec<String>,
    /// Only tools of this category or server
    #[arg(long)]
    category: Option<String>,
    /// Only tools with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Number of hits, 1 to 20
    #[arg(
        long,
        short = 'n',
        alias = "limit",
        default_value_t = 5,
        value_name = "COUNT"
    )]
    max_results: usize,
    /// Explain the score of each hit term by term
    #[arg(long)]
    why: bool,
    /// Number of hits to skip
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    offset: usize,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
}

impl SearchArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let category = self.category.map(|name| name.trim().to_owned());
        let verb = Verb::Search {
            words: self.query.join(" ").trim().to_owned(),
            category: category.filter(|name| !name.is_empty()),
            tags: self.tags,
            limit: self.max_results,
            offset: self.offset,
            why: self.why,
        };
        request::run(global, verb, self.standalone)
    }
}
