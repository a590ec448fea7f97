//! What a child sees of our environment, and where its command is looked for.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Variables that every child gets. Anything else, and so every secret, is passed only where
/// the configuration says so.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Without these a child behind a company's proxy or certificate authority cannot connect.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Families of variables that every child gets.
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Our environment as a child sees it before its own `env` is added.
pub(crate) fn inherited() -> BTreeMap<String, String> {
    let passes = |name: &str| {
        INHERITED.contains(&name)
            || INHERITED_PREFIXES
                .iter()
                .any(|start| name.starts_with(start))
    };
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| passes(name))
        .collect()
}

/// The program that `command` names, or every place where it was looked for.
pub(crate) fn find_program(
    command: &str,
    path: Option<&str>,
    folder: &Path,
) -> Result<PathBuf, Vec<PathBuf>> {
    if command.contains('/') {
        let program = folder.join(command);
        return if is_program(&program) {
            Ok(program)
        } else {
            Err(vec![program])
        };
    }
    let folders: Vec<PathBuf> = env::split_paths(path.unwrap_or_default())
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    let found = folders
        .iter()
        .map(|folder| folder.join(command))
        .find(|path| is_program(path));
    found.ok_or(folders)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::find_program;

    #[test]
    fn a_program_is_found_on_the_path_or_the_places_are_named() {
        let here = Path::new("/");
        let shell = find_program("sh", Some("/nowhere:/bin"), here).expect("every Unix has it");
        assert_eq!(shell, Path::new("/bin/sh"));
        let searched = find_program("no-such-program", Some("/nowhere:/bin"), here);
        assert_eq!(searched, Err(vec!["/nowhere".into(), "/bin".into()]));
        assert_eq!(find_program("bin/sh", None, here), Ok("/bin/sh".into()));
    }
}
