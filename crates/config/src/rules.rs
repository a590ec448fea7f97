//! Rules for each kind of value, whether it came from the file, a variable or a flag.

use printable::{LetterCase, Pattern};
use std::borrow::Cow;

use fleet::Template;
use printable::mask_arguments;
use serde_json::Value;
use tool::near;
use tracing_subscriber::EnvFilter;

use super::{
    keys::{Count, ValueKind, nearest},
    listen,
    mistake::{Fault, shown, shown_address},
    node_name,
};

/// A value as written, before it is checked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Written<'a> {
    Text(&'a str),
    /// A whole number; its text if it is too large for any key.
    Number(Result<i128, &'a str>),
    Switch(bool),
    /// Any other value, by the name of its type.
    Other(&'static str),
}

/// Returns the value in the form of the raw configuration, if it is valid.
pub(super) fn read(kind: &ValueKind, written: Written<'_>) -> Result<Value, Fault> {
    match (kind, written) {
        (ValueKind::Switch, Written::Switch(on)) => Ok(Value::Bool(on)),
        (ValueKind::Count(count), Written::Number(number)) => check_count(count, number),
        (_, Written::Text(text)) if matches!(kind, ValueKind::Choice(_)) || kind.is_text() => {
            check(kind, text).map(|()| text.into())
        }
        _ => Err(explain_misfit(kind, written)),
    }
}

/// Checks that a text is valid for its kind.
pub(super) fn check(kind: &ValueKind, text: &str) -> Result<(), Fault> {
    if *kind != ValueKind::Template {
        check_filled(kind, text)?;
    }
    match kind {
        ValueKind::Template => check_template(text),
        ValueKind::Command => check_command(text),
        ValueKind::Url => check_url(text),
        ValueKind::Folder | ValueKind::File => check_folder(text),
        ValueKind::Listen => listen::check(text),
        ValueKind::Host => listen::check_host(text),
        ValueKind::ClusterName => node_name::check_name(text),
        ValueKind::Origin => listen::check_origin(text),
        ValueKind::StateDir => check_state_dir(text),
        ValueKind::Filter => check_filter(text),
        ValueKind::Category => check_category(text),
        ValueKind::Tag => check_tag(text),
        ValueKind::Version => refuse_if(
            !text.starts_with(|c: char| c.is_ascii_digit()),
            "not a version number",
            "write a number such as `1.4.0`",
        ),
        ValueKind::Glob => check_glob(text),
        ValueKind::Inherited => check_inherited(text),
        ValueKind::Choice(words) => check_choice(words, kind, text),
        _ => Ok(()),
    }
}

fn refuse_if(bad: bool, what: &str, hint: &str) -> Result<(), Fault> {
    if bad {
        Err(Fault::new(what, hint))
    } else {
        Ok(())
    }
}

fn check_filled(kind: &ValueKind, text: &str) -> Result<(), Fault> {
    let hint = match kind {
        ValueKind::Command => "name the program, such as `npx`",
        ValueKind::Url => URL_HINT,
        _ => "write a value, or remove the key",
    };
    refuse_if(text.trim().is_empty(), "empty text", hint)
}

fn check_count(count: &Count, number: Result<i128, &str>) -> Result<Value, Fault> {
    let Count { min, max, unit } = count;
    let fits = |number: &u64| (*min..=*max).contains(number);
    let small = number.ok().and_then(|number| u64::try_from(number).ok());
    small.filter(fits).map(Value::from).ok_or_else(|| {
        let found = number.map_or_else(shown, |number| number.to_string());
        Fault::bare(format!("expected {min} to {max} {unit}, found {found}"))
    })
}

fn check_template(text: &str) -> Result<(), Fault> {
    let hint =
        "write `${VAR}`, `${VAR:-default}` or `${secret:NAME}`; a literal `${` is written `$${`";
    let parsed = Template::parse(text).map(drop);
    parsed.map_err(|error| Fault::new(shown(&error.to_string()), hint))
}

/// The most common mistake is a whole command line in `command`. A path may contain spaces.
fn check_command(text: &str) -> Result<(), Fault> {
    check_template(text)?;
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    if text == program || program.contains(['/', '$']) {
        return Ok(());
    }
    let args = mask_arguments(words);
    let args: Vec<String> = args.iter().map(|word| format!("{word:?}")).collect();
    let hint = format!(
        "write `command = {program:?}` and `args = [{}]`",
        args.join(", ")
    );
    let hint = if hint.chars().count() > HINT_CHARS_MAX {
        SPLIT_HINT
    } else {
        &hint
    };
    Err(Fault::new("contains arguments", hint))
}

const URL_HINT: &str =
    "write an address such as `https://mcp.example.com/mcp`; for a program use `command`";

fn check_url(text: &str) -> Result<(), Fault> {
    check_template(text)?;
    if text.starts_with("${") {
        return Ok(());
    }
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let what = match rest {
        None => "expected an address with `https://` or `http://`",
        Some(rest) if rest.is_empty() || rest.starts_with(['/', ':', '?', '#']) => {
            "the address has no host"
        }
        Some(_) if text.contains(char::is_whitespace) => "the address contains whitespace",
        Some(_) => return Ok(()),
    };
    Err(Fault::new(
        format!("{what}, found `{}`", shown_address(text)),
        URL_HINT,
    ))
}

fn check_folder(text: &str) -> Result<(), Fault> {
    check_template(text)?;
    check_tilde(text)?;
    let bare = text
        .strip_prefix('$')
        .is_some_and(|rest| !rest.starts_with('{'));
    let hint = "write `${HOME}/...`, with braces, or `~/...`";
    refuse_if(bare, "a variable needs braces", hint)
}

fn check_state_dir(text: &str) -> Result<(), Fault> {
    check_tilde(text)?;
    let hint = "write `~/...` or an absolute path, or set the variable `PROXY_STATE_DIR`";
    refuse_if(
        text.contains('$'),
        "variables are replaced only in keys of servers",
        hint,
    )
}

fn check_tilde(text: &str) -> Result<(), Fault> {
    let other = text.starts_with('~') && text != "~" && !text.starts_with("~/");
    refuse_if(other, "only your own home folder is known", "write `~/...`")
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// The filter accepts any single word as the name of a module, so a typing error would log nothing.
fn check_filter(text: &str) -> Result<(), Fault> {
    let hint = "write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or \
                `warn,fleet=debug`";
    for directive in text.split(',') {
        let word = directive.rsplit('=').next().unwrap_or_default().trim();
        let level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
        if let (false, Some(level)) = (level, near(word, LEVELS, 1).first()) {
            let what = format!("unknown level `{}`", shown(word));
            return Err(Fault::new(what, format!("did you mean `{level}`?")));
        }
    }
    // tracing-subscriber 0.3.23 cuts such a text inside a character, and panics.
    let is_filter = text.is_ascii() && EnvFilter::builder().parse(text).is_ok();
    refuse_if(
        !is_filter,
        &format!("not a filter: `{}`", shown(text)),
        hint,
    )
}

/// The longest category or tag, in characters.
pub(super) const WORD_CHARS_MAX: usize = 32;

fn check_category(text: &str) -> Result<(), Fault> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let what = match text.chars().find(|&c| !allowed(c)) {
        Some(found) => format!("a category cannot contain {found:?}"),
        None if text.len() > WORD_CHARS_MAX => too_long("category"),
        None => return Ok(()),
    };
    let hint = match slug(text) {
        slug if !text.is_ascii() || slug.is_empty() || slug.len() > WORD_CHARS_MAX => {
            "use lower-case letters, digits and `-`".to_owned()
        }
        slug => format!("write `{slug}`"),
    };
    Err(Fault::new(what, hint))
}

fn check_tag(text: &str) -> Result<(), Fault> {
    let hint = "write a list of short words: `[\"issues\", \"pull requests\"]`";
    let what = match text.chars().find(|&c| c == ',' || c.is_control()) {
        Some(found) => format!("a tag cannot contain {found:?}"),
        None if text.chars().count() > WORD_CHARS_MAX => too_long("tag"),
        None if text != text.trim() => "whitespace around a tag".to_owned(),
        None => return Ok(()),
    };
    Err(Fault::new(what, hint))
}

fn too_long(thing: &str) -> String {
    format!("a {thing} has at most {WORD_CHARS_MAX} characters")
}

/// Returns the text with each character that is invalid in a category or a server name replaced by `-`.
pub(super) fn slug(text: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => ' ',
    };
    let words: String = text.chars().map(plain).collect();
    words.split_whitespace().collect::<Vec<_>>().join("-")
}

fn check_glob(text: &str) -> Result<(), Fault> {
    Pattern::new(text, LetterCase::Matters)
        .map(drop)
        .map_err(|error| {
            let what = format!("not a pattern: {}", shown(&error));
            Fault::new(
                what,
                "`*` matches any text, `?` one character, `{a,b}` either",
            )
        })
}

fn check_inherited(text: &str) -> Result<(), Fault> {
    let name = text.strip_suffix('*').unwrap_or(text);
    let foreign = |&c: &char| "*$=,\0".contains(c) || c.is_whitespace();
    let Some(found) = name.chars().find(foreign) else {
        return Ok(());
    };
    let hint = match found {
        '*' => "`*` is allowed only at the end: `AWS_*`",
        '$' => "write only the name, such as `SSH_AUTH_SOCK`",
        '=' => "write only the name; a variable with its own value belongs in `env`",
        _ => "write one text per name: `[\"SSH_AUTH_SOCK\", \"AWS_*\"]`",
    };
    // The text is not repeated: it may contain a secret after a `=`, and messages end up in logs.
    let what = format!("the name of a variable cannot contain {found:?}");
    Err(Fault::new(what, hint))
}

fn check_choice(words: &[&'static str], kind: &ValueKind, text: &str) -> Result<(), Fault> {
    if words.contains(&text) {
        return Ok(());
    }
    let fault = explain_misfit(kind, Written::Text(text));
    Err(match nearest(text, words.iter().copied()) {
        Some(near) => Fault::new(fault.what, format!("did you mean `{near}`?")),
        None => fault,
    })
}

/// Progress can only lengthen a call. This is the only rule between two keys, and a variable may set
/// either.
pub(super) fn check_limits(timeout_s: u64, timeout_max_s: u64) -> Result<(), Fault> {
    if timeout_max_s >= timeout_s {
        return Ok(());
    }
    Err(Fault::new(
        format!("`timeout_max_s` is {timeout_max_s}, less than `timeout_s`, which is {timeout_s}"),
        format!("make `timeout_max_s` at least {timeout_s}, or remove it"),
    ))
}

/// The limit of a command line in a hint, in characters.
const HINT_CHARS_MAX: usize = 200;

const SPLIT_HINT: &str = "write the program in `command` and the rest in `args`";

/// Describes a value of the wrong kind: the expected and the actual kind, and the correct form.
pub(super) fn explain_misfit(kind: &ValueKind, written: Written<'_>) -> Fault {
    let found = match (kind, written) {
        // It may be a secret, and messages end up in logs.
        (ValueKind::Variables | ValueKind::Headers | ValueKind::Tokens, Written::Text(_)) => {
            "text".to_owned()
        }
        (ValueKind::Template, Written::Number(_)) => "a number".to_owned(),
        _ => written.noun(),
    };
    let what = format!("expected {}, found {found}", kind.noun());
    let hint = match (kind, written) {
        (ValueKind::Count(_), Written::Text(text)) if text.trim().parse::<u64>().is_ok() => {
            format!("write it without quotes: `{}`", text.trim())
        }
        (ValueKind::Switch, Written::Text(text)) if ["true", "false"].contains(&text) => {
            format!("write it without quotes: `{text}`")
        }
        (ValueKind::Command, Written::Other("a list")) => SPLIT_HINT.to_owned(),
        (ValueKind::List(_), Written::Text(text)) => {
            format!("write a list: `[{:?}]`", shown(text))
        }
        // A number in a table of variables or headers may be a secret as well.
        (ValueKind::Template, Written::Number(_)) => "write it in quotes".to_owned(),
        (_, Written::Number(Ok(number))) if kind.is_text() => {
            format!("write it in quotes: `\"{number}\"`")
        }
        _ => return Fault::bare(what),
    };
    Fault::new(what, hint)
}

impl ValueKind {
    fn is_text(&self) -> bool {
        self.noun() == "text"
    }

    /// Describes a value of this kind, with its unit.
    pub(super) fn noun(&self) -> Cow<'static, str> {
        let noun = match self {
            ValueKind::Count(count) => return format!("a whole number of {}", count.unit).into(),
            ValueKind::Choice(words) => return choices(words).into(),
            ValueKind::Switch => "`true` or `false`",
            ValueKind::List(_) => "a list of texts",
            ValueKind::Variables => "a table of variables",
            ValueKind::Headers => "a table of headers",
            ValueKind::Tokens => "a table of tokens",
            ValueKind::TokenFiles => "a table of files",
            ValueKind::Patterns => "a table of patterns",
            ValueKind::Arguments | ValueKind::ArgumentSettings => "a table of arguments",
            ValueKind::Rules => "tables `[[rules]]`",
            ValueKind::Quotas => "tables `[[quotas]]`",
            _ => "text",
        };
        noun.into()
    }
}

/// Renders the words as they are written in the file.
pub(super) fn choices(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
    quoted.join(" or ")
}

impl Written<'_> {
    pub(super) fn noun(self) -> String {
        match self {
            Written::Text(text) => format!("text {:?}", shown(text)),
            Written::Number(number) => {
                let number = number.map_or_else(shown, |number| number.to_string());
                format!("the number {number}")
            }
            Written::Switch(on) => format!("`{on}`"),
            Written::Other(noun) => noun.to_owned(),
        }
    }
}
