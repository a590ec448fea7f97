//! Commands and options of earlier versions, or that people expect, and their replacements.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

/// Commands that do not exist, each with the one that does: removed ones, which will be deleted with the
/// next release, and those that people look for.
pub(super) const COMMANDS: [(&str, &str); 15] = [
    ("allow", "policy allow"),
    ("categories", "list --categories"),
    ("completions", "generate completions"),
    ("disable", "servers disable"),
    ("enable", "servers enable"),
    ("export", "generate entries"),
    ("history", "review --history"),
    ("man", "generate man"),
    ("rename", "servers rename"),
    ("restart", "servers restart"),
    ("snippet", "generate snippet"),
    ("tokens", "servers --tokens"),
    ("types", "run --types"),
    ("usage reset", "stats --learned --reset"),
    ("usage", "stats --learned"),
];

/// Removed options, each with a hint.
const OPTIONS: [(&str, &str); 2] = [
    (
        "--find",
        "`--find` was removed: `--grep REGEX` prints the lines that match",
    ),
    (
        "--pointer",
        "`--pointer` was removed: `--select JQ` prints values, such as `.items[3].name`",
    ),
];

/// Returns the error for a removed command, whatever its arguments.
pub(super) fn explain_command(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_called = |old: &str| {
        let mut parts = old.split(' ');
        parts.next() == Some(name) && parts.all(|part| words.iter().any(|word| word == part))
    };
    let (old, new) = COMMANDS.iter().find(|(old, _)| is_called(old))?;
    Some(format!("error: \"{old}\" is now \"{new}\""))
}

pub(super) fn find_option(option: &str) -> Option<&'static str> {
    let (_, hint) = OPTIONS.into_iter().find(|(name, _)| *name == option)?;
    Some(hint)
}
