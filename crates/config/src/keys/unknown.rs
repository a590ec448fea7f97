//! The hint for a key that the table does not have.

use tool::near;

use super::{
    KEYS, KeySpec,
    lookup::{find, names},
};

/// Returns a hint for the unknown key `name` in the table `pattern`.
pub(crate) fn unknown(pattern: &str, name: &str) -> String {
    let known = names(pattern);
    if let Some((_, hint)) = FOREIGN
        .iter()
        .find(|(foreign, _)| foreign == &(pattern, name))
    {
        return (*hint).to_owned();
    }
    if pattern.is_empty() && find(name).is_some() {
        return format!("write it without quotes: `{name}`");
    }
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let named = |key: &&KeySpec| key.name() == name;
    match KEYS.iter().find(named).map(KeySpec::table) {
        Some("") => format!("`{name}` belongs at the top, before the first `[table]`"),
        Some(table) => format!("`{name}` belongs in `[{table}]`"),
        None => format!("known keys: `{}`", known.join("`, `")),
    }
}

/// Returns the name of which `asked` is most likely a typo. In a short name one typing error is most
/// of the word, so `ulr` and `lgo` are found by counting edits.
pub(crate) fn nearest<'a>(
    asked: &str,
    names: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let best = near(asked, names.clone(), 1).first().copied();
    best.or_else(|| {
        names
            .into_iter()
            .find(|name| strsim::osa_distance(asked, name) == 1)
    })
}

/// Names of other programs for our keys: the table and the name, then the hint.
static FOREIGN: &[((&str, &str), &str)] = &[
    (("", "command"), "`command` belongs in `[servers.NAME]`"),
    (
        ("", "mcpServers"),
        "write `[servers.NAME]`, one table per server",
    ),
    (
        ("", "mcp_servers"),
        "write `[servers.NAME]`, one table per server",
    ),
    (("", "mcp"), "write `[servers.NAME]`, one table per server"),
    (
        ("servers.NAME", "disabled"),
        "did you mean `enabled`? It has the opposite meaning",
    ),
    (
        ("servers.NAME", "type"),
        "remove it: `command` or `url` implies it",
    ),
    (
        ("servers.NAME", "transport"),
        "remove it: `command` or `url` implies it",
    ),
    (("servers.NAME", "environment"), "did you mean `env`?"),
    (("servers.NAME", "env_vars"), "did you mean `inherit_env`?"),
    (("servers.NAME", "pass_env"), "did you mean `inherit_env`?"),
    (
        ("servers.NAME", "autostart"),
        "write `start = \"eager\"`, or remove it",
    ),
    (
        ("servers.NAME", "lazy"),
        "remove it, or write `start = \"eager\"`",
    ),
    (
        ("servers.NAME", "concurrency"),
        "did you mean `max_concurrent_calls`?",
    ),
    (
        ("servers.NAME", "retries"),
        "did you mean `retry_safe_calls`?",
    ),
    (("servers.NAME", "allow"), "did you mean `tools.allow`?"),
    (("servers.NAME", "deny"), "did you mean `tools.deny`?"),
    (
        ("servers.NAME", "allowed_tools"),
        "did you mean `tools.allow`?",
    ),
    (
        ("servers.NAME", "disabled_tools"),
        "did you mean `tools.deny`?",
    ),
    (
        ("servers.NAME", "bearer_token"),
        "write `headers = { Authorization = \"Bearer ${TOKEN}\" }`",
    ),
];
