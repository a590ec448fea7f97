//! The arguments of `proxy add`.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::cli::complete::complete_recipes;

const EXAMPLES: &str = "\
Examples:
  proxy add memory                                           from a recipe; `proxy recipes` lists them
  proxy add filesystem ~/projects                            with the value that the recipe needs
  proxy add registry:io.github.upstash/context7              from a registry of MCP
  proxy add notes -- npx -y notes-mcp --folder ~/notes
  proxy add issues --env ISSUES_TOKEN -- uvx issues-mcp      with a token from the environment
  proxy add docs https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'";

/// Add a server to the configuration, and ask it for its tools
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Name: lower-case letters, digits and `-` [default: derived from the command or address]; or
    /// `registry:NAME`, `registry:NAME@VERSION`
    #[arg(add = ArgValueCompleter::new(complete_recipes))]
    pub(super) name: Option<String>,
    /// Address of a remote server; or, for a recipe, the value that it needs
    #[arg(value_name = "URL|VALUE")]
    pub(super) url: Option<String>,
    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Variable of the server: NAME=VALUE, or NAME to read it from the environment at each start
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// Value that the recipe needs; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Name for a server that is added by its recipe
    #[arg(long = "as", value_name = "NAME")]
    pub(super) alias: Option<String>,
    #[arg(long, value_name = "URL")]
    #[arg(
        help = "Registry of `registry:NAME`: an address with the API v0.1 [default: the official one] [env: PROXY_REGISTRY]"
    )]
    pub(super) from: Option<String>,
    /// How to start or reach a server of a registry: npm, pypi, docker or remote [default: the first]
    #[arg(long, value_name = "KIND")]
    pub(super) via: Option<String>,
    /// Add a server of a registry without asking
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Header for the address; `${VAR}` in it is replaced at each start
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(super) header: Vec<String>,
    /// Working folder of the server
    #[arg(long, value_name = "FOLDER")]
    pub(super) cwd: Option<String>,
    /// Category of its tools, for searches
    #[arg(long)]
    pub(super) category: Option<String>,
    /// Tag of its tools, for searches; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// Start one process per client, in the client's folder
    #[arg(long)]
    pub(super) per_client: bool,
    /// Add the server disabled, and do not ask it for its tools
    #[arg(long)]
    pub(super) disabled: bool,
}
