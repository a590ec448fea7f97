use std::{fs, path::Path, sync::Arc};

use super::{Running, Surroundings, find_command};
use files::LOG_BYTES_MAX;
use processes::Pace;

use crate::{Launch, Sandbox, ServerSpec, Template, Variables, error::Failure, log::log_path};

fn template(text: &str) -> Template {
    Template::parse(&printable::escape_template(text)).unwrap()
}

/// Returns a server that is a script for `sh`.
fn shell(script: &str) -> ServerSpec {
    let launch = Launch::Child {
        command: template("sh"),
        args: vec![template("-c"), template(script)],
        env: vec![("API_TOKEN".to_owned(), template("hunter2hunter2"))],
        cwd: None,
    };
    ServerSpec::new("shell".parse().unwrap(), launch)
}

fn surroundings(log_folder: Option<&Path>) -> Arc<Surroundings> {
    Arc::new(Surroundings {
        log_folder: log_folder.map(Path::to_owned),
        ..Surroundings::default()
    })
}

fn spawn(
    spec: &ServerSpec,
    surroundings: &Arc<Surroundings>,
) -> Result<(Running, super::Pipes), Failure> {
    Running::spawn(spec, &Variables::default(), surroundings)
}

/// Starts a script, and waits until the last line that it wrote to stderr is `last`. Closes its
/// stdin, as the begin of a stop does.
async fn started(script: &str, last: &str, surroundings: &Arc<Surroundings>) -> Running {
    let (running, pipes) = spawn(&shell(script), surroundings).unwrap();
    drop(pipes);
    while running.with_stderr(Failure::new("")).stderr.as_deref() != Some(last) {
        tokio::task::yield_now().await;
    }
    running
}

#[tokio::test]
async fn stderr_is_logged_line_by_line_without_secrets_and_colours() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf '\\033[31mred\\033[0m \\377 token %s\\n\\nhalf' $API_TOKEN >&2; echo >&2
        printf '%02045d%s%03000d\\n' 0 $API_TOKEN 0 >&2; printf 'no end' >&2";
    let surroundings = surroundings(Some(folder.path()));
    let (mut running, pipes) = spawn(&shell(script), &surroundings).unwrap();
    drop(pipes);
    running.stop(Pace::Hurried).await;

    let log = fs::read_to_string(log_path(folder.path(), &"shell".parse().unwrap())).unwrap();
    let lines: Vec<&str> = log
        .lines()
        .map(|line| line.split_once("Z ").unwrap().1)
        .collect();
    let cut = format!("{}***", "0".repeat(2045));
    let expected = ["red \u{fffd} token ***", "", "half", &cut, "no end"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_stop_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = surroundings(Some(folder.path()));
    let script = "yes 'a line of some length' | head -c 8000000 >&2; head -c 8000000 /dev/zero >&2; echo >&2; echo done >&2";
    let mut running = started(script, "done", &surroundings).await;
    let failure = running.exit_reason().await;
    assert_eq!(failure.why, "it exited with code 0");
    running.stop(Pace::Hurried).await;

    let log = log_path(folder.path(), &"shell".parse().unwrap());
    assert!(fs::read_to_string(&log).unwrap().ends_with("Z done\n"));
    for file in fs::read_dir(folder.path()).unwrap() {
        assert!(file.unwrap().metadata().unwrap().len() <= LOG_BYTES_MAX);
    }
}

#[test]
fn a_command_that_is_not_found_says_how_it_is_had() {
    let check = |command: &str, why: &str, hint: &str| {
        let launch = Launch::Child {
            command: template(command),
            args: Vec::new(),
            env: vec![("PATH".to_owned(), template("/nowhere:/nowhere/bin"))],
            cwd: None,
        };
        let spec = ServerSpec::new("shell".parse().unwrap(), launch);
        let failure = spawn(&spec, &surroundings(None)).unwrap_err();
        assert_eq!(failure.why, why);
        let told = failure.hint.unwrap();
        assert!(told.contains(hint), "{told}");
        assert!(find_command(&spec).is_err());
    };
    let missing = "command `no-such-program` not found on its `PATH`";
    check("no-such-program", missing, "install `no-such-program`");
    let (npx, uvx) = (
        "command `npx` not found on its `PATH`",
        "command `uvx` not found on its `PATH`",
    );
    check("npx", npx, "https://nodejs.org");
    check("uvx", uvx, "https://astral.sh/uv");
    let path = "/nowhere/server.py";
    check(
        path,
        "there is no program /nowhere/server.py",
        "look at `command`",
    );
}

/// Writes an engine to `folder` that records its arguments, and runs the command after the image.
fn fake_engine(folder: &Path) -> String {
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HERE/$1\"; env > \"$HERE/$1.env\"\n\
        if [ \"$1\" = run ]; then while [ \"$1\" != image ]; do shift; done; shift; exec \"$@\"; fi\n";
    let here = folder.display();
    let engine = folder.join("podman");
    fs::write(&engine, script.replace("$HERE", &here.to_string())).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&engine, executable).unwrap();
    format!("{here}:/usr/bin:/bin")
}

#[tokio::test]
async fn a_container_gets_what_the_server_was_given_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = shell("echo up >&2; cat");
    let Launch::Child { env, .. } = &mut spec.launch else {
        panic!("the server is a child process");
    };
    env.push(("PATH".to_owned(), template(&fake_engine(folder.path()))));
    spec.image = Some(template("image"));
    spec.sandbox = Some(Sandbox {
        network: false,
        write: vec![template(&folder.path().display().to_string())],
    });
    assert_eq!(
        find_command(&spec).unwrap().unwrap(),
        folder.path().join("podman")
    );
    let (mut running, pipes) = spawn(&spec, &surroundings(None)).unwrap();
    drop(pipes);
    running.stop(Pace::Hurried).await;

    let noted = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let run: Vec<String> = noted("run").lines().map(str::to_owned).collect();
    let name = run[5].clone();
    assert!(name.starts_with("proxy-shell-"), "{run:?}");
    let volume = format!("{0}:{0}", folder.path().display());
    let expected = [
        "run",
        "--rm",
        "--interactive",
        "--init",
        "--name",
        &name,
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--network",
        "none",
        "--volume",
        &volume,
        "--env",
        "API_TOKEN",
        "--env",
        "PATH",
        "image",
        "sh",
        "-c",
        "echo up >&2; cat",
    ];
    assert_eq!(run, expected);
    assert!(noted("run.env").contains("API_TOKEN=hunter2hunter2"));
    assert_eq!(noted("rm"), format!("rm\n--force\n{name}\n"));
}

#[test]
fn what_isolation_lacks_is_said() {
    let mut spec = shell("true");
    spec.sandbox = Some(Sandbox {
        network: true,
        write: vec![template("/no/such/folder")],
    });
    let failure = spawn(&spec, &surroundings(None)).unwrap_err();
    assert!(failure.why.contains("/no/such/folder"), "{}", failure.why);
    let mut spec = shell("true");
    let Launch::Child { env, .. } = &mut spec.launch else {
        panic!("the server is a child process");
    };
    env.push(("PATH".to_owned(), template("/nowhere")));
    spec.image = Some(template("image"));
    let failure = spawn(&spec, &surroundings(None)).unwrap_err();
    assert!(failure.why.contains("`podman`"), "{}", failure.why);
    assert!(failure.hint.is_some());
}
