//! Mistakes that new users make in their first minutes: each error names the cause, the file or
//! server at fault, and the next step. Errors of npm, uv, Docker and Python are parsed in `fleet`.

use std::{io::Write as _, os::unix::fs::PermissionsExt as _};

use journeys::house::{Fake, House};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::house;

/// A mistake: the configuration that the user typed, and the expected words.
struct Mistake {
    toml: String,
    command: &'static [&'static str],
    /// Cause, place and next step, usually in this order.
    said: &'static [&'static str],
}

fn mistake(toml: &str, command: &'static [&'static str], said: &'static [&'static str]) -> Mistake {
    Mistake {
        toml: toml.to_owned(),
        command,
        said,
    }
}

const CHECK: &[&str] = &["config", "check"];
const LIST: &[&str] = &["search", "*"];

/// Makes each mistake in turn, and reports all bad messages at once.
async fn play(house: &House, mistakes: Vec<Mistake>) {
    let mut bad = Vec::new();
    for Mistake {
        toml,
        command,
        said,
    } in mistakes
    {
        house.configure(&toml);
        let output = house.cli(command.iter().copied()).await;
        let text = format!("{}{}", output.stdout, output.stderr);
        let missing: Vec<_> = said.iter().filter(|it| !text.contains(**it)).collect();
        if !missing.is_empty() || text.contains("panicked") {
            bad.push(format!(
                "{command:?} of\n{toml}\nlacks {missing:?}:\n{text}"
            ));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n----\n"));
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn in_the_file() {
    let house = house::<Fake>([]);
    let table = |rest: &str| format!("[servers.gh]\n{rest}\n");
    let of = |rest: &str, said| mistake(&table(rest), CHECK, said);
    let mistakes = vec![
        mistake(
            "[servers.gh\ncommand = \"x\"",
            CHECK,
            &["config.toml:1", "close the name"],
        ),
        mistake(
            "[server.gh]\ncommand = \"x\"",
            CHECK,
            &["server: unknown key", "`servers`"],
        ),
        mistake(
            "[mcpServers.gh]\ncommand = \"x\"",
            CHECK,
            &["mcpServers", "[servers.NAME]"],
        ),
        mistake(
            "[mcp_servers.gh]\ncommand = \"x\"",
            CHECK,
            &["mcp_servers", "[servers.NAME]"],
        ),
        mistake(
            r#"{"mcpServers": {"gh": {"command": "npx"}}}"#,
            CHECK,
            &["config.toml:1", "JSON, not TOML", "proxy add FILE"],
        ),
        mistake(
            "servers:\n  gh:\n    command: npx\n",
            CHECK,
            &["config.toml:1", "YAML, not TOML", "[servers.NAME]"],
        ),
        mistake(
            "[servers.\"my server\"]\ncommand = \"x\"",
            CHECK,
            &["cannot contain ' '", "[servers.my-server]"],
        ),
        mistake(
            "[servers.proxy]\ncommand = \"x\"",
            CHECK,
            &["is reserved", "another name"],
        ),
        mistake(
            "[servers.a]\ncommand = \"x\"\n[servers.a]\ncommand = \"x\"",
            CHECK,
            &["config.toml:3", "duplicate", "keep one"],
        ),
        mistake("log = \"wran\"", CHECK, &["config.toml:1", "log", "`warn`"]),
        mistake(
            "[http]\nlisten = \"0.0.0.0:8080\"",
            CHECK,
            &["http.listen", "no token", "[http.tokens]"],
        ),
        mistake("", CHECK, &["no servers", "[servers.NAME]"]),
        of("comand = \"npx\"", &["servers.gh.comand", "`command`"]),
        of(
            "command = \"npx\"\nurl = \"https://a.example\"",
            &["servers.gh", "keep `command`"],
        ),
        of(
            "args = [\"x\"]",
            &["servers.gh", "neither `command` nor `url`", "add `command"],
        ),
        of(
            "command = \"npx\"\nargs = \"-y foo\"",
            &["servers.gh.args", "write a list"],
        ),
        of(
            "command = \"npx -y foo\"",
            &["servers.gh.command", "`args = [\"-y\", \"foo\"]`"],
        ),
        of(
            "command = [\"npx\", \"-y\"]",
            &["servers.gh.command", "the rest in `args`"],
        ),
        of(
            "command = \"x\"\nenv = { A = 3000 }",
            &["servers.gh.env.A", "in quotes"],
        ),
        of(
            "command = \"x\"\nenvironment = { A = \"b\" }",
            &["servers.gh.environment", "`env`"],
        ),
        of(
            "command = \"x\"\nenv = { A = \"$TOKEN\" }",
            &["servers.gh.env.A", "`${NAME}`"],
        ),
        of(
            "command = \"C:\\Users\\me\\s.exe\"",
            &["config.toml:2", "single quotes"],
        ),
        of("command = npx", &["config.toml:2", "in quotes"]),
        of(
            "command = “npx”",
            &["config.toml:2", "curly quotes", "straight quotes"],
        ),
        of(
            "url = \"mcp.example.com/mcp\"",
            &["servers.gh.url", "https://mcp.example.com/mcp"],
        ),
        of(
            "command = \"x\"\ntimeout = 30",
            &["servers.gh.timeout", "`timeout_s`"],
        ),
        of(
            "command = \"x\"\ntimeout_s = \"30\"",
            &["servers.gh.timeout_s", "without quotes"],
        ),
        of(
            "command = \"x\"\nscope = \"session\"",
            &["servers.gh.scope", "\"client\""],
        ),
        of(
            "command = \"x\"\nheaders = { A = \"b\" }",
            &["servers.gh.headers", "remove it"],
        ),
        of(
            "type = \"sse\"\nurl = \"https://a.example\"",
            &["servers.gh.type", "remove it"],
        ),
        of(
            "command = \"x\"\ndisabled = true",
            &["servers.gh.disabled", "`enabled`"],
        ),
        of(
            "command = \"x\"\nenabled = yes",
            &["config.toml:3", "write `true`"],
        ),
    ];
    play(&house, mistakes).await;
    house.stops_clean().await;
}

#[tokio::test]
async fn in_a_command() {
    let house = house::<Fake>([]);
    house.write("broken.json", r#"{"mcpServers": {"a": "#);
    house.write("other.json", r#"{"hello": 1}"#);
    let empty = |command, said| mistake("", command, said);
    let one = |command, said| mistake("[servers.memory]\ncommand = \"x\"\n", command, said);
    let mistakes = vec![
        empty(&["servesr"], &["servesr", "servers"]),
        empty(&["stop"], &["stop", "proxy daemon stop"]),
        empty(&["add", "gihub"], &["`gihub`", "proxy add github"]),
        empty(
            &["add", "fs", "npx", "-y", "p"],
            &["-y", "proxy add NAME -- npx -y PACKAGE"],
        ),
        empty(
            &["add", "my-own", "server.py"],
            &["`server.py`", "-- server.py"],
        ),
        empty(&["add", "--import", "curser"], &["`curser`", "`cursor`"]),
        empty(
            &["add", "--import", "/nowhere.json"],
            &["/nowhere.json", "clients are claude-code"],
        ),
        empty(
            &["add", "--import", "broken.json"],
            &["broken.json", "line 1"],
        ),
        empty(
            &["add", "--import", "other.json"],
            &["other.json", "`mcpServers`"],
        ),
        empty(&["init", "--undo"], &["no run to undo", "--config FILE"]),
        empty(
            &["call", "gihub/create_issue"],
            &["gihub/create_issue", "proxy search"],
        ),
        empty(
            &["call", "proxy/read_result", "{handle: 1"],
            &["no JSON object", "column"],
        ),
        empty(
            &["call", "proxy/read_result", "{}"],
            &["handle: missing", "Expected"],
        ),
        empty(
            &["describe", "nothing/at_all"],
            &["nothing/at_all", "proxy search"],
        ),
        empty(&["servers"], &["no servers", "proxy add NAME"]),
        empty(
            &["--config", "nowhere.toml", "search", "*"],
            &["nowhere.toml", "`--config`"],
        ),
        empty(
            &["--config", ".", "search", "*"],
            &["a folder", "name the file"],
        ),
        empty(
            &["--state-dir", "/proc/nothing", "search", "*"],
            &["state folder cannot be created", "/proc/nothing"],
        ),
        one(&["servers"], &["not asked yet", "proxy reindex"]),
        one(
            &["add", "memory"],
            &["`memory`", "another name", "proxy remove memory"],
        ),
        one(&["remove", "memry"], &["`memry`", "`memory`"]),
        one(&["logs", "memry"], &["`memry`", "memory"]),
    ];
    play(&house, mistakes).await;
    let mut none = house.command(["search", "*"]);
    none.env_remove("PROXY_CONFIG");
    let none = none.output().await.unwrap();
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(
        said.contains("/config.toml: no such file") && said.contains("proxy demo"),
        "{said}"
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn in_a_program_that_is_started() {
    let house = house::<Fake>([]);
    let script = |name: &str, text: &str, mode: u32| {
        let path = house.write(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    script("no-x.sh", "#!/bin/sh\n", 0o644);
    script("no-interpreter.sh", "#!/nowhere/node\n", 0o755);
    script("no-first-line", "print(1)\n", 0o755);
    let sh = |name: &str, text: &str| {
        format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", '{text}']\n")
    };
    // A busy machine takes a while to run the first words.
    let stays = |name: &str, text: &str| {
        let server = sh(name, &format!("{text}sleep 600"));
        format!("{server}start_timeout_s = 4\n")
    };
    let command = |name: &str, text: &str| format!("[servers.{name}]\ncommand = \"{text}\"\n");
    let list = |toml: String, said| mistake(&toml, LIST, said);
    let mistakes = vec![
        list(
            command("typo", "gihub-mcp"),
            &[
                "typo: command `gihub-mcp` not found",
                "install `gihub-mcp`",
                "proxy reindex typo",
            ],
        ),
        list(
            command("path", "~/nowhere/server"),
            &[
                "path: there is no program",
                "nowhere/server",
                "look at `command`",
            ],
        ),
        list(
            command("xbit", "./no-x.sh"),
            &["xbit: `", "has no x bit", "chmod +x", "proxy reindex xbit"],
        ),
        list(
            command("shebang", "./no-interpreter.sh"),
            &[
                "shebang: cannot start",
                "names an interpreter that is not there",
            ],
        ),
        list(
            command("exec", "./no-first-line"),
            &["exec: cannot start", "needs a first line such as"],
        ),
        list(
            format!("{}cwd = \"/nowhere\"\n", command("cwd", "cat")),
            &["cwd: `cwd` /nowhere is no folder", "proxy reindex cwd"],
        ),
        list(
            format!(
                "{}env = {{ A = \"${{NOT_SET_HERE}}\" }}\n",
                command("unset", "cat")
            ),
            &["unset: ", "NOT_SET_HERE"],
        ),
        list(
            sh("banner", "echo Hello from port 3000"),
            &[
                "banner: it exited",
                "`Hello from port 3000`",
                "is it an MCP server",
            ],
        ),
        list(
            sh("silent", "exit 0"),
            &["silent: it exited with code 0", "is it an MCP server"],
        ),
        list(
            stays("http", "echo Listening on http://127.0.0.1:3000 >&2; "),
            &["http: it did not answer", "it seems to serve HTTP", "`url`"],
        ),
        list(
            stays("slow", ""),
            &["slow: it did not answer", "`servers.slow.start_timeout_s`"],
        ),
        list(
            sh("token", "echo Error: GITHUB_TOKEN not set >&2; exit 1"),
            &[
                "token: it exited",
                "GITHUB_TOKEN not set",
                "set that variable in `env`",
            ],
        ),
        list(
            stays("noise", "echo starting up; "),
            &[
                "noise: ",
                "stdout has a line that is not a message: `starting up`",
                "is it an MCP server",
            ],
        ),
    ];
    play(&house, mistakes).await;
    house.stops_clean().await;
}

#[tokio::test]
async fn in_an_address() {
    let house = house::<Fake>([]);
    let at = answering().await;
    let url = |name: &str, url: &str| format!("[servers.{name}]\nurl = \"{url}\"\n");
    let here = |name: &str| url(name, &format!("http://{at}/{name}"));
    let list = |toml: String, said| mistake(&toml, LIST, said);
    let mistakes = vec![
        list(
            url("refused", "http://127.0.0.1:9/mcp"),
            &["refused: nothing listens at 127.0.0.1:", "start the server"],
        ),
        list(
            url("dns", "https://mcp.nowhere.invalid/mcp"),
            &[
                "dns: no host has the name mcp.nowhere.invalid",
                "look at `url`",
            ],
        ),
        list(
            here("s404"),
            &["s404: HTTP 404", "the path of `url`", "proxy reindex s404"],
        ),
        list(here("s405"), &["s405: HTTP 405", "the path of `url`"]),
        list(here("s401"), &["s401: ", "proxy reindex s401"]),
        list(here("s403"), &["s403: HTTP 403", "headers.Authorization"]),
        list(
            here("s500"),
            &["s500: HTTP 500", "the server itself failed"],
        ),
        list(
            here("s302"),
            &[
                "s302: HTTP 302",
                "https://elsewhere.invalid/mcp",
                "write that address",
            ],
        ),
        list(
            here("html"),
            &[
                "html: its response is not JSON-RPC: <html>",
                "the path of `url`",
            ],
        ),
        list(
            url("tls", &format!("https://{at}/mcp")),
            &[
                "tls: the server does not speak TLS at 127.0.0.1:",
                "write `http://`",
            ],
        ),
    ];
    play(&house, mistakes).await;
    house.stops_clean().await;
}

/// Starts a web server that is not an MCP server: a path `/sNNN` responds with that status, any
/// other with a page. The server stops with the test.
async fn answering() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut peer, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let read = peer.read(&mut asked).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&asked[..read]);
            let status = asked.split(['/', ' ']).find_map(|it| it.strip_prefix('s'));
            let status = status.and_then(|it| it.parse().ok()).unwrap_or(200_u16);
            let body = "<html>Welcome</html>";
            let mut answer = Vec::new();
            write!(
                answer,
                "HTTP/1.1 {status} X\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
                 location: https://elsewhere.invalid/mcp\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let _ = peer.write_all(&answer).await;
        }
    });
    address
}
