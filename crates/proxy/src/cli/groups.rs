//! The commands in the help, grouped by what a person wants to do.

use clap::Command;

/// Every command that is listed, once; the most used first.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Setup",
        &["init", "add", "servers", "login", "secret", "remove"],
    ),
    ("Tools", &["search", "call", "describe", "run"]),
    (
        "State",
        &["status", "logs", "doctor", "stats", "audit", "web"],
    ),
    ("Rules", &["review", "policy", "config"]),
    (
        "Serving",
        &["serve", "daemon", "reindex", "cluster", "completions"],
    ),
];

/// Renders one line per command, with the name of its group before the first; and an example.
pub(super) fn render(command: &Command) -> String {
    let about = |name: &str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        about.map_or_else(String::new, ToString::to_string)
    };
    let mut text = String::new();
    for (group, names) in GROUPS {
        for (nth, name) in names.iter().enumerate() {
            let group = if nth == 0 { group } else { "" };
            text.push_str(&format!("{group:9} {name:12} {}\n", about(name)));
        }
    }
    text.push_str("Example   proxy demo   Play a session with a built-in server\n");
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
        let mut grouped: Vec<&str> = grouped.collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
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
