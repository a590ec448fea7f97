//! `proxy remove`: removes servers and their rules from the configuration.

use clap::Args;
use clap_complete::ArgValueCompleter;
use config::edit::RemovedRules;

use super::edit::{edit, read};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
};

/// Remove servers and the rules that name only them
///
/// On a terminal it shows the rules and asks before it removes them. A rule or list that also names
/// other servers loses only the removed name. Patterns such as `f*` stay, and are reported. A profile
/// that `init` made to limit a server to its folder goes with the server.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Servers of the configuration
    #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    servers: Vec<String>,
    /// Keep the rules; they apply to any server that gets the name later
    #[arg(long)]
    keep_rules: bool,
}

impl RemoveArgs {
    pub(crate) fn run(mut self, global: &Global) -> anyhow::Result<Exit> {
        if !self.keep_rules && report::can_ask() {
            let mut document = read(global)?;
            let mut removed = Vec::new();
            for server in &self.servers {
                document.remove_server(server)?;
                removed.extend(document.remove_rules_of(server).removed);
            }
            if !removed.is_empty() {
                report::say(&format!(
                    "these rules and lists name the servers:\n  {}",
                    removed.join("\n  ")
                ));
                match report::ask("Remove them too? [y]es, [k]eep them, [n]o change:").as_str() {
                    "y" | "yes" => {}
                    "k" | "keep" => self.keep_rules = true,
                    _ => return Err(Exit::Nothing.with("nothing was changed")),
                }
            }
        }
        edit(global, |document| {
            let mut told = vec![format!("removed: {}", self.servers.join(", "))];
            for server in &self.servers {
                if let Some(profile) = document.remove_server(server)? {
                    told.push(format!(
                        "removed [profiles.{profile}], which limited `{server}` to folders"
                    ));
                }
                let rules = if self.keep_rules {
                    RemovedRules {
                        stay: document.list_rules_of(server),
                        ..RemovedRules::default()
                    }
                } else {
                    document.remove_rules_of(server)
                };
                let removed = rules.removed.into_iter();
                told.extend(removed.map(|rule| format!("removed `{server}` from {rule}")));
                let stay = rules.stay.into_iter();
                told.extend(
                    stay.map(|rule| format!("kept, and applies to any `{server}`: {rule}")),
                );
            }
            Ok(told.join("\n"))
        })
    }
}
