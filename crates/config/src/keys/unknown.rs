//! The hint for a key that the table does not have.

use tool::near;

use super::{
    KEYS, KeySpec,
    lookup::{find, names},
};

/// Returns a hint for the unknown key `name` in the table `pattern`.
pub(crate) fn unknown(pattern: &str, name: &str) -> String {
    let known = names(pattern);
    let foreign = match pattern {
        "" => FOREIGN_AT_TOP,
        "servers.NAME" => FOREIGN_IN_SERVER,
        _ => &[],
    };
    if let Some((_, hint)) = foreign.iter().find(|(foreign, _)| *foreign == name) {
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

/// Names of other programs for keys and tables at the top of the file, each with its hint.
static FOREIGN_AT_TOP: &[(&str, &str)] = &[
    ("command", "`command` belongs in `[servers.NAME]`"),
    ("mcpServers", SERVER_TABLE_HINT),
    ("mcp_servers", SERVER_TABLE_HINT),
    ("mcp", SERVER_TABLE_HINT),
];

const SERVER_TABLE_HINT: &str = "write `[servers.NAME]`, one table per server";

/// The same for keys of a server.
static FOREIGN_IN_SERVER: &[(&str, &str)] = &[
    (
        "disabled",
        "did you mean `enabled`? It has the opposite meaning",
    ),
    ("type", "remove it: `command` or `url` implies it"),
    ("transport", "remove it: `command` or `url` implies it"),
    ("environment", "did you mean `env`?"),
    ("env_vars", "did you mean `inherit_env`?"),
    ("pass_env", "did you mean `inherit_env`?"),
    ("autostart", "write `start = \"eager\"`, or remove it"),
    ("lazy", "remove it, or write `start = \"eager\"`"),
    ("concurrency", "did you mean `max_concurrent_calls`?"),
    ("retries", "did you mean `retry_safe_calls`?"),
    ("allow", "did you mean `tools.allow`?"),
    ("deny", "did you mean `tools.deny`?"),
    ("allowed_tools", "did you mean `tools.allow`?"),
    ("disabled_tools", "did you mean `tools.deny`?"),
    (
        "bearer_token",
        "write `headers = { Authorization = \"Bearer ${TOKEN}\" }`",
    ),
];
