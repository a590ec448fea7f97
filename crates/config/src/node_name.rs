//! Names of clusters and of their nodes.

use super::mistake::Fault;

/// The longest names of a cluster and of a node, in characters.
const NAME_CHARS_MAX: usize = 40;

/// Checks the name of a cluster or of a node: it is a word of a subject.
pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain) {
        return Ok(());
    }
    let what = "not a name of a node or cluster";
    let hint = format!("use at most {NAME_CHARS_MAX} lower-case letters, digits and `-`");
    Err(Fault::new(what, hint))
}

/// Turns the name of a host into that of a node.
pub(super) fn plain_name(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default().to_lowercase();
    let plain = |c: char| match c {
        'a'..='z' | '0'..='9' => c,
        _ => '-',
    };
    first.chars().map(plain).take(NAME_CHARS_MAX).collect()
}
