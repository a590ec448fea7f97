//! Help, as it is printed.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser as _};
use insta::assert_snapshot;

use super::{Arguments, parse_serve};

/// Columns, whatever terminal runs the tests.
const WIDTH: usize = 100;

/// The help of a command, without the options that every command has.
fn help(command: &str) -> String {
    let ours = Arguments::command().term_width(WIDTH);
    let ours = ours.mut_args(|arg| {
        let is_of_all = arg.is_global_set();
        arg.hide(is_of_all)
    });
    let words = ["proxy"].into_iter().chain(command.split_whitespace());
    let asked = ours.try_get_matches_from(words.chain(["--help"]));
    asked
        .expect_err("help ends the parsing")
        .render()
        .to_string()
}

/// `docs/commands.md`: the help of every command, by groups.
fn document() -> String {
    fn add(command: &clap::Command, name: &str, text: &mut String) {
        text.push_str(&format!("### `{name}`\n\n```text\n"));
        let name = name.strip_prefix("proxy ").unwrap_or(name);
        let lines = help(name);
        let lines = lines.lines().map(str::trim_end).collect::<Vec<_>>();
        text.push_str(lines.join("\n").trim_end());
        text.push_str("\n```\n\n");
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        for command in shown.filter(|it| it.get_name() != "help") {
            add(
                command,
                &format!("proxy {name} {}", command.get_name()),
                text,
            );
        }
    }
    let ours = super::command();
    let mut text = "# Commands\n\nThe help of every command, made by `PROXY_WRITE_DOCS=1 cargo test -p proxy --lib \
                    commands_are_documented`. All take `--config\nFILE`, `--state-dir FOLDER`, `--log FILTER` and \
                    `-v`.\n\nExit codes: 0 hit or success, 1 no hit or tool error, 2 usage or configuration error, \
                    3 (`reindex`) some servers failed.\n\n"
        .to_owned();
    for (group, names) in super::groups::GROUPS {
        text.push_str(&format!("## {group}\n\n"));
        for name in names.iter().filter(|it| **it != "help") {
            let command = ours.find_subcommand(name).expect("a group names commands");
            add(command, &format!("proxy {name}"), &mut text);
        }
    }
    format!("{}\n", text.trim_end())
}

#[test]
fn commands_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    if std::env::var_os("PROXY_WRITE_DOCS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let again = "PROXY_WRITE_DOCS=1 cargo test -p proxy --lib commands_are_documented";
    assert!(committed == document(), "docs/commands.md is old: {again}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one page of help")]
fn help_says_what_there_is() {
    let ours = super::command().term_width(WIDTH);
    let help = ours.try_get_matches_from(["proxy", "--help"]);
    let help = help.expect_err("help ends the parsing").render();
    assert_snapshot!(help.to_string(), @"
    One MCP server that stands for all of them

    Usage: proxy [OPTIONS] <COMMAND>

    Moving in:
      init         Move in: import your clients' servers, give each client one entry
      import       Import servers from clients and files without modifying them
    Servers:
      recipes      List and search servers whose settings are built in
      add          Add a server to the configuration, and ask it for its tools
      remove       Remove servers, with the rules that name only them
      enable       Switch servers on
      disable      Switch servers off; their tables stay
      rename       Rename a server, with its rules, accepted tools, logins, history
      restart      Restart servers of the daemon, at their next call
      servers      List servers: tools, tokens, last use, and why one failed
      log          Print what a server wrote to its stderr, the oldest first
      login        Log in to remote servers that ask for it
      logout       Log out of remote servers
      secret       Keep secrets out of the configuration
    Serving:
      serve        Serve one MCP client over stdin and stdout, or many over HTTP
      status       Show the daemon, its clients and its servers
      daemon       Start, stop and inspect the shared daemon
    Tools:
      search       Find tools
      describe     Show one tool, or several: schema, notes, example
      call         Call a tool
      run          Run a script that calls tools, and print its answer
      types        Print TypeScript declarations of servers, for scripts
      read         Print a result that was cut: whole, or what you ask for
      list         List every tool, a line each
      categories   Count tools by category, and by tag
    Trust:
      review       Show tools that changed since they were accepted, and decide
      history      Show what surveys changed: tools added, changed, removed
      policy       Look at the rules for calls
      allow        Allow a tool for good, by a rule of its own
      audit        Show what was called: by whom, when, how it ended
    Index and figures:
      reindex      Ask servers for their tools and bring the index up to date
      tokens       Count the tokens of all definitions, and those of ours
      usage        Show how often tools were called, and what was learned from it
      stats        Show calls, errors, times, tokens, searches without a hit
    This program:
      doctor       Find problems of this machine and configuration, with next steps
      demo         Play a session with servers that are part of this program
      config       Look at the configuration
      completions  Print a script that completes commands, servers and tools
      man          Print the manual page, or write a page for each command
      help         Print this, or the help of a command

    Options:
          --config <FILE>       The configuration [default: $XDG_CONFIG_HOME/proxy/config.toml] [env:
                                PROXY_CONFIG]
          --state-dir <FOLDER>  Where snapshots, index and results are kept [env: PROXY_STATE_DIR]
          --log <FILTER>        What goes to stderr, or to the log of the daemon, a filter such as
                                `info,fleet=debug` [env: PROXY_LOG]
      -v, --verbose...          Say more: -v what happens, -vv how
          --json                Print JSON, and nothing else, on stdout
      -q, --quiet               No progress bar
      -h, --help                Print help
      -V, --version             Print version

    Examples:
      proxy demo                                       see it work, without any configuration
      proxy init                                       take over your clients' servers
      proxy reindex                                    ask every configured server for its tools
      proxy search create a github issue               the tools that fit, a line each
      proxy describe github/create_issue               everything about one of them
      proxy call github/create_issue owner=acme repo=site title='Broken link'
      proxy tokens                                     what your clients save
      claude mcp add proxy -- proxy serve              give Claude Code this one entry

    Exit codes: 0 hit or success, 1 no hit or tool error, 2 usage or configuration error,
                3 (reindex) some servers failed
    ");
}

#[test]
fn what_clients_configurations_name_is_read_as_clap_reads_it() {
    for words in [&["proxy", "serve"][..], &["proxy", "serve", "--standalone"]] {
        let read = Arguments::try_parse_from(words).unwrap();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let known = parse_serve(&words).unwrap();
        assert_eq!(format!("{known:?}"), format!("{read:?}"));
    }
    assert!(parse_serve(&["proxy", "serve", "--http"].map(OsString::from)).is_none());
}

#[test]
fn help_of_serving() {
    assert_snapshot!(help("serve"), @"
    Serve one MCP client over stdin and stdout, or many over HTTP

    This is what a client's configuration names. It answers at once from the last snapshots; a server
    starts when one of its tools is first called, or with us where the configuration says so. All
    clients of one configuration share one daemon, which the first of them starts, and with it one
    process for each server.

    Usage: proxy serve [OPTIONS]

    Options:
          --standalone
              Do everything in this process, with servers of its own, and without the daemon

          --http [<ADDR>]
              Serve over streamable HTTP at this address, `/mcp` [default: `http.listen`]
              
              Served by the daemon, beside its other clients, for as long as this command runs. A port
              alone is one of this machine. Any address that other machines can reach needs a token in
              the configuration.

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      proxy serve                        what a client's configuration names
      proxy serve --http                 at `http.listen` of the configuration
      proxy serve --http 127.0.0.1:7331  clients connect to http://127.0.0.1:7331/mcp
    ");
    assert_snapshot!(help("status"), @"
    Show the daemon, its clients and its servers

    Usage: proxy status [OPTIONS]

    Options:
          --watch [<SECONDS>]  Draw it again every so many seconds, until Ctrl-C
      -h, --help               Print help
    ");
    assert_snapshot!(help("daemon"), @"
    Start, stop and inspect the shared daemon

    Usage: proxy daemon <COMMAND>

    Commands:
      start    Start it, if it does not run; a client's `proxy serve` does so by itself
      stop     End it with all its servers; the next message of a client starts another
      restart  End it and start another
      status   Show it, its clients and its servers, as `proxy status` does
      logs     Print its log, the oldest line first
      socket   Print the path of its socket, for a unit of systemd
      run      Run it in the foreground, or under systemd (`config/systemd/`)
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help("daemon logs"), @"
    Print its log, the oldest line first

    Usage: proxy daemon logs [OPTIONS]

    Options:
      -n, --lines <COUNT>  Only the last lines
      -h, --help           Print help
    ");
    assert_snapshot!(help("demo"), @"
    Play a session with servers that are part of this program

    Usage: proxy demo

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn help_of_finding() {
    assert_snapshot!(help("reindex"), @"
    Ask servers for their tools and bring the index up to date

    A server that fails keeps its last snapshot, marked stale. Exit code 0: all answered; 3: some did;
    1: none did.

    Usage: proxy reindex [SERVER]...

    Arguments:
      [SERVER]...
              Only these servers [default: all]

    Options:
      -h, --help
              Print help (see a summary with '-h')
    ");
    assert_snapshot!(help("search"), @"
    Find tools

    Usage: proxy search [OPTIONS] [QUERY]...

    Arguments:
      [QUERY]...  Words; or `select:a,b`, `+word` (must match), `*` (everything)

    Options:
          --category <CATEGORY>  Only this category or server
          --tag <TAG>            Only tools with this tag; may be given again
      -n, --max-results <COUNT>  Number of hits, 1 to 20 [default: 5]
          --why                  Say what speaks for each hit, term by term
          --offset <COUNT>       Number of hits to skip [default: 0]
          --standalone           Ask with servers of this process, without the daemon
      -h, --help                 Print help

    Examples:
      proxy search create github issue
      proxy search --category files '*'
      proxy search 'select:git/git_status,git/git_diff'
      proxy search send +mail
    ");
    assert_snapshot!(help("describe"), @"
    Show one tool, or several: schema, notes, example

    Usage: proxy describe [OPTIONS] <NAME>...

    Arguments:
      <NAME>...  Tools: `SERVER/TOOL`, or a name that one server has; a server lists its tools

    Options:
          --standalone  Ask with servers of this process, without the daemon
      -h, --help        Print help

    Examples:
      proxy describe github/create_issue
      proxy describe create_issue --json | jq .input_schema
    ");
    assert_snapshot!(help("list"), @"
    List every tool, a line each

    Usage: proxy list [OPTIONS] [SERVER|CATEGORY]

    Arguments:
      [SERVER|CATEGORY]  Only the tools of this server or category

    Options:
          --standalone  Ask with servers of this process, without the daemon
      -h, --help        Print help
    ");
    assert_snapshot!(help("categories"), @"
    Count tools by category, and by tag

    Usage: proxy categories

    Options:
      -h, --help  Print help
    ");
}

#[test]
fn help_of_calling() {
    assert_snapshot!(help("call"), @r#"
    Call a tool

    Usage: proxy call [OPTIONS] <NAME> [ARGUMENTS]...

    Arguments:
      <NAME>          The tool: `SERVER/TOOL`, or a name that one server has
      [ARGUMENTS]...  One JSON object, `-` to read it from stdin, or KEY=VALUE pairs (a value that is
                      JSON is taken as such)

    Options:
          --timeout-ms <MS>     Milliseconds to wait for the result
          --max-tokens <COUNT>  Cut the result at this many tokens
          --raw                 The whole result, however long
          --dry-run             Check the arguments, call nothing
          --standalone          Call with servers of this process, without the daemon
      -h, --help                Print help

    Examples:
      proxy call git/git_status repo_path=.
      proxy call git/git_status '{"repo_path":"."}'
      proxy call git/git_status - < arguments.json
    "#);
    assert_snapshot!(help("read"), @"
    Print a result that was cut: whole, or what you ask for

    Usage: proxy read [OPTIONS] <HANDLE>

    Arguments:
      <HANDLE>  The handle of the result, from the footer where it was cut

    Options:
          --part <NUMBER>       One part, as a client reads it; all parts joined are the whole
          --offset <COUNT>      Lines (or bytes, or matches) to pass over; negative counts from the end
          --limit <COUNT>       Number of lines (or bytes, or matches)
          --bytes               Count offset and limit in bytes
          --grep <REGEX>        Lines that match a regular expression, with two lines around
          --select <JQ>         The values that a jq expression answers, a line each
          --max-tokens <COUNT>  Stop at this many tokens [default: no limit]
      -h, --help                Print help

    Examples:
      proxy read r0123456789abcdef > whole.txt
      proxy read r0123456789abcdef --grep 'ERROR|WARN'
      proxy read r0123456789abcdef --select '.items[].id'
      proxy read r0123456789abcdef --offset -20
    ");
}

#[test]
fn help_of_looking_after_it() {
    assert_snapshot!(help("log"), @"
    Print what a server wrote to its stderr, the oldest first

    Usage: proxy log [OPTIONS] <SERVER>

    Arguments:
      <SERVER>  The server of the configuration

    Options:
      -n, --lines <COUNT>  Only the last lines
      -h, --help           Print help
    ");
    assert_snapshot!(help("usage"), @"
    Show how often tools were called, and what was learned from it

    Usage: proxy usage [COMMAND]

    Commands:
      reset  Forget all of it
      help   Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    assert_snapshot!(help("tokens"), @"
    Count the tokens of all definitions, and those of ours

    Usage: proxy tokens [OPTIONS]

    Options:
          --by-tool  Every tool, the heaviest first
      -h, --help     Print help
    ");
    assert_snapshot!(help("config"), @"
    Look at the configuration

    Usage: proxy config <COMMAND>

    Commands:
      check  Check it, and say every mistake at once
      path   Print where it is looked for
      docs   Print the reference of all keys (`docs/configuration.md`)
      help   Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
}
