//! The arguments of `proxy add`.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::cli::complete::complete_recipes;

const EXAMPLES: &str = "\
Examples:
  proxy add memory                          by a recipe
  proxy add filesystem ~/projects           with the value that the recipe needs
  proxy add notes -- npx -y notes-mcp --folder ~/notes
  proxy add issues --env ISSUES_TOKEN -- uvx issues-mcp
  proxy add docs https://docs.example.com/mcp -H 'X-Key: ${DOCS_KEY}'
  proxy add registry:io.github.upstash/context7
  pbpaste | proxy add -                     what a README shows
  proxy add .mcp.json                       the servers of a file
  proxy add notes/manifest.json             a bundle that you unpacked
  proxy add tools.json                      a manifest, as [commands.ID]
  proxy add --import                        the servers of all installed clients
  proxy add --import cursor zed             the servers of two clients
  proxy add --list                          list the recipes
  proxy add --list browser screenshot       search them
  proxy add --list github                   everything known about one
  proxy add --list --registry weather       search a registry of MCP";

const FILES: &str = "Files and clients";
const RECIPES: &str = "Recipes and registries";

/// Add servers by recipe, command, address, file or client
///
/// The servers are written into the configuration, and asked for their tools. Files with servers may be
/// of any client, of a bundle, or a manifest of programs; `-` reads stdin, and JSON may be pasted as an
/// argument. No other file changes.
#[derive(Debug, Default, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct AddArgs {
    /// Name: lower-case letters, digits and `-` [default: derived from the command or address]; or
    /// `registry:NAME`, `registry:NAME@VERSION`; or a file with servers, `-`, or JSON
    #[arg(value_name = "NAME|FILE", add = ArgValueCompleter::new(complete_recipes))]
    pub(super) name: Option<String>,
    /// Address of a remote server; or, for a recipe, the values that it needs
    #[arg(value_name = "URL|VALUE")]
    pub(super) values: Vec<String>,
    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Variable of the server: NAME=VALUE, or NAME to read it from the environment at each start
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// Value that the recipe needs; may be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = RECIPES)]
    pub(super) set: Vec<String>,
    /// Name for a server that is added by its recipe
    #[arg(long = "as", value_name = "NAME")]
    pub(super) alias: Option<String>,
    #[arg(long, value_name = "URL", help_heading = RECIPES)]
    #[arg(
        help = "The registry: an address with the API v0.1 [default: the official one] [env: PROXY_REGISTRY]"
    )]
    pub(super) from: Option<String>,
    /// How to start or reach a server of a registry: npm, pypi, docker or remote [default: the first]
    #[arg(long, value_name = "KIND", help_heading = RECIPES)]
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
    /// Copy the servers of these clients and files [default: of every client]
    #[arg(long, help_heading = FILES)]
    pub(super) import: bool,
    /// Show the change of the configuration, and do not make it
    #[arg(long, help_heading = FILES)]
    pub(super) dry_run: bool,
    /// Add the servers of a project for all folders [default: for clients that work in its folder]
    #[arg(long, help_heading = FILES)]
    pub(super) everywhere: bool,
    /// List the recipes, search them by words, or print everything known about one
    #[arg(long, conflicts_with = "import", help_heading = RECIPES)]
    pub(super) list: bool,
    /// With --list: search a registry of MCP
    #[arg(long, requires = "list", help_heading = RECIPES)]
    pub(super) registry: bool,
}
