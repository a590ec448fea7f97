//! The part of our environment that a child sees, and the folders in which its command is looked
//! for.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use files::variable_name;
use tool::HttpCaller;

use crate::{Template, Variables, error::Failure, proxies};

/// Variables that every child gets. Anything else, and so every secret, is passed only where
/// the configuration says so.
const INHERITED: &[&str] = &[
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// Without these, and those of [`proxies`], a child behind a company's proxy or certificate
/// authority cannot connect.
const INHERITED_OF_NETWORK: &[&str] = &[
    "NO_PROXY",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// The next step for a client without a value that a server gets from its caller.
const OF_A_CALLER: &str = "call it over HTTP (`proxy serve --http`), with a token and that header";

pub(crate) fn expand(template: &Template, variables: &Variables) -> Result<String, Failure> {
    let lookup = |name: &str| variables.get(name).map(str::to_owned);
    template.expand(lookup).map_err(|unset| {
        if unset.0.starts_with(HttpCaller::PREFIX) {
            let why = format!("the caller sent no value for `${{{}}}`", unset.0);
            return Failure::new(why).lasting().hint(OF_A_CALLER);
        }
        let hint = format!(
            "set it for the client that starts `proxy`, or write `${{{}:-default}}` in the configuration",
            unset.0
        );
        Failure::new(unset.to_string()).hint(hint)
    })
}

/// The environment of a child before its own `env` is added: the usual few variables, which are
/// our own, and of `variables` those that `inherit_env` names. The usual places are added to its
/// `PATH`.
pub(crate) fn inherit(inherit_env: &[String], variables: &Variables) -> BTreeMap<String, String> {
    let ours =
        files::own_variables().filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
    let mut passed: BTreeMap<String, String> = select_usual(ours).collect();
    passed.extend(select_named(variables, inherit_env));
    let home = passed.get("HOME").map(PathBuf::from);
    let path = passed.get("PATH").map(String::as_str);
    let path = path.unwrap_or(files::PATH_DEFAULT);
    let path = with_places(path, &places(home.as_deref()));
    passed.insert("PATH".to_owned(), path);
    passed
}

fn select_usual(
    ours: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, String)> {
    ours.filter_map(|(name, value)| {
        if is_usual(&name) {
            return Some((name, value));
        }
        // The login of a proxy is a secret like any other: it is passed only where it is configured.
        let is_proxy = proxies::VARIABLES.contains(&name.as_str());
        is_proxy.then(|| (name, proxies::without_login(&value)))
    })
}

/// Returns true if every child gets our value of this variable.
pub(crate) fn is_usual(name: &str) -> bool {
    is_harmless(name) || INHERITED_OF_NETWORK.contains(&name)
}

/// Returns the variables that `inherit_env` names.
pub(crate) fn select_named(
    variables: &Variables,
    inherit_env: &[String],
) -> impl Iterator<Item = (String, String)> {
    let all = variables.iter();
    let named = all.filter(|(name, _)| is_named(name, inherit_env));
    named.map(|(name, value)| (name.clone(), value.clone()))
}

/// Returns true if `inherit_env` names this variable; a `*` at the end matches any suffix.
pub(crate) fn is_named(name: &str, inherit_env: &[String]) -> bool {
    inherit_env
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(&*variable_name(start)),
            None => name == variable_name(pattern),
        })
}

/// Returns true if the value of a variable may be shown: a folder, a language, a name.
pub(crate) fn is_harmless(name: &str) -> bool {
    INHERITED.contains(&name)
        || files::SYSTEM_VARIABLES.contains(&name)
        || INHERITED_PREFIXES
            .iter()
            .any(|start| name.starts_with(start))
}

fn places(home: Option<&Path>) -> Vec<PathBuf> {
    let (at_home, of_machine) = files::PROGRAM_FOLDERS;
    let of_machine = of_machine.iter().map(PathBuf::from);
    let of_home = home.into_iter().flat_map(|home| {
        let newest = newest_node(&home.join(".nvm/versions/node"));
        at_home.iter().map(|place| home.join(place)).chain(newest)
    });
    of_home.chain(of_machine).collect()
}

/// nvm keeps each version in a folder `v20.11.1`, and puts one of them on the `PATH` of shells.
fn newest_node(versions: &Path) -> Option<PathBuf> {
    let version = |folder: &PathBuf| -> Option<Vec<u32>> {
        let name = folder.file_name()?.to_str()?.strip_prefix('v')?;
        name.split('.').map(|part| part.parse().ok()).collect()
    };
    let entries = versions.read_dir().ok()?.flatten();
    let folders = entries.map(|entry| entry.path());
    let whole = folders.filter(|folder| folder.join("bin").is_dir());
    let numbered = whole.filter_map(|folder| Some((version(&folder)?, folder)));
    let (_, newest) = numbered.max()?;
    Some(newest.join("bin"))
}

/// Appends the folders that exist to the path.
fn with_places(path: &str, places: &[PathBuf]) -> String {
    let mut folders: Vec<PathBuf> = env::split_paths(path).collect();
    for place in places {
        if place.is_dir() && !folders.contains(place) {
            folders.push(place.clone());
        }
    }
    // A place with a `:` in its name cannot be on a path.
    env::join_paths(folders)
        .ok()
        .and_then(|path| path.into_string().ok())
        .unwrap_or_else(|| path.to_owned())
}

/// Returns the program that `command` names, or every path that was searched.
pub(crate) fn find_program(
    command: &str,
    path: Option<&str>,
    folder: &Path,
) -> Result<PathBuf, Vec<PathBuf>> {
    if files::is_path(command) {
        let program = folder.join(command);
        return files::find_program(&program).ok_or_else(|| vec![program]);
    }
    let folders: Vec<PathBuf> = env::split_paths(path.unwrap_or_default())
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    let found = folders
        .iter()
        .find_map(|folder| files::find_program(&folder.join(command)));
    found.ok_or(folders)
}

#[cfg(test)]
mod tests {
    use std::{
        env, fs,
        path::{Path, PathBuf},
    };

    use super::{find_program, inherit, is_named, places, select_usual, with_places};
    use crate::Variables;

    #[test]
    fn a_program_is_found_on_the_path_or_the_places_are_named() {
        let ours = env::current_exe().unwrap();
        let folder = ours.parent().unwrap();
        let (here, above) = (folder.parent().unwrap(), folder.file_name().unwrap());
        // Windows finds it by the ending `.exe`.
        let name = ours.file_stem().unwrap().to_str().unwrap();
        let path = env::join_paths([Path::new("/nowhere"), folder]).unwrap();
        let path = path.to_str();
        assert_eq!(find_program(name, path, here), Ok(ours.clone()));
        let searched = find_program("no-such-program", path, here);
        assert_eq!(searched, Err(vec!["/nowhere".into(), folder.to_owned()]));
        let relative = format!("{}/{name}", above.display());
        assert_eq!(find_program(&relative, None, here), Ok(ours.clone()));
    }

    #[test]
    fn variables_are_inherited_by_name_or_by_the_start_of_it() {
        let named = ["SSH_AUTH_SOCK", "AWS_*"].map(str::to_owned);
        let check = |name, passes| assert_eq!(is_named(name, &named), passes, "{name}");
        check("SSH_AUTH_SOCK", true);
        check("SSH_AUTH_SOCK_2", false);
        check("AWS_REGION", true);
        check("AWS_", true);
        check("AWS", false);
        check("XAWS_REGION", false);
        assert!(is_named("ANYTHING", &["*".to_owned()]));
        assert!(!is_named("ANYTHING", &[]));
    }

    #[test]
    fn a_child_sees_what_is_usual_and_what_was_asked_for() {
        let ours = ["HOME", "LC_ALL", "no_proxy", "GITHUB_TOKEN", "PROXY_CHILD"];
        let ours = ours.map(|name| (name.to_owned(), String::new()));
        let usual: Vec<String> = select_usual(ours.into_iter())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(usual, ["HOME", "LC_ALL", "no_proxy"]);

        let address = "http://me:pass@host:1";
        let given = [
            ("GITHUB_TOKEN", "a"),
            ("GITHUB_API", "b"),
            ("HTTPS_PROXY", address),
            ("LANG", "of the client"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given: Variables = given.into_iter().collect();
        let check = |inherit_env: &[&str], name: &str, value: Option<&str>| {
            let inherit_env: Vec<String> = inherit_env.iter().map(ToString::to_string).collect();
            let passed = inherit(&inherit_env, &given);
            assert_eq!(
                passed.get(name).map(String::as_str),
                value,
                "{inherit_env:?} {name}"
            );
            assert!(passed.contains_key("PATH"));
        };
        check(&[], "GITHUB_TOKEN", None);
        check(&["GITHUB_T*"], "GITHUB_TOKEN", Some("a"));
        check(&["GITHUB_T*"], "GITHUB_API", None);
        check(&["*"], "GITHUB_API", Some("b"));
        check(&["HTTPS_PROXY"], "HTTPS_PROXY", Some(address));
        check(&["LANG"], "LANG", Some("of the client"));

        let proxy = ("HTTPS_PROXY".to_owned(), address.to_owned());
        let bare = select_usual([proxy].into_iter()).next().unwrap().1;
        assert_eq!(bare, "http://host:1");
    }

    #[test]
    fn the_places_of_a_login_shell_come_after_the_path_where_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let made = [
            ".cargo/bin",
            ".local/bin",
            ".nvm/versions/node/v9.11.2/bin",
            ".nvm/versions/node/v22.4.0/bin",
            ".nvm/versions/node/v22.10.1/bin",
            ".nvm/versions/node/v23.0.0/lib",
            ".nvm/versions/node/vNext/bin",
        ];
        for place in made {
            fs::create_dir_all(home.join(place)).unwrap();
        }
        let cargo = home.join(".cargo/bin");
        let path = env::join_paths([Path::new("/usr/bin"), &cargo]).unwrap();
        let of_home = |place: &PathBuf| place.starts_with(home);
        let places: Vec<_> = places(Some(home)).into_iter().filter(of_home).collect();
        let path = with_places(path.to_str().unwrap(), &places);
        let added = [".local/bin", ".nvm/versions/node/v22.10.1/bin"].map(|it| home.join(it));
        let expected: Vec<_> = ["/usr/bin".into(), cargo]
            .into_iter()
            .chain(added)
            .collect();
        assert_eq!(env::split_paths(&path).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_path_is_kept_as_it_is_where_nothing_can_be_added() {
        assert_eq!(with_places("/a:/b", &["/nowhere".into()]), "/a:/b");
    }
}
