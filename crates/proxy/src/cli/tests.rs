//! Help, removed commands, and the fast path of `serve`.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser as _};

use super::{
    CommandLine, parse, parse_serve,
    removed::{COMMANDS, explain_command},
};
use crate::exit::Exit;

/// Columns, independent of the terminal that runs the tests.
const WIDTH: usize = 100;

/// Returns the help of a command, without the options that every command has.
fn help(command: &str) -> String {
    let ours = CommandLine::command().term_width(WIDTH);
    let ours = ours.mut_args(|arg| {
        let is_of_all = arg.is_global_set();
        arg.hide(is_of_all)
    });
    let words = ["proxy"].into_iter().chain(command.split_whitespace());
    let asked = ours.try_get_matches_from(words.chain(["--help"]));
    asked
        .expect_err("help ends the parsing")
        .render()
        .to_string()
}

/// Returns the content of `docs/commands.md`: the help of every command, by groups.
fn document() -> String {
    fn add(command: &clap::Command, name: &str, text: &mut String) {
        text.push_str(&format!("### `{name}`\n\n```text\n"));
        let name = name.strip_prefix("proxy ").unwrap_or(name);
        let lines = help(name);
        let lines = lines.lines().map(str::trim_end).collect::<Vec<_>>();
        text.push_str(lines.join("\n").trim_end());
        text.push_str("\n```\n\n");
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        for command in shown.filter(|it| it.get_name() != "help") {
            add(
                command,
                &format!("proxy {name} {}", command.get_name()),
                text,
            );
        }
    }
    let ours = super::command();
    let overview = ours.clone().term_width(WIDTH);
    let overview = overview.try_get_matches_from(["proxy", "--help"]);
    let overview = overview.expect_err("help ends the parsing").render();
    let mut text = format!(
        "# Commands\n\nThe help of every command. Written by `PROXY_WRITE_DOCS=1 cargo test --workspace --lib \
         commands_are_documented`.\n\n```text\n{}\n```\n\n",
        overview.to_string().trim_end()
    );
    for (group, names) in super::groups::GROUPS {
        text.push_str(&format!("## {group}\n\n"));
        for name in names.iter().filter(|it| **it != "help") {
            let command = ours.find_subcommand(name).expect("a group names commands");
            add(command, &format!("proxy {name}"), &mut text);
        }
    }
    format!("{}\n", text.trim_end())
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
fn a_removed_command_names_the_one_that_replaces_it() {
    let parse_words = |words: &str| {
        let words = ["proxy"].into_iter().chain(words.split(' '));
        super::command().try_get_matches_from(words)
    };
    for (old, new) in COMMANDS {
        for arguments in ["", " --json", " --help", " some thing --else"] {
            let line = format!("{old}{arguments}");
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = parse_words(&line).expect_err("it was removed");
            let told = explain_command(&error, &words);
            assert_eq!(told, Some(format!("error: \"{old}\" is now \"{new}\"")));
        }
        let values = ["", " bash", " bash zsh"];
        let mut lines = values.iter().map(|values| format!("{new}{values}"));
        assert!(lines.any(|line| parse_words(&line).is_ok()), "{new}");
    }
    let exit = parse(["proxy", "categories", "--json"].map(OsString::from)).err();
    assert_eq!(exit, Some(Exit::Usage));
    let other = parse_words("serch").expect_err("it never was");
    assert_eq!(explain_command(&other, &["serch".into()]), None);
}
