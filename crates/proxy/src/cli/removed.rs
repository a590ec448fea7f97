//! Former commands and options, and their replacements.

use std::ffi::OsString;

/// Former commands, each with the words that replace it. Both will be deleted with the next release. An option may
/// stand anywhere after its command, and NAME is the first argument. A row with more words stands before a row with
/// fewer.
pub(super) const COMMANDS: [(&str, &str); 30] = [
    ("allow", "policy allow"),
    ("audit verify", "audit --verify"),
    ("categories", "search --categories"),
    ("daemon logs", "logs"),
    ("daemon socket", "daemon run --print-socket"),
    ("daemon status", "status"),
    ("disable", "servers disable"),
    ("enable", "servers enable"),
    ("export", "generate entries"),
    ("generate completions", "completions"),
    ("history", "review --history"),
    ("import", "add --import"),
    ("list --categories", "search --categories"),
    ("list NAME", "search '*' --server NAME"),
    ("list", "search '*'"),
    ("lock", "review --lock"),
    ("log", "logs"),
    ("logout", "login --end"),
    ("man", "generate man"),
    ("read", "call --handle"),
    ("recipes", "add --list"),
    ("rename", "servers rename"),
    ("restart", "servers restart"),
    ("snippet", "generate snippet"),
    ("tokens", "servers --tokens"),
    ("types", "run --types"),
    ("usage reset", "stats --learned --reset"),
    ("usage", "stats --learned"),
    ("verify --diff", "review --verify --lines"),
    ("verify", "review --verify"),
];

/// Global options that have a value.
const WITH_VALUE: [&str; 3] = ["--config", "--state-dir", "--log"];

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

/// Returns the words with a former command replaced, and the sentence that says so.
pub(super) fn replace_command(words: &[OsString]) -> Option<(Vec<OsString>, String)> {
    let (program, words) = words.split_first()?;
    let (before, words) = words.split_at(find_argument(words)?);
    COMMANDS.iter().find_map(|(old, new)| {
        let replaced = replace(words, old, new)?;
        let words = std::iter::once(program)
            .chain(before)
            .cloned()
            .chain(replaced);
        Some((
            words.collect(),
            format!("`proxy {old}` is now `proxy {new}`"),
        ))
    })
}

/// Replaces the parts of `old` in words that begin with a command.
fn replace(words: &[OsString], old: &str, new: &str) -> Option<Vec<OsString>> {
    let mut rest = words.to_vec();
    let mut name = None;
    for part in old.split(' ') {
        let at = match part {
            "NAME" => find_argument(&rest),
            option if option.starts_with("--") => rest.iter().position(|word| word == option),
            command => rest.first().filter(|word| *word == command).map(|_| 0),
        };
        let word = rest.remove(at?);
        if part == "NAME" {
            name = Some(word);
        }
    }
    let new = new.split(' ').map(|part| match (part, &name) {
        ("NAME", Some(name)) => name.clone(),
        _ => part.trim_matches('\'').into(),
    });
    Some(new.chain(rest).collect())
}

/// Returns the place of the first word that is neither an option nor the value of a global option.
fn find_argument(words: &[OsString]) -> Option<usize> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let is_value = |at: usize| at > 0 && WITH_VALUE.iter().any(|option| words[at - 1] == *option);
    (0..words.len()).find(|at| !is_option(&words[*at]) && !is_value(*at))
}

pub(super) fn find_option(option: &str) -> Option<&'static str> {
    let (_, hint) = OPTIONS.into_iter().find(|(name, _)| *name == option)?;
    Some(hint)
}
