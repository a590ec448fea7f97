//! Names for servers that come without a valid one.

use tool::{SERVER_NAME_CHARS_MAX, ServerName};

/// Returns a valid name similar to a text: a name from elsewhere, a package, a host. `None` if the text
/// has no letter or digit.
pub fn valid_name(text: &str) -> Option<ServerName> {
    let mut name = String::new();
    for c in text.chars() {
        let lower = c.to_ascii_lowercase();
        if lower.is_ascii_lowercase() || lower.is_ascii_digit() {
            // `GitHub` is a name, `myServer` two words.
            name.push(lower);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(SERVER_NAME_CHARS_MAX);
    let name = name.trim_end_matches('-');
    let ours = [
        ServerName::built_in(),
        ServerName::scripts(),
        ServerName::commands(),
    ];
    if ours.iter().any(|it| it.as_str() == name) {
        return format!("{name}-server").parse().ok();
    }
    name.parse().ok()
}

/// Proposes a name for a server from its command line: the name of its package, without the parts that
/// all packages of servers share.
pub fn name_of_command(words: &[&str]) -> Option<ServerName> {
    let (program, args) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let is_runner = [
        "npx", "bunx", "uvx", "pipx", "pnpm", "docker", "podman", "node", "python", "python3",
        "deno", "uv",
    ];
    if !is_runner.contains(&program) {
        return valid_name(&strip_common(program));
    }
    let skipped = ["run", "dlx", "exec", "tool", "-m", "x"];
    let takes_value = [
        "-e",
        "--env",
        "-v",
        "--volume",
        "--from",
        "--with",
        "-p",
        "--package",
        "--network",
        "--mount",
    ];
    let mut rest = args.iter().copied();
    while let Some(word) = rest.next() {
        if takes_value.contains(&word) {
            rest.next();
        } else if !word.starts_with('-') && !skipped.contains(&word) {
            return valid_name(&strip_common(word));
        }
    }
    None
}

/// Proposes a name for a remote server from its address: the most specific part of the host name.
pub fn name_of_url(url: &str) -> Option<ServerName> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let host = host.split(':').next()?;
    let parts: Vec<&str> = host.split('.').collect();
    let all_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.iter().all(all_digits) || parts == ["localhost"] {
        return None;
    }
    let telling = parts.iter().rev().skip(1);
    let common = ["co", "com", "org", "net", "io", "dev", "ai"];
    let name = telling.copied().find(|part| !common.contains(part))?;
    valid_name(name)
}

/// `@modelcontextprotocol/server-memory@1.2` is `memory`.
fn strip_common(package: &str) -> String {
    let (scope, package) = match package.strip_prefix('@').and_then(|it| it.split_once('/')) {
        Some((scope, package)) => (scope, package),
        None => ("", package.rsplit('/').next().unwrap_or(package)),
    };
    let package = package
        .split(['@', '=', '<', '>', '~', ':', '['])
        .next()
        .unwrap_or(package);
    let package = package
        .strip_suffix(".py")
        .or_else(|| package.strip_suffix(".js"))
        .unwrap_or(package);
    let words = package.split(['-', '_', '.']);
    let told: Vec<&str> = words
        .filter(|it| !["mcp", "server", "stdio"].contains(it))
        .collect();
    if told.iter().all(|it| it.is_empty()) {
        scope.to_owned()
    } else {
        told.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::{name_of_command, name_of_url, valid_name};

    #[test]
    fn a_name_from_elsewhere_becomes_a_valid_one() {
        let check = |text: &str, name: Option<&str>| {
            assert_eq!(
                valid_name(text).as_ref().map(tool::ServerName::as_str),
                name,
                "{text}"
            );
        };
        check("GitHub", Some("github"));
        check("my_server 2!", Some("my-server-2"));
        check("--x", Some("x"));
        check("proxy", Some("proxy-server"));
        check("Scripts", Some("scripts-server"));
        check("日本", None);
        check(&"a-".repeat(40), Some(&format!("{}a", "a-".repeat(15))));
    }

    #[test]
    fn a_start_line_has_a_name_in_it() {
        let check = |line: &str, name: Option<&str>| {
            let words: Vec<&str> = line.split(' ').collect();
            let found = name_of_command(&words);
            assert_eq!(found.as_ref().map(tool::ServerName::as_str), name, "{line}");
        };
        check(
            "npx -y @modelcontextprotocol/server-memory@2026.1",
            Some("memory"),
        );
        check(
            "npx -y @playwright/mcp@latest --headless",
            Some("playwright"),
        );
        check("uvx mcp-server-git --repository .", Some("git"));
        check(
            "uvx --from serena-agent serena start-mcp-server",
            Some("serena"),
        );
        check("uvx --with mcp<2 mcp-server-sqlite==1.0", Some("sqlite"));
        check(
            "docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server",
            Some("github"),
        );
        check("python -m weather_mcp", Some("weather"));
        check("node ./build/issues.js", Some("issues"));
        check("/opt/tracker/bin/tracker-mcp serve", Some("tracker"));
        check("npx -y", None);
    }

    #[test]
    fn an_address_has_a_name_in_it() {
        let check = |url: &str, name: Option<&str>| {
            let found = name_of_url(url);
            assert_eq!(found.as_ref().map(tool::ServerName::as_str), name, "{url}");
        };
        check("https://mcp.notion.com/mcp", Some("notion"));
        check("https://api.githubcopilot.com/mcp/", Some("githubcopilot"));
        check("https://mcp.example.co.uk:8443/x", Some("example"));
        check("http://127.0.0.1:3000/mcp", None);
        check("http://localhost:3000", None);
    }
}
