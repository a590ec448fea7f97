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

const MCP_REMOTE: &str = "mcp-remote";
const BRIDGES: [&str; 3] = [MCP_REMOTE, "supergateway", "mcp-proxy"];

/// Options of the bridges whose value is the address. Without one, an argument is the address.
const URL_OPTIONS: [&str; 2] = ["--sse", "--streamableHttp"];

/// Options whose value is a header: `NAME: VALUE`, or two words.
const HEADER_OPTIONS: [&str; 3] = ["--header", "--headers", "-H"];

/// Options that have no meaning for a direct connection, with a value and without.
const IGNORED_WITH_VALUE: [&str; 7] = [
    "--transport",
    "--host",
    "--resource",
    "--auth-timeout",
    "--log-level",
    "--logLevel",
    "--outputTransport",
];
const IGNORED: [&str; 5] = [
    "--allow-http",
    "--debug",
    "--no-debug",
    "--silent",
    "--enable-proxy",
];

/// Replaces a bridge by its server. A bridge with an unknown argument stays.
pub(super) fn unwrap(server: &mut TranslatedServer, remarks: &mut Vec<String>) {
    let Some((name, rest)) = find(server) else {
        return;
    };
    let bridged = read(rest);
    let Some(url) = bridged.url else {
        return;
    };
    if bridged.is_unclear {
        remarks.push(format!(
            "it stays behind `{name}`, which has unknown options"
        ));
        return;
    }
    // It logs in by itself, as our `login` command does.
    let may_log_in = name == MCP_REMOTE && bridged.headers.is_empty() && !is_local(&url);
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

/// Returns the name of the bridge that a server starts, and its arguments.
fn find(server: &TranslatedServer) -> Option<(&'static str, &[String])> {
    let base = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or(word);
        word.split('@').next().unwrap_or(word).to_owned()
    };
    let command = base(server.command.as_deref()?);
    let of = |name: &str| BRIDGES.into_iter().find(|bridge| *bridge == name);
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

fn read(words: &[String]) -> Bridged {
    let mut bridged = Bridged::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, given) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value =
            |given: Option<String>| given.or_else(|| words.next().cloned()).unwrap_or_default();
        if URL_OPTIONS.contains(&option) {
            bridged.url = Some(value(given));
        } else if HEADER_OPTIONS.contains(&option) {
            let header = value(given);
            let (name, text) = match header.split_once(':') {
                Some((name, text)) => (name, text.to_owned()),
                None => (header.as_str(), value(None)),
            };
            let pair = (name.trim().to_owned(), text.trim().to_owned());
            bridged.headers.push(pair);
        } else if option == "--oauth2Bearer" {
            let bearer = format!("Bearer {}", value(given));
            bridged.headers.push(("Authorization".to_owned(), bearer));
        } else if IGNORED_WITH_VALUE.contains(&option) {
            value(given);
        } else if is_address(word) && bridged.url.is_none() {
            bridged.url = Some(word.clone());
        } else {
            // A number is the port at which mcp-remote waits for the end of a login.
            let is_port = word.bytes().all(|byte| byte.is_ascii_digit());
            bridged.is_unclear |= !is_port && !IGNORED.contains(&option);
        }
    }
    bridged.url = bridged.url.filter(|url| is_address(url));
    bridged
}

fn is_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
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
