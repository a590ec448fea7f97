//! Merges entries of several clients for the same server.

use crate::server::{ImportedServer, TranslatedServer};

/// Merges servers that are the same: the first gives the name.
pub fn merge(all: Vec<ImportedServer>) -> Vec<ImportedServer> {
    let mut merged: Vec<ImportedServer> = Vec::new();
    for taken in all {
        let same = |known: &&mut ImportedServer| is_same(&known.server, &taken.server);
        match merged.iter_mut().find(same) {
            Some(known) => join(known, taken),
            None => merged.push(taken),
        }
    }
    merged
}

fn join(known: &mut ImportedServer, other: ImportedServer) {
    let spelling = describe_spelling(&known.server, &other.server);
    add_new(
        &mut known.remarks,
        spelling.into_iter().collect(),
        String::eq,
    );
    // A server that one client disables and another enables is enabled.
    known.server.enabled |= other.server.enabled;
    if known.server.allow != other.server.allow || known.server.deny != other.server.deny {
        let remark =
            "its clients allow different tools of it: a tool is allowed if one of them allows it";
        known.remarks.push(remark.to_owned());
        widen(&mut known.server, &other.server.allow, &other.server.deny);
    }
    known.server.timeout_s = known.server.timeout_s.max(other.server.timeout_s);
    known.server.is_per_client |= other.server.is_per_client;
    known.entries.extend(other.entries);
    add_new(&mut known.remarks, other.remarks, String::eq);
    add_new(&mut known.needs, other.needs, |a, b| {
        a.variable == b.variable
    });
}

/// Adds each value that is not there yet.
fn add_new<T>(known: &mut Vec<T>, others: Vec<T>, is_same: impl Fn(&T, &T) -> bool) {
    for other in others {
        if !known.iter().any(|it| is_same(it, &other)) {
            known.push(other);
        }
    }
}

fn widen(server: &mut TranslatedServer, allow: &[String], deny: &[String]) {
    if server.allow.is_empty() || allow.is_empty() {
        server.allow.clear();
    } else {
        let new = allow
            .iter()
            .filter(|name| !server.allow.contains(name))
            .cloned();
        let new: Vec<String> = new.collect();
        server.allow.extend(new);
    }
    server.deny.retain(|name| deny.contains(name));
}

/// Returns true if both have the same command, arguments, environment, address, headers and folder.
/// If one of them names a secret in a text, the other may have any text in its place.
pub fn is_same(a: &TranslatedServer, b: &TranslatedServer) -> bool {
    list_differences(a, b).is_empty()
}

/// Describes the spelling of an address that counts as that of a server which is kept, if they differ. The text has
/// no address, which may contain a secret.
pub fn describe_spelling(kept: &TranslatedServer, other: &TranslatedServer) -> Option<String> {
    let has_slash = |server: &TranslatedServer| server.url.as_deref().map(|url| url.ends_with('/'));
    (has_slash(kept)? != has_slash(other)?).then(|| {
        "an entry whose address differs only in the last `/` counts as the same server; to have both, write the other \
         into the configuration"
            .to_owned()
    })
}

/// Returns the parts in which two servers differ, for people.
pub fn list_differences(a: &TranslatedServer, b: &TranslatedServer) -> Vec<&'static str> {
    let (line_a, line_b) = (normal_line(a), normal_line(b));
    let parts = [
        ("command", fits(&line_a[0], &line_b[0])),
        ("arguments", fit_all(&line_a[1..], &line_b[1..])),
        (
            "environment",
            fit_pairs(&environment(a), &environment(b), str::eq),
        ),
        ("address", fits(&normal_url(a), &normal_url(b))),
        (
            "headers",
            fit_pairs(&a.headers, &b.headers, str::eq_ignore_ascii_case),
        ),
        ("folder", a.cwd == b.cwd),
    ];
    let different = parts.into_iter().filter(|(_, is_same)| !is_same);
    different.map(|(part, _)| part).collect()
}

/// Returns the variables of a server with their values. One that is passed on has itself as its value.
fn environment(server: &TranslatedServer) -> Vec<(String, String)> {
    let mut all = server.env.clone();
    for name in &server.inherit_env {
        if all.iter().all(|(set, _)| set != name) {
            all.push((name.clone(), format!("${{{name}}}")));
        }
    }
    all
}

fn fit_pairs(
    a: &[(String, String)],
    b: &[(String, String)],
    is_name: impl Fn(&str, &str) -> bool,
) -> bool {
    let has = |(name, value): &(String, String)| {
        let mut others = b.iter();
        others.any(|(other, text)| is_name(other, name) && fits(text, value))
    };
    a.len() == b.len() && a.iter().all(has)
}

fn fit_all(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b))
}

fn fits(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace("$$", "$");
    a == b || is_filled(a, b) || is_filled(b, a) || plain(a) == plain(b)
}

/// Returns true if the text is the template with some text in place of each secret that it names.
fn is_filled(template: &str, text: &str) -> bool {
    // Text read as another client's entry has our variables escaped.
    let template = template.replace("$${secret:", "${secret:");
    let mut pieces = template.split("${secret:");
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let pieces: Option<Vec<&str>> = pieces.map(|it| Some(it.split_once('}')?.1)).collect();
    let Some((last, middle)) = pieces.as_deref().and_then(<[&str]>::split_last) else {
        return false;
    };
    for piece in middle {
        let found = rest.char_indices().skip(1);
        let found = found
            .map(|(at, _)| at)
            .find(|at| rest[*at..].starts_with(piece));
        let Some(at) = found else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.strip_suffix(last).is_some_and(|it| !it.is_empty())
}

fn normal_url(server: &TranslatedServer) -> String {
    let url = server.url.as_deref().unwrap_or_default();
    let url = url.trim_end_matches('/');
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            format!(
                "{}://{}/{path}",
                scheme.to_ascii_lowercase(),
                host.to_ascii_lowercase()
            )
        }
        None => url.to_owned(),
    }
}

/// Returns the command and the arguments. Reduces programs that run packages to their names, and removes
/// arguments that mean only "install it" or "newest".
fn normal_line(server: &TranslatedServer) -> Vec<String> {
    let command = server.command.as_deref().unwrap_or_default();
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.trim_end_matches(".cmd").trim_end_matches(".exe");
    // The path of an interpreter chooses its modules: those of a virtual environment.
    let is_runner = ["npx", "uvx", "bunx", "docker", "uv"].contains(&name);
    let args = server
        .args
        .iter()
        .filter(|arg| !["-y", "--yes"].contains(&arg.as_str()));
    let args = args.map(|arg| arg.strip_suffix("@latest").unwrap_or(arg).to_owned());
    let command = if is_runner { name } else { command };
    std::iter::once(command.to_owned()).chain(args).collect()
}

#[cfg(test)]
mod tests {
    use super::{TranslatedServer, is_same};

    fn server(line: &str, env: &[(&str, &str)]) -> TranslatedServer {
        let mut words = line.split(' ').map(str::to_owned);
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        TranslatedServer {
            command: words.next(),
            args: words.collect(),
            env: env.iter().map(own).collect(),
            ..TranslatedServer::default()
        }
    }

    #[test]
    fn the_same_server_is_known_again() {
        let check = |a: &TranslatedServer, b: &TranslatedServer, expected: bool| {
            assert_eq!(is_same(a, b), expected, "{a:?} {b:?}");
        };
        let plain = server("npx -y pkg DIR", &[]);
        check(&plain, &server("/usr/bin/npx pkg@latest DIR", &[]), true);
        let kept = server("x --key=${secret:a.key} DIR", &[]);
        check(&kept, &server("x --key=hunter2 DIR", &[]), true);
        check(&server("x --key=hunter2 DIR", &[]), &kept, true);
        check(&kept, &server("x --key= DIR", &[]), false);
        let several = server("x https://a:${secret:x.p}@b?k=${secret:x.k}&l=m", &[]);
        check(&several, &server("x https://a:one@b?k=two&l=m", &[]), true);
        check(&several, &server("x https://a:one@b?l=two&l=m", &[]), false);
        check(&several, &server("x https://a:one@b?k=&l=m", &[]), false);
        check(&kept, &server("x --token=hunter2 DIR", &[]), false);
        check(&kept, &server("x --key=hunter2 OTHER", &[]), false);
        check(&plain, &server("npx -y pkg OTHER", &[]), false);
        check(&plain, &server("npx -y pkg DIR", &[("A", "1")]), false);
        let one = server("npx pkg", &[("TOKEN", "one"), ("B", "2")]);
        let turned = server("npx pkg", &[("B", "2"), ("TOKEN", "one")]);
        check(&one, &turned, true);
        for other in [
            &[("TOKEN", "two"), ("B", "2")][..],
            &[("TOKEN", "${TOKEN}"), ("B", "2")],
            &[("token", "one"), ("B", "2")],
            &[("TOKEN", "one")],
        ] {
            check(&one, &server("npx pkg", other), false);
        }
        let inherits = TranslatedServer {
            inherit_env: vec!["TOKEN".to_owned()],
            ..server("npx pkg", &[])
        };
        check(
            &inherits,
            &server("npx pkg", &[("TOKEN", "${TOKEN}")]),
            true,
        );
        check(&inherits, &server("npx pkg", &[]), false);
    }

    #[test]
    fn interpreters_headers_and_folders_tell_servers_apart() {
        let check = |a: &TranslatedServer, b: &TranslatedServer, expected: bool| {
            assert_eq!(is_same(a, b), expected, "{a:?} {b:?}");
        };
        let plain = server("npx -y pkg DIR", &[]);
        let python = server("/a/bin/python -m x", &[]);
        check(&python, &server("/b/bin/python -m x", &[]), false);
        let with_headers = |headers: &[(&str, &str)]| TranslatedServer {
            url: Some("https://x.dev/mcp".to_owned()),
            headers: server("", headers).env,
            ..TranslatedServer::default()
        };
        let named = with_headers(&[("X-Team", "a")]);
        check(&named, &with_headers(&[("x-team", "a")]), true);
        check(&named, &with_headers(&[("X-Team", "b")]), false);
        check(&named, &with_headers(&[]), false);
        let in_folder = |cwd: &str| TranslatedServer {
            cwd: Some(cwd.to_owned()),
            ..plain.clone()
        };
        check(&in_folder("/a"), &in_folder("/a"), true);
        check(&in_folder("/a"), &in_folder("/b"), false);
        check(&in_folder("/a"), &plain, false);
        let remote = |url: &str| TranslatedServer {
            url: Some(url.to_owned()),
            ..TranslatedServer::default()
        };
        check(
            &remote("https://X.dev/mcp/"),
            &remote("https://x.dev/mcp"),
            true,
        );
        check(
            &remote("https://x.dev/mcp"),
            &remote("https://x.dev/MCP"),
            false,
        );
    }
}
