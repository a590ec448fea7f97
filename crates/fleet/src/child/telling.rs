//! Selects the line of a child's stderr that explains why it ended: programs print it first, in the
//! middle or last, among many other lines.

/// The line that explains the failure, and a hint to fix it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Telling {
    pub(super) line: String,
    pub(super) hint: Option<String>,
}

/// Returns the line of a child's output that explains the failure, if it wrote anything.
pub(super) fn find_telling(lines: &[&str]) -> Option<Telling> {
    let readers = [of_npm, of_uv, of_docker, of_python, of_node, of_any];
    let line = readers.iter().find_map(|read| read(lines))?;
    let hint = HINTS.iter().find(|(words, _)| line.contains(words));
    let hint = hint.map(|(_, hint)| *hint);
    let hint = hint.or_else(|| wants_variable(&line).then_some(SET_VARIABLE));
    let hint = describe_known(&line).or(hint.map(str::to_owned));
    Some(Telling { line, hint })
}

/// Returns a hint at the recipe that serves the purpose of a package that the line reports missing.
fn describe_known(line: &str) -> Option<String> {
    let package = if line.contains(" 404 ") && line.starts_with("npm ") {
        line.split('\'').nth(1)?
    } else {
        let (before, _) = line.split_once(" was not found in the package registry")?;
        before.rsplit(' ').next()?
    };
    let name = recipes::find_instead_of(package)?.name();
    let shown = printable::one_line_of(package, PACKAGE_CHARS_MAX);
    Some(format!(
        "no package `{shown}`: look at `args`; or `proxy add {name}`, a known server for that purpose"
    ))
}

/// The longest name of a package in a hint, in characters.
const PACKAGE_CHARS_MAX: usize = 100;

/// Returns true if a line names a variable and says that it is not set.
fn wants_variable(line: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    let is_variable =
        |word: &str| word.len() > 4 && word.contains('_') && word.chars().all(is_part);
    let mut words = line.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
    let line = line.to_ascii_lowercase();
    words.any(is_variable) && MISSING.iter().any(|words| line.contains(words))
}

const MISSING: [&str; 8] = [
    "required",
    "not set",
    "missing",
    "must be set",
    "must be provided",
    "not provided",
    "undefined",
    "is unset",
];
const SET_VARIABLE: &str = "set that variable in `env` of this server";

/// Hints by text that the selected line may contain; the first match is used.
const HINTS: &[(&str, &str)] = &[
    ("npm error 404", NO_PACKAGE),
    ("npm ERR! 404", NO_PACKAGE),
    ("was not found in the package registry", NO_PACKAGE),
    ("No matching version found", NO_VERSION),
    ("there is no version of", NO_VERSION),
    ("ENOTFOUND", NO_NETWORK),
    ("EAI_AGAIN", NO_NETWORK),
    ("ETIMEDOUT", NO_NETWORK),
    ("dns error", NO_NETWORK),
    ("error sending request for url", NO_NETWORK),
    ("Could not connect, are you offline", NO_NETWORK),
    ("ENOSPC", "the disk is full: `df -h`"),
    ("Docker daemon", "start Docker, until `docker info` answers"),
    ("docker API", "start Docker, until `docker info` answers"),
    ("docker daemon", "start Docker, until `docker info` answers"),
    (
        "pull access denied",
        "no image of this name, or one that wants `docker login`: look at `args`",
    ),
    ("EBADENGINE", "install a newer Node.js"),
    (
        "ModuleNotFoundError",
        "a package is missing where this runs: install it there; or a newer one broke this: hold it \
         back (`uvx --with 'PACKAGE<2'`)",
    ),
    ("can't open file", NO_FILE),
    ("Cannot find module '/", NO_FILE),
    (
        "ImportError",
        "a newer package broke this: hold it back (`uvx --with 'PACKAGE<2'`)",
    ),
    (
        "Cannot find module",
        "the package is not whole: name another release, `PACKAGE@VERSION`",
    ),
    ("‘node’: No such file", "install Node.js"),
    ("'node': No such file", "install Node.js"),
    ("node: not found", "install Node.js"),
];
const NO_FILE: &str =
    "no such file: look at `args`; a relative path is taken from `cwd`; was it built?";
const NO_PACKAGE: &str =
    "no package of this name, or a registry that wants a login: look at `args`";
const NO_VERSION: &str = "the package has no such release: look at `args`";
const NO_NETWORK: &str = "packages cannot be downloaded: look at the network and its proxy";

/// Of npm, neither its code nor where its log is, but the sentence between them.
fn of_npm(lines: &[&str]) -> Option<String> {
    let said = lines.iter().filter_map(|line| {
        let line = line.trim();
        let text = line
            .strip_prefix("npm error")
            .or(line.strip_prefix("npm ERR!"));
        text.map(|text| (line, text.trim()))
    });
    let said: Vec<(&str, &str)> = said.filter(|(_, text)| !is_npm_label(text)).collect();
    let tells = |(_, text): &&(&str, &str)| NPM_TELLS.iter().any(|words| text.contains(words));
    let (line, _) = said.iter().find(tells).or(said.first())?;
    Some(join_words(line))
}

/// Returns true if the line is only a label of details that other lines give.
fn is_npm_label(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_log = text.starts_with("A complete log") || text.starts_with("Log files");
    let is_alone = text.split_whitespace().nth(1).is_none();
    is_log || is_alone || ["code", "errno", "syscall", "path", "dest"].contains(&first)
}

const NPM_TELLS: [&str; 4] = [
    "could not be found",
    "is not in this registry",
    "failed, reason",
    "No matching version",
];

/// For uv, the last cause: the error itself only describes the operation.
fn of_uv(lines: &[&str]) -> Option<String> {
    let is_error = |line: &&str| {
        line.trim_start().starts_with("error: ") || line.trim_start().starts_with('×')
    };
    let at = lines.iter().position(is_error)?;
    let error = lines[at].trim().trim_start_matches('×').trim();
    let mut causes = lines[at + 1..]
        .iter()
        .enumerate()
        .filter_map(|(place, line)| {
            let line = line.trim();
            let text = UV_CAUSES.iter().find_map(|mark| line.strip_prefix(mark))?;
            Some((at + 1 + place, text.trim()))
        });
    let (at, cause) = causes.next_back()?;
    // A cause continues in indented lines.
    let more = lines[at + 1..].iter().take_while(|line| {
        line.starts_with("   ") && !line.trim().is_empty() && !line.trim().starts_with("hint")
    });
    let cause = more.fold(cause.to_owned(), |text, line| {
        format!("{text} {}", line.trim())
    });
    let error = error.trim_end_matches(':');
    Some(join_words(&format!("{error}: {cause}")))
}

const UV_CAUSES: [&str; 4] = ["cause:", "Caused by:", "╰─▶", "├─▶"];

fn of_docker(lines: &[&str]) -> Option<String> {
    let line = lines.iter().find(|line| line.starts_with("docker: "))?;
    Some(join_words(line))
}

/// Of Python, the exception: the first line after the last traceback that is not indented.
fn of_python(lines: &[&str]) -> Option<String> {
    // In an exception group, each line begins with characters that show the nesting.
    let inside: Vec<&str> = (lines.iter())
        .map(|line| {
            line.trim_start_matches([' ', '+', '-'])
                .strip_prefix('|')
                .map_or(*line, |rest| rest.strip_prefix(' ').unwrap_or(rest))
        })
        .collect();
    let is_begin = |line: &&str| {
        line.trim_start_matches([' ', '+', '|', '-'])
            .starts_with("Traceback (most recent call last)")
    };
    let at = inside.iter().rposition(is_begin)?;
    let exception = inside[at + 1..]
        .iter()
        .find(|line| line.starts_with(|c: char| c.is_alphabetic() || c == '_'))?;
    Some(join_words(exception))
}

/// For Node.js, the error before its stack; for a program that Node.js only started, the earlier
/// output of that program.
fn of_node(lines: &[&str]) -> Option<String> {
    let is_frame = |line: &&str| {
        line.starts_with(' ') && line.trim_start().starts_with("at ") && line.contains(':')
    };
    let stack = lines.iter().position(is_frame)?;
    let is_head = |line: &&str| {
        let first = line.split([':', ' ']).next().unwrap_or_default();
        first.ends_with("Error") || first == "Uncaught"
    };
    let head = lines[..stack].iter().rposition(is_head)?;
    let is_launcher = LAUNCHERS.iter().any(|words| lines[head].contains(words));
    let is_frame_of_code = |line: &&str| {
        let text = line.trim();
        text.is_empty() || line.starts_with([' ', '\t']) || text.starts_with("node:") || text == "^"
    };
    let before = lines[..head]
        .iter()
        .filter(|line| !is_frame_of_code(line) && !is_chatter(line));
    let before: Vec<&str> = before.copied().collect();
    let cause = of_any(&before).filter(|_| is_launcher);
    Some(join_words(cause.as_deref().unwrap_or(lines[head])))
}

const LAUNCHERS: [&str; 3] = ["Command failed", "spawn", "exited with"];

/// Of any other: the last line that begins as an error, or speaks of one, or the last at all.
fn of_any(lines: &[&str]) -> Option<String> {
    let mut filled = lines.iter().filter(|line| !line.trim().is_empty());
    let said: Vec<&&str> = filled.clone().filter(|line| !is_chatter(line)).collect();
    let begins = |line: &&&&str| {
        let line = line.trim_start().to_ascii_lowercase();
        ["error", "fatal", "panic"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let speaks = |line: &&&&str| line.to_ascii_lowercase().contains("error");
    let told = said.iter().rfind(begins).or(said.iter().rfind(speaks));
    let line = told.or(said.last()).copied().or(filled.next_back())?;
    Some(line.trim().to_owned())
}

/// Returns true if a line carries no information about this child.
fn is_chatter(line: &str) -> bool {
    let line = line.trim();
    CHATTER.iter().any(|start| line.starts_with(start))
}

const CHATTER: [&str; 6] = [
    "npm warn",
    "npm WARN",
    "npm notice",
    "Node.js v",
    "Run 'docker",
    "See 'docker",
];

fn join_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
