//! The commands in the help, grouped by what a person wants to do.

use clap::Command;

/// Every command that is shown, once.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Setup", &["init", "import"]),
    (
        "Servers",
        &[
            "recipes", "add", "remove", "servers", "log", "login", "logout", "secret",
        ],
    ),
    ("Serving", &["serve", "status", "web", "daemon", "cluster"]),
    (
        "Tools",
        &["search", "describe", "call", "run", "read", "list"],
    ),
    ("Trust", &["review", "lock", "verify", "policy", "audit"]),
    ("Index and statistics", &["reindex", "enrich", "stats"]),
    (
        "This program",
        &["doctor", "demo", "config", "generate", "help"],
    ),
];

/// Renders one line per command, under the name of its group.
pub(super) fn render(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let widest = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = match about {
                Some(about) => about.to_string(),
                None => "Print this help, or the help of a command".to_owned(),
            };
            text.push_str(&format!("  {name:widest$}  {about}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::GROUPS;
    use crate::cli::CommandLine;

    #[test]
    fn every_command_is_in_one_group() {
        let ours = CommandLine::command();
        let shown = ours.get_subcommands().filter(|it| !it.is_hide_set());
        let mut shown: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut grouped: Vec<&str> = grouped.filter(|it| *it != "help").collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    #[test]
    fn the_list_of_commands_fits_eighty_columns() {
        let list = super::render(&CommandLine::command());
        for line in list.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn every_argument_has_a_help_text() {
        let ours = CommandLine::command();
        let mut commands = vec![&ours];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|it| !it.is_hide_set()));
            for argument in command.get_arguments() {
                assert!(
                    argument.is_hide_set() || argument.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
        }
    }
}
