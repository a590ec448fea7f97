//! The program, package or host of a server: the part of its launch that a recipe is looked up by.

use fleet::{Launch, Template};

/// Empty if it is in a variable: a value that is filled in at the start may be a secret.
pub(super) fn find_program(launch: &Launch) -> String {
    match launch {
        Launch::Remote { url, .. } => {
            join_plain(url).map_or_else(String::new, |url| read_host(&url))
        }
        Launch::Commands(_) => String::new(),
        Launch::Child { command, args, .. } => {
            let command = join_plain(command).unwrap_or_default();
            let name = command.rsplit('/').next().unwrap_or_default();
            let args = args.iter().map(|arg| join_plain(arg).unwrap_or_default());
            let args: Vec<String> = args.collect();
            if RUNNERS.contains(&name) {
                find_package(&args).unwrap_or_default().to_owned()
            } else {
                name.to_owned()
            }
        }
    }
}

fn join_plain(template: &Template) -> Option<String> {
    template.expand(|_| None).ok()
}

fn read_host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default().to_owned()
}

/// Returns the first argument that is the name of a package or an image, not a flag nor a flag's value.
fn find_package(args: &[String]) -> Option<&str> {
    let before = std::iter::once("").chain(args.iter().map(String::as_str));
    let mut pairs = before.zip(args);
    let found = pairs.find(|(before, arg)| {
        let is_value = before.starts_with('-') && !SWITCHES.contains(before);
        !is_value && !STEPS.contains(&arg.as_str()) && is_package(arg)
    });
    found.map(|(_, arg)| arg.as_str())
}

fn is_package(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "@/._:-".contains(c))
}

/// Programs that run another program, which is named in their arguments.
const RUNNERS: [&str; 16] = [
    "npx", "bunx", "bun", "pnpm", "pnpx", "yarn", "npm", "uvx", "uv", "pipx", "deno", "docker",
    "podman", "nix", "python", "python3",
];

/// Subcommands of those programs.
const STEPS: [&str; 6] = ["run", "exec", "dlx", "tool", "x", "container"];

/// Their flags that take no value, or whose value is the package.
const SWITCHES: [&str; 16] = [
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-p",
    "--package",
    "--from",
    "-i",
    "-t",
    "-it",
    "-d",
    "--rm",
    "--init",
    "--interactive",
    "-m",
    "--",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let template = |text: &str| Template::parse(text).expect("a template");
        let launch = if line.contains("://") && !line.contains(' ') {
            Launch::Remote {
                url: template(line),
                headers: Vec::new(),
            }
        } else {
            let mut words = line.split(' ').map(template);
            Launch::Child {
                command: words.next().expect("a command"),
                args: words.collect(),
                env: Vec::new(),
                cwd: None,
            }
        };
        assert_eq!(find_program(&launch), expected, "{line}");
    }

    #[test]
    fn the_package_is_told_and_nothing_else() {
        check(
            "npx -y @modelcontextprotocol/server-slack",
            "@modelcontextprotocol/server-slack",
        );
        check(
            "uvx --from mcp-server-git mcp-server-git --repo /home",
            "mcp-server-git",
        );
        check("/usr/bin/mcp-grafana -t stdio", "mcp-grafana");
        check(
            "docker run -i --rm -e GITHUB_TOKEN=s3cret ghcr.io/github/github-mcp-server",
            "ghcr.io/github/github-mcp-server",
        );
        check("docker run --env s3cret", "");
        check("npx ${SECRET}", "");
        check(
            "https://user:s3cret@mcp.linear.app:443/mcp?key=s3cret",
            "mcp.linear.app",
        );
        check("https://${HOST}/mcp", "");
    }
}
