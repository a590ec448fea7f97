//! Output of real programs, and the line of it that explains the failure.

use super::*;

#[track_caller]
fn check(stderr: &str, line: &str, hint: Option<&str>) {
    let lines: Vec<&str> = stderr.lines().collect();
    let found = find_telling(&lines).unwrap();
    assert_eq!(found.line, line);
    assert_eq!(found.hint.as_deref(), hint);
}

#[test]
fn npm_says_it_between_its_code_and_its_log() {
    check(
        "npm warn Unknown user config \"x\". This will stop working.
npm error code E404
npm error 404 Not Found - GET https://registry.example/@no%2fnothing - Not found
npm error 404
npm error 404  The requested resource '@no/nothing@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/a/.npm/_logs/x-debug-0.log",
        "npm error 404 The requested resource '@no/nothing@*' could not be found or you do not have permission to access it.",
        Some(NO_PACKAGE),
    );
    check(
        "npm error code E404
npm error 404  '@acme/mcp-server-github@*' is not in this registry.
npm error 404",
        "npm error 404 '@acme/mcp-server-github@*' is not in this registry.",
        Some(
            "no package `@acme/mcp-server-github@*`: look at `args`; or `proxy add github`, a known \
             server for that purpose",
        ),
    );
    check(
        "npm ERR! code ETARGET
npm ERR! notarget No matching version found for left-pad@99.
npm ERR! notarget In most cases you or one of your dependencies are requesting
npm ERR! A complete log of this run can be found in: /home/a/.npm/_logs/x-debug-0.log",
        "npm ERR! notarget No matching version found for left-pad@99.",
        Some(NO_VERSION),
    );
    check(
        "npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to http://registry.example/left-pad failed, reason: getaddrinfo ENOTFOUND registry.example
npm error network This is a problem related to network connectivity.
npm error network
npm error A complete log of this run can be found in: /home/a/.npm/_logs/x-debug-0.log",
        "npm error network request to http://registry.example/left-pad failed, reason: getaddrinfo ENOTFOUND registry.example",
        Some(NO_NETWORK),
    );
    check(
        "npm error could not determine executable to run
npm error A complete log of this run can be found in: /home/a/.npm/_logs/x-debug-0.log",
        "npm error could not determine executable to run",
        None,
    );
}

#[test]
fn uv_says_it_in_the_last_cause() {
    check(
        "error: No solution found when resolving tool dependencies
  cause: Because nothing-here was not found in the package registry and you require nothing-here, we can conclude that your requirements are unsatisfiable.",
        "error: No solution found when resolving tool dependencies: Because nothing-here was not found in the package registry and you require nothing-here, we can conclude that your requirements are unsatisfiable.",
        Some(NO_PACKAGE),
    );
    check(
        "  × No solution found when resolving tool dependencies:
  ╰─▶ Because you require mcp<2 and
      mcp>3, we can conclude that your requirements
      are unsatisfiable.

      hint: Pre-releases are available",
        "No solution found when resolving tool dependencies: Because you require mcp<2 and mcp>3, we can conclude that your requirements are unsatisfiable.",
        None,
    );
    check(
        "error: Request failed after 3 retries
  Caused by: Failed to fetch: `https://index.example/simple/x/`
  Caused by: error sending request for url (https://index.example/simple/x/)
  Caused by: client error (Connect)
  Caused by: dns error: failed to lookup address information",
        "error: Request failed after 3 retries: dns error: failed to lookup address information",
        Some(NO_NETWORK),
    );
}

#[test]
fn docker_says_it_first() {
    check(
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?

Run 'docker run --help' for more information",
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        Some("start Docker, until `docker info` answers"),
    );
    check(
        "Unable to find image 'no/thing:latest' locally
docker: Error response from daemon: pull access denied for no/thing, repository does not exist or may require 'docker login'.
See 'docker run --help'.",
        "docker: Error response from daemon: pull access denied for no/thing, repository does not exist or may require 'docker login'.",
        Some("no image of this name, or one that wants `docker login`: look at `args`"),
    );
}

#[test]
fn python_says_it_after_the_traceback() {
    check(
        "INFO starting
Traceback (most recent call last):
  File \"/a/b.py\", line 1, in <module>
    import nothing
ModuleNotFoundError: No module named 'nothing'
sys:1: ResourceWarning: error in a thread",
        "ModuleNotFoundError: No module named 'nothing'",
        Some(
            "a package is missing where this runs: install it there; or a newer one broke this: hold it back (`uvx --with 'PACKAGE<2'`)",
        ),
    );
    check(
        "  + Exception Group Traceback (most recent call last):
  |   File \"/a/b.py\", line 5, in main
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File \"/a/c.py\", line 9, in run
    |     connect()
    | ConnectionRefusedError: [Errno 111] Connect call failed
    +------------------------------------",
        "ConnectionRefusedError: [Errno 111] Connect call failed",
        None,
    );
}

#[test]
fn node_says_it_before_the_stack_and_a_launcher_before_its_own() {
    check(
        "node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module 'nothing'
Require stack:
- /a/b.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at require (node:internal/modules/helpers:182:18) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/a/b.js' ]
}

Node.js v20.20.2",
        "Error: Cannot find module 'nothing'",
        Some("the package is not whole: name another release, `PACKAGE@VERSION`"),
    );
    check(
        "API_KEY is required
node:child_process:930
    throw err;
    ^

Error: Command failed: /a/bin/server
    at genericNodeError (node:internal/errors:984:15)
    at checkExecSyncError (node:child_process:891:11)
  status: 1,
}

Node.js v20.20.2",
        "API_KEY is required",
        Some(SET_VARIABLE),
    );
    check(
        "file:///a/b.js:3
TypeError: Cannot read properties of undefined (reading 'x')
    at file:///a/b.js:3:9
    at ModuleJob.run (node:internal/modules/esm/module_job:234:25)

Node.js v20.20.2",
        "TypeError: Cannot read properties of undefined (reading 'x')",
        None,
    );
}

#[test]
fn of_other_programs_the_last_line_that_begins_as_an_error_tells() {
    check(
        "Error: unknown flag: --stdio
Usage:
  server [flags]
      --log string   where errors go",
        "Error: unknown flag: --stdio",
        None,
    );
    check("one\nan error happened\nbye\n\n", "an error happened", None);
    check("no licence\n", "no licence", None);
    check(
        "env: ‘node’: No such file or directory",
        "env: ‘node’: No such file or directory",
        Some("install Node.js"),
    );
    check("npm warn deprecated x", "npm warn deprecated x", None);
    assert_eq!(find_telling(&["", " "]), None);
    assert_eq!(find_telling(&[]), None);
}

#[test]
fn what_is_missing_is_told_to_be_given() {
    let no_file = Some(NO_FILE);
    check(
        "/usr/bin/python3: can't open file '/a/srv.py': [Errno 2] No such file or directory",
        "/usr/bin/python3: can't open file '/a/srv.py': [Errno 2] No such file or directory",
        no_file,
    );
    let line = "Error: Cannot find module '/a/build/index.js'";
    check(&format!("{line}\n    at a (b:1:2)"), line, no_file);
    for line in [
        "Error: GITHUB_TOKEN not set",
        "Please provide: BRAVE_API_KEY is required",
        "Missing environment variable NOTION_TOKEN",
    ] {
        check(line, line, Some(SET_VARIABLE));
    }
    for line in ["Error: HTTP 400: missing field", "ERROR: path is required"] {
        check(line, line, None);
    }
}
