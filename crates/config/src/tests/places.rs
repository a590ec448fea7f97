//! The file that is read, and the resolution of relative paths and `~`.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::{fs, path::Path};

#[cfg(unix)]
use fleet::Launch;

#[cfg(unix)]
use super::HOME;
use super::{home, overrides};
#[cfg(unix)]
use crate::default_path;
use crate::{Environment, Overrides, is_of_another_program, load};

/// Returns the printed text, without the folder of the test.
fn printed(overrides: &Overrides, env: &Environment, folder: &Path) -> String {
    let error = load(overrides, env).expect_err("the case is a mistake");
    let text = error.to_string().replace(&*folder.to_string_lossy(), "DIR");
    if cfg!(windows) {
        return text.replace('\\', "/");
    }
    text
}

#[cfg(unix)]
#[test]
fn the_default_path_follows_the_home_folder() {
    let path = |variables: &[(&str, &str)]| default_path(&variables.iter().copied().collect());
    assert_eq!(
        path(&[("HOME", HOME)]),
        Some("/home/ada/.config/proxy/config.toml".into())
    );
    let both = [("HOME", HOME), ("XDG_CONFIG_HOME", "/etc/ada")];
    assert_eq!(path(&both), Some("/etc/ada/proxy/config.toml".into()));
    let relative = [("HOME", HOME), ("XDG_CONFIG_HOME", "etc")];
    assert_eq!(path(&relative), path(&[("HOME", HOME)]));
    assert_eq!(path(&[]), None);
}

#[test]
fn a_variable_that_sets_no_key_is_of_another_program() {
    for ours in [
        "PROXY_STATE_DIR",
        "PROXY_RESULTS__MAX_TOKENS",
        "PROXY_SERVERS__ANY__TIMEOUT_S",
        "PROXY_RESULTS__MISSPELT",
        "HTTP_PROXY",
    ] {
        assert!(!is_of_another_program(ours), "{ours}");
    }
    for other in [
        "PROXY_HOST",
        "PROXY_URL",
        "PROXY_HTTP",
        "PROXY_A__B",
        "PROXY_",
    ] {
        assert!(is_of_another_program(other), "{other}");
    }
}

#[cfg(unix)]
#[test]
fn a_missing_file_says_how_to_begin() {
    let folder = tempfile::tempdir().unwrap();
    let env = Environment::from_iter([("HOME", folder.path())]);
    let expected = "\
DIR/.config/proxy/config.toml: no such file
    hint: `proxy init` creates it from the servers of your MCP clients; or create it, for example with these lines:
          [servers.time]
          command = \"uvx\"
          args = [\"mcp-server-time\"]
          or try the program without a file: `proxy demo`";
    assert_eq!(
        printed(&Overrides::default(), &env, folder.path()),
        expected
    );
}

#[test]
fn a_named_file_that_is_missing_says_who_named_it() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nope.toml");
    let flag = "DIR/nope.toml: no such file\n    hint: the path is from `--config`; correct the path, or create the file";
    assert_eq!(printed(&overrides(&missing), &home(), folder.path()), flag);
    let env = Environment::from_iter([("PROXY_CONFIG", &missing)]);
    let variable = flag.replace("`--config`", "the variable `PROXY_CONFIG`");
    assert_eq!(
        printed(&Overrides::default(), &env, folder.path()),
        variable
    );
}

#[test]
fn without_a_home_there_is_no_place_to_look() {
    let env = Environment::default();
    let expected = "config.toml: no configuration file: neither `XDG_CONFIG_HOME` nor `HOME` is set\n    hint: name the file: `proxy --config FILE`";
    assert_eq!(
        printed(&Overrides::default(), &env, Path::new("/nowhere")),
        expected
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path, expected: &str| {
        assert_eq!(printed(&overrides(path), &home(), folder.path()), expected);
    };
    check(
        folder.path(),
        "DIR: a folder, not a file\n    hint: the path is from `--config`; name the file in it",
    );
    let binary = folder.path().join("binary");
    fs::write(&binary, b"\x7fELF\x02\xff\xfe\x00").unwrap();
    check(
        &binary,
        "DIR/binary: not text: byte 5 is not UTF-8\n    hint: the path is from `--config`; save it as UTF-8, or name a TOML file",
    );
    #[cfg(unix)]
    check(
        Path::new("/dev/zero"),
        "/dev/zero: larger than 16 MiB\n    hint: the path is from `--config`; name a TOML file",
    );
}

/// Root can read every file; in that case the file is read.
#[cfg(unix)]
#[test]
fn a_file_without_permission_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.toml");
    fs::write(&file, "unknown = 1").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let printed = printed(&overrides(&file), &home(), folder.path());
    let expected = match fs::read(&file) {
        Ok(_) => "DIR/secret.toml:1:1: unknown: unknown key",
        Err(_) => "DIR/secret.toml: no permission to read the file",
    };
    assert!(printed.starts_with(expected), "{printed}");
}

#[cfg(unix)]
#[test]
fn paths_lead_where_the_page_says() {
    let folder = tempfile::Builder::new()
        .prefix("with$dollar")
        .tempdir()
        .unwrap();
    let file = folder.path().join("work.toml");
    let written = "[servers.a]\ncommand = \"./run\"\ncwd = \"src\"\n[servers.b]\ncommand = \"~/bin/b\"\ncwd = \"~/src\"\n[servers.c]\ncommand = \"c\"\ncwd = \"${WORK}/c\"";
    fs::write(&file, format!("state_dir = \"state\"\n{written}")).unwrap();
    let config = load(&overrides(&file), &home()).unwrap();
    assert_eq!(config.gateway.state_dir, folder.path().join("state"));
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let expected = [
        (at("./run"), at("src")),
        ("/home/ada/bin/b".to_owned(), "/home/ada/src".to_owned()),
        ("c".to_owned(), "/desk/c".to_owned()),
    ];
    for (server, expected) in config.gateway.servers.iter().zip(expected) {
        let Launch::Child { command, cwd, .. } = &server.spec.launch else {
            panic!("expected a child: {server:?}");
        };
        let expanded =
            |template: &fleet::Template| template.expand(|_| Some("/desk".to_owned())).unwrap();
        assert_eq!(
            (expanded(command), expanded(cwd.as_ref().unwrap())),
            expected
        );
    }
}

#[cfg(unix)]
#[test]
fn each_file_has_a_state_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let state = |name: &str, overrides_state: Option<&str>, env: &Environment| {
        let file = folder.path().join(name);
        fs::write(&file, "").unwrap();
        let state_dir = overrides_state.map(Into::into);
        load(
            &Overrides {
                state_dir,
                ..overrides(&file)
            },
            env,
        )
        .unwrap()
        .gateway
        .state_dir
    };
    let work = state("work.toml", None, &home());
    let name = work
        .strip_prefix("/home/ada/.local/state/proxy")
        .unwrap()
        .to_string_lossy();
    let hash = name.strip_prefix("work-").unwrap();
    assert!(
        hash.len() == 8 && hash.chars().all(|c| c.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(state("work.toml", None, &home()), work);
    assert_ne!(state("play.toml", None, &home()), work);
    let set = Environment::from_iter([("HOME", HOME), ("PROXY_STATE_DIR", "~/state")]);
    assert_eq!(state("work.toml", None, &set), Path::new("/home/ada/state"));
    assert_eq!(state("work.toml", Some("/flag"), &set), Path::new("/flag"));
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        state("work.toml", Some("relative"), &set),
        here.join("relative")
    );
}

#[test]
fn without_a_home_the_tilde_and_the_state_folder_are_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "[servers.a]\ncommand = \"~/a\"").unwrap();
    let expected = "\
DIR/config.toml: servers.a: `~` stands for the home folder, but `HOME` is not set
    hint: write an absolute path
DIR/config.toml: state_dir: no default folder: neither `XDG_STATE_HOME` nor `HOME` is set
    hint: set `state_dir`, or the variable `PROXY_STATE_DIR`";
    assert_eq!(
        printed(&overrides(&file), &Environment::default(), folder.path()),
        expected
    );
}
