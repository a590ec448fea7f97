//! Programs that connect a client to a remote server. The remote server replaces them.

use crate::server::TranslatedServer;

/// The server that a bridge's arguments describe.
#[derive(Debug, Default)]
struct Bridged {
    url: Option<String>,
    headers: Vec<(String, String)>,
    /// True if an argument is unknown.
    is_unclear: bool,
}

/// The options of a bridge that take a value, and those that can be dropped.
struct Bridge {
    name: &'static str,
    /// Options whose value is the address; if empty, the first argument is the address.
    url_options: &'static [&'static str],
    header_options: &'static [&'static str],
    bearer_options: &'static [&'static str],
    ignored_with_value: &'static [&'static str],
    ignored: &'static [&'static str],
    /// The header's name and value are two words.
    splits_headers: bool,
    /// True if the bridge logs in by itself, as our `login` command does.
    signs_in: bool,
}

const BRIDGES: [Bridge; 3] = [
    Bridge {
        name: "mcp-remote",
        url_options: &[],
        header_options: &["--header"],
        bearer_options: &[],
        ignored_with_value: &["--transport", "--host", "--resource", "--auth-timeout"],
        ignored: &["--allow-http", "--debug", "--silent", "--enable-proxy"],
        splits_headers: false,
        signs_in: true,
    },
    Bridge {
        name: "supergateway",
        url_options: &["--sse", "--streamableHttp"],
        header_options: &["--header"],
        bearer_options: &["--oauth2Bearer"],
        ignored_with_value: &["--logLevel", "--outputTransport"],
        ignored: &[],
        splits_headers: false,
        signs_in: false,
    },
    Bridge {
        name: "mcp-proxy",
        url_options: &[],
        header_options: &["--headers", "-H"],
        bearer_options: &[],
        ignored_with_value: &["--transport", "--log-level"],
        ignored: &["--debug", "--no-debug"],
        splits_headers: true,
        signs_in: false,
    },
];

/// Replaces a bridge by its server. A bridge with an unknown argument stays.
pub(super) fn unwrap(server: &mut TranslatedServer, remarks: &mut Vec<String>) {
    let Some((bridge, rest)) = find(server) else {
        return;
    };
    let bridged = read(bridge, rest);
    let is_address = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    let name = bridge.name;
    let Some(url) = bridged.url.filter(is_address) else {
        return;
    };
    if bridged.is_unclear {
        remarks.push(format!(
            "it stays behind `{name}`, which has unknown options"
        ));
        return;
    }
    let may_log_in = bridge.signs_in && bridged.headers.is_empty() && !is_local(&url);
    let env = std::mem::take(&mut server.env);
    let fill = |(name, value): (String, String)| (name, fill_in(&value, &env));
    *server = TranslatedServer {
        url: Some(fill_in(&url, &env)),
        headers: bridged.headers.into_iter().map(fill).collect(),
        ..TranslatedServer::default()
    };
    let login = if may_log_in {
        "; if it requires a login, run once: proxy login NAME"
    } else {
        ""
    };
    remarks.push(format!(
        "it is connected to directly, without `{name}`{login}"
    ));
}

fn is_local(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}

/// Returns the bridge that a server starts, and its arguments.
fn find(server: &TranslatedServer) -> Option<(&'static Bridge, &[String])> {
    let base = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or(word);
        word.split('@').next().unwrap_or(word).to_owned()
    };
    let command = base(server.command.as_deref()?);
    let of = |name: &str| BRIDGES.iter().find(|bridge| bridge.name == name);
    if let Some(bridge) = of(&command) {
        return Some((bridge, &server.args));
    }
    if !["npx", "bunx", "pnpm", "uvx", "pipx", "uv"].contains(&command.as_str()) {
        return None;
    }
    let is_runner = |arg: &&String| {
        arg.starts_with('-') || ["dlx", "exec", "run", "tool", "x"].contains(&arg.as_str())
    };
    let at = server.args.iter().take_while(is_runner).count();
    let bridge = of(&base(server.args.get(at)?))?;
    Some((bridge, &server.args[at + 1..]))
}

fn read(bridge: &Bridge, words: &[String]) -> Bridged {
    let mut bridged = Bridged::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, given) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            given
                .clone()
                .or_else(|| words.next().cloned())
                .unwrap_or_default()
        };
        if bridge.url_options.contains(&option) {
            bridged.url = Some(value());
        } else if bridge.header_options.contains(&option) {
            let header = if bridge.splits_headers {
                Some((value(), value()))
            } else {
                split_header(&value())
            };
            bridged.is_unclear |= header.is_none();
            bridged.headers.extend(header);
        } else if bridge.bearer_options.contains(&option) {
            bridged
                .headers
                .push(("Authorization".to_owned(), format!("Bearer {}", value())));
        } else if bridge.ignored_with_value.contains(&option) {
            value();
        } else if word.starts_with('-') {
            bridged.is_unclear |= !bridge.ignored.contains(&option);
        } else if bridged.url.is_none() && bridge.url_options.is_empty() {
            bridged.url = Some(word.clone());
        } else {
            // The port at which mcp-remote waits for the end of a login.
            bridged.is_unclear |= !word.bytes().all(|byte| byte.is_ascii_digit());
        }
    }
    bridged
}

fn split_header(header: &str) -> Option<(String, String)> {
    let (name, value) = header.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// Bridges fill in variables themselves, from the variables of their entry.
fn fill_in(text: &str, env: &[(String, String)]) -> String {
    // If the client filled nothing in, the text has been escaped already.
    let mut text = text.replace("$${", "${");
    for (name, value) in env {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{TranslatedServer, unwrap};

    #[track_caller]
    fn check(line: &str, expected: Option<(&str, &[(&str, &str)])>) {
        let mut words = line.split(' ').map(|word| word.replace('_', " "));
        let mut server = TranslatedServer {
            command: words.next(),
            args: words.collect(),
            env: vec![("AUTH".to_owned(), "Bearer ${TOKEN}".to_owned())],
            ..TranslatedServer::default()
        };
        let mut remarks = Vec::new();
        unwrap(&mut server, &mut remarks);
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        match expected {
            Some((url, headers)) => {
                assert_eq!(server.url.as_deref(), Some(url));
                assert_eq!(server.headers, headers.iter().map(pair).collect::<Vec<_>>());
                assert_eq!((server.command, server.env), (None, vec![]));
            }
            None => assert!(server.url.is_none() && server.command.is_some()),
        }
        assert_eq!(remarks.len(), usize::from(line.contains("http")));
    }

    #[test]
    fn a_bridge_becomes_what_is_behind_it() {
        let auth: &[_] = &[("Authorization", "Bearer ${TOKEN}")];
        check(
            "npx -y mcp-remote@latest https://x.dev/mcp --header Authorization:${AUTH}",
            Some(("https://x.dev/mcp", auth)),
        );
        check(
            "npx mcp-remote http://localhost:3000/sse 3334 --allow-http",
            Some(("http://localhost:3000/sse", &[])),
        );
        check(
            "npx mcp-remote https://x.dev/mcp --transport http-only",
            Some(("https://x.dev/mcp", &[])),
        );
        check(
            "npx mcp-remote https://x.dev/mcp --header A:_b --new-option",
            None,
        );
        check(
            "npx -y supergateway --sse https://x.dev/sse --oauth2Bearer abc",
            Some(("https://x.dev/sse", &[("Authorization", "Bearer abc")])),
        );
        check(
            "uvx mcp-proxy --headers X-Key abc http://x.dev/mcp",
            Some(("http://x.dev/mcp", &[("X-Key", "abc")])),
        );
        check("npx -y supergateway --stdio server --port 8000", None);
        check("npx -y other-server", None);
    }
}
