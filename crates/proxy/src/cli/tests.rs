//! Help, former commands, and the fast path of `serve`.

use std::ffi::OsString;

use clap::Parser as _;

use super::{
    CommandLine, parse_serve,
    removed::{COMMANDS, replace_command},
};

/// The screen that the help of the program fits, whatever terminal runs the tests.
const COLUMNS: usize = 80;
const LINES: usize = 40;

/// Commands that the list leaves out, and `docs/commands.md` has.
const OTHERS: &[&str] = &["demo", "generate", "enrich"];

fn help(words: &str, columns: usize) -> String {
    help_of(super::command(), words, columns)
}

fn help_of(command: clap::Command, words: &str, columns: usize) -> String {
    let words = ["proxy"].into_iter().chain(words.split_whitespace());
    let asked = command
        .term_width(columns)
        .try_get_matches_from(words.chain(["--help"]));
    let help = asked.expect_err("help ends the parsing").render();
    let lines = help.to_string();
    let lines: Vec<&str> = lines.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Every command that a person may type, with the words before it.
fn all_commands() -> Vec<(String, clap::Command)> {
    let mut commands = vec![(String::new(), super::command())];
    let mut nth = 0;
    while let Some((words, command)) = commands.get(nth).cloned() {
        let typed = command
            .get_subcommands()
            .filter(|it| !it.is_hide_set() || words.is_empty() && OTHERS.contains(&it.get_name()));
        commands.extend(typed.map(|it| (format!("{words} {}", it.get_name()), it.clone())));
        nth += 1;
    }
    commands
}

/// Returns the content of `docs/commands.md`: the help of every command, by groups.
fn document() -> String {
    let without_global = || {
        super::command().mut_args(|it| {
            let is_global = it.is_global_set();
            it.hide(is_global)
        })
    };
    let mut text = format!(
        "# Commands\n\nThe help of every command. Written by `PROXY_WRITE_DOCS=1 cargo test --workspace --lib \
         commands_are_documented`.\n\n```text\n{}\n\n{}\n```\n",
        help("", COLUMNS),
        super::EXIT_CODES
    );
    let others = [("Not in the list", OTHERS)];
    for (group, names) in super::groups::GROUPS.iter().chain(&others) {
        text.push_str(&format!("\n## {group}\n"));
        for name in *names {
            let is_of = |words: &str| words.split_whitespace().next() == Some(name);
            for (words, _) in all_commands().iter().filter(|(words, _)| is_of(words)) {
                let help = help_of(without_global(), words, COLUMNS);
                text.push_str(&format!("\n### `proxy{words}`\n\n```text\n{help}\n```\n"));
            }
        }
    }
    text
}

#[test]
fn commands_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    if std::env::var_os("PROXY_WRITE_DOCS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let again = "PROXY_WRITE_DOCS=1 cargo test --workspace --lib commands_are_documented";
    assert!(
        committed == document(),
        "docs/commands.md is outdated: {again}"
    );
}

#[test]
fn what_clients_configurations_name_is_read_as_clap_reads_it() {
    for words in [&["proxy", "serve"][..], &["proxy", "serve", "--standalone"]] {
        let read = CommandLine::try_parse_from(words).unwrap();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let known = parse_serve(&words).unwrap();
        assert_eq!(format!("{known:?}"), format!("{read:?}"));
    }
    assert!(parse_serve(&["proxy", "serve", "--http"].map(OsString::from)).is_none());
}

#[test]
fn the_help_of_the_program_fits_a_screen() {
    let help = help("", COLUMNS);
    assert!(help.lines().count() < LINES, "{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= COLUMNS, "{line}");
    }
    assert!(help.contains("proxy demo"), "{help}");
    let commands = super::command();
    let shown = commands.get_subcommands().filter(|it| !it.is_hide_set());
    let shown = shown.count();
    assert!(shown <= 24, "{shown}");
    let below: usize = commands
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .map(|it| it.get_subcommands().filter(|it| !it.is_hide_set()).count())
        .sum();
    assert!(below <= 22, "{below}");
}

#[test]
fn tables_and_examples_of_every_help_fit_eighty_columns() {
    for (words, command) in all_commands() {
        let examples = command.get_after_help();
        let examples = examples.map(ToString::to_string).unwrap_or_default();
        let wide = help(&words, 1_000);
        let table = wide.lines().skip_while(|it| *it != "Commands:");
        let table = table.take_while(|it| !it.is_empty());
        for line in examples.lines().chain(table) {
            assert!(line.chars().count() <= COLUMNS, "proxy{words}: {line}");
        }
    }
}

#[test]
fn global_options_end_every_help_under_one_heading() {
    for (words, _) in all_commands() {
        let help = help(&words, COLUMNS);
        let (_, options) = help.rsplit_once("\nGlobal options:\n").unwrap();
        assert!(
            options.contains("--config") && options.contains("--quiet") && !options.contains(":\n"),
            "proxy{words}: {options}"
        );
    }
}

fn replaced(line: &str) -> Option<Vec<String>> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let (words, _) = replace_command(&words)?;
    let words = words.into_iter().map(|it| it.into_string().unwrap());
    Some(words.collect())
}

#[test]
fn a_former_command_is_read_as_the_one_that_replaces_it() {
    for (old, new) in COMMANDS {
        let new: Vec<String> = new
            .split(' ')
            .map(|it| it.trim_matches('\'').into())
            .collect();
        // One of these is what the command needs.
        let endings = ["", " bash", " bash zsh"];
        let is_read = endings.iter().any(|ending| {
            let words = replaced(&format!("proxy --log info {old}{ending} --json")).unwrap();
            assert_eq!(words[..3], ["proxy", "--log", "info"]);
            assert_eq!(words[3..][..new.len()], new);
            CommandLine::try_parse_from(words).is_ok()
        });
        assert!(is_read, "{old}");
        let typed = ["proxy"].into_iter().chain(old.split(' '));
        assert!(CommandLine::try_parse_from(typed).is_err(), "{old}");
    }
}

#[test]
fn former_options_and_arguments_are_found_anywhere() {
    for (old, new) in [
        (
            "proxy list --standalone git",
            "proxy search * --server git --standalone",
        ),
        (
            "proxy list --config f --json",
            "proxy search * --config f --json",
        ),
        (
            "proxy -v list --json --categories",
            "proxy -v search --categories --json",
        ),
        ("proxy read --grep x r1", "proxy call --handle --grep x r1"),
        ("proxy usage --top 3", "proxy stats --learned --top 3"),
    ] {
        assert_eq!(replaced(old).unwrap().join(" "), new);
    }
    for kept in [
        "proxy serve",
        "proxy",
        "proxy --log list",
        "proxy search list",
        "proxy audit --tool verify",
    ] {
        assert_eq!(replaced(kept), None, "{kept}");
    }
}
